"""The nodes of a simulated world: who lives, what applications ask of them, and what befalls them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Effects, Unsubscribed
from cubecast.protocol.filters.values import Attributes
from cubecast.protocol.inputs import (
    Crosspost,
    Follow,
    Input,
    Interest,
    Leave,
    PeerDown,
    PeerUp,
    Publish,
    Request,
    Start,
    Subscribe,
    Unsubscribe,
)
from cubecast.sim.network import Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.statistics import Statistics
from cubecast.trace.schema import Kind

MachineFactory = Callable[[NodeId, int], Machine]
"""(node, incarnation) → its machine."""

CALL = -1  # in place of a node: what follows is a function and its arguments, not a sender and a packet


class Lives(ABC):
    """`absent` nodes have an id and come later, or never."""

    network: Network
    statistics: Statistics
    recorder: Recorder | None

    def __init__(self, nodes: Sequence[NodeId], make: MachineFactory, absent: Iterable[NodeId] = ()) -> None:
        self.nodes = tuple(nodes)
        self.now = 0.0
        self.absent = set(absent)
        """Nodes that are not there: those that did not come yet and those that left."""
        self.incarnations = dict.fromkeys(nodes, 0)
        self.crashed: dict[NodeId, float] = {}
        self.paused: dict[NodeId, list[tuple[Any, ...]]] = {}
        self.subscriptions: dict[NodeId, set[str]] = {node: set() for node in nodes}
        self.interests_known: dict[NodeId, float] = {}  # since when
        self.links: dict[NodeId, set[NodeId]] = {}
        """The peers each node keeps a connection to."""
        self.machines: dict[NodeId, Machine] = {node: make(node, 0) for node in nodes if node not in self.absent}
        self._make = make
        self._away: set[NodeId] = set(self.absent)  # crashed, paused or absent

    @abstractmethod
    def at(self, time: float, call: Callable[..., object], *arguments: Any) -> None: ...

    @abstractmethod
    def _apply(self, node: NodeId, effects: Effects) -> None: ...

    def _ask(self, node: NodeId, given: Input) -> Effects:
        """What a machine says to an input; the input is in the trace, what it says is not yet."""
        effects = self.machines[node].handle(self.now, given)
        if self.recorder is not None:
            self.recorder.asked(node, self.now, given, effects)
        return effects

    def _record_end(self, node: NodeId, kind: Kind) -> None:
        if self.recorder is not None:
            self.recorder.of(node).ended(self.now, kind)

    def present(self) -> list[NodeId]:
        """Who is there and has not crashed."""
        return [node for node in self.nodes if node not in self.crashed and node not in self.absent]

    def is_gone(self, node: NodeId) -> bool:
        return node in self.crashed or node in self.absent

    # The application's side

    def publish(
        self, node: NodeId, topic: str, payloads: Sequence[bytes], attributes: Attributes | None = None
    ) -> bool:
        """False when the node is down or its machine refused. A paused process asks when it goes on."""
        if node in self.paused:
            return self._postpone(node, self.publish, node, topic, payloads, attributes)
        effects = self._request(node, Publish(topic, payloads, attributes=attributes))
        if effects is not None:
            self._apply(node, effects)
        return effects is not None

    def crosspost(self, node: NodeId, topics: tuple[str, ...], payloads: Sequence[bytes]) -> bool:
        """The same in each of these topics; False as for `publish`."""
        if node in self.paused:
            return self._postpone(node, self.crosspost, node, topics, payloads)
        effects = self._request(node, Crosspost(topics, payloads))
        if effects is not None:
            self._apply(node, effects)
        return effects is not None

    def subscribe(self, node: NodeId, topic: str, condition: str | None = None) -> bool:
        """`condition` is a filter over the attributes of messages."""
        if node in self.paused:
            return self._postpone(node, self.subscribe, node, topic, condition)
        if self.is_gone(node) or topic in self.subscriptions[node]:
            return False
        effects = self._request(node, Subscribe(topic, condition))
        if effects is None:
            return False
        self.subscriptions[node].add(topic)
        self._apply(node, effects)
        return True

    def unsubscribe(self, node: NodeId, topic: str) -> bool:
        if node in self.paused:
            return self._postpone(node, self.unsubscribe, node, topic)
        if self.is_gone(node) or topic not in self.subscriptions[node]:
            return False
        effects = self._request(node, Unsubscribe(topic))
        if effects is None:
            return False
        stays = hasattr(self.machines[node], "follow") and Unsubscribed(topic) not in effects
        if not stays:  # an interest may still match the topic
            self.subscriptions[node].discard(topic)
        self._apply(node, effects)
        return True

    def follow(self, node: NodeId, interest: Interest | None) -> bool:
        """Declare an interest in topics, known or to come; False when the node is down or its protocol cannot."""
        if node in self.paused:
            return self._postpone(node, self.follow, node, interest)
        effects = self._request(node, Follow(interest))
        if effects is None:
            return False
        self.interests_known.pop(node, None)
        self._apply(node, effects)
        return True

    def _postpone(self, node: NodeId, call: Callable[..., object], *arguments: Any) -> bool:
        self.paused[node].append((self.now, 0, CALL, call, arguments))
        return True

    def _request(self, node: NodeId, given: Request) -> Effects | None:
        """None when the node is not there or its machine refused."""
        try:
            if not self.is_gone(node):
                return self._ask(node, given)
        except LocalProtocolError:
            pass
        self.statistics.refused += 1
        return None

    # Coming and going

    def join(self, node: NodeId) -> None:
        """A node comes, for the first time or again; what it knows at first, its factory says."""
        if node not in self.absent:
            return
        self.absent.discard(node)
        self._away.discard(node)
        if node in self.machines:
            self.incarnations[node] += 1
        self._begin(node)

    def leave(self, node: NodeId) -> None:
        """A node goes on purpose; its machine may say goodbye."""
        if self.is_gone(node):
            return
        with suppress(LocalProtocolError):  # it has nothing to say
            self._apply(node, self._ask(node, Leave()))
        self._record_end(node, Kind.STOP)
        self.absent.add(node)
        self._end(node)

    def crash(self, node: NodeId) -> None:
        if not self.is_gone(node):
            self._record_end(node, Kind.CRASH)
            self.crashed[node] = self.now
            self._end(node)

    def restart(self, node: NodeId) -> None:
        """A new machine with the next incarnation; it remembers nothing."""
        if node in self.crashed:
            del self.crashed[node]
            self._away.discard(node)
            self.incarnations[node] += 1
            self._begin(node)

    def _begin(self, node: NodeId) -> None:
        self.machines[node] = self._make(node, self.incarnations[node])
        self.network.free_at[node] = self.now
        if self.recorder is not None:
            self.recorder.of(node).started(self.now, self.incarnations[node])
        self._apply(node, self._ask(node, Start()))

    def _end(self, node: NodeId) -> None:
        self._away.add(node)
        self.paused.pop(node, None)
        self.subscriptions[node] = set()
        self.interests_known.pop(node, None)
        self.links.pop(node, None)
        for other, kept in self.links.items():
            if node in kept:
                self._tell_broken(other, node)

    def wrap(self, node: NodeId, between: Callable[[Machine], Machine]) -> None:
        """Put something between the world and this node's machine, and those of its later incarnations."""
        make = self._make
        self._make = lambda one, incarnation: between(make(one, incarnation)) if one == node else make(one, incarnation)
        if node in self.machines:
            self.machines[node] = between(self.machines[node])

    # Links

    def _link(self, node: NodeId, peer: NodeId) -> None:
        self.links.setdefault(node, set()).add(peer)
        if self.is_gone(peer):
            self._tell_broken(node, peer)

    def _unlink(self, node: NodeId, peer: NodeId) -> None:
        self.links.get(node, set()).discard(peer)
        if node in self.links.get(peer, ()):
            self._tell_broken(peer, node)

    def break_link(self, node: NodeId, peer: NodeId) -> None:
        """The connection between the two ends: what is under way on it is lost, and each that keeps it is told."""
        self.network.lose(node, peer)
        for one, other in ((node, peer), (peer, node)):
            if other in self.links.get(one, ()):
                self._tell_broken(one, other)

    def _tell_broken(self, node: NodeId, peer: NodeId) -> None:
        """A little later, as a reset travels; unless this end gave the link up meanwhile."""
        self.at(self.now + self.network.propagation(peer, node), self._broken, node, peer)

    def _broken(self, node: NodeId, peer: NodeId) -> None:
        if node in self.paused:
            self._postpone(node, self._broken, node, peer)
        elif not self.is_gone(node) and peer in self.links.get(node, ()):
            self.links[node].discard(peer)
            self._apply(node, self._ask(node, PeerDown(peer)))

    # Faults

    def pause(self, node: NodeId) -> None:
        """The process stops (as with SIGSTOP): what arrives, and its timers, wait."""
        if not self.is_gone(node):
            self.paused.setdefault(node, [])
            self._away.add(node)

    @abstractmethod
    def resume(self, node: NodeId) -> None: ...

    def suspect(self, node: NodeId, peer: NodeId) -> None:
        """Tell a node that its failure detector holds the peer faulty."""
        if node in self.paused:
            self._postpone(node, self.suspect, node, peer)
        elif not self.is_gone(node):
            if self.recorder is not None:
                self.recorder.of(node).suspected(self.now, peer)
            self._apply(node, self._ask(node, PeerDown(peer)))

    def unsuspect(self, node: NodeId, peer: NodeId) -> None:
        if node in self.paused:
            self._postpone(node, self.unsuspect, node, peer)
        elif not self.is_gone(node):
            self._apply(node, self._ask(node, PeerUp(peer)))
