"""TAG: a tree found along a list of all processes in the order they came, and messages pulled from the parent.

J. Liu and M. Zhou's system as the thesis describes it. Who comes asks the first process for the last one of the list
and goes back along it: of everyone it meets it may become the child, and some it remembers. It settles at the first
process with room for a child. Everybody knows two predecessors; who loses its parent goes on from there (soft), or, if
both are gone, asks for the last of the list again (hard).

The first process is the root: others hand it what they publish. A process pulls: every `pull` it tells its parent what
it has and gets the next message; while the parent has none to give or is gone, one it remembers is asked instead.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Effects
from cubecast.protocol.epidemic.dissemination import MOST_SOURCES, Disseminator, Message, Source
from cubecast.protocol.parameters import check_parameters, parameter

SILENT_PULLS = 3
"""Answers without a message after which another neighbour is asked now and then."""
PATIENCE_PULLS = 5
"""Pulls a visit may take before it is begun again."""
MOST_DELAYS = 64


@dataclass(frozen=True)
class TagParameters:
    children: int = parameter(4, "a process takes at most", least=1, most=64)
    peers: int = parameter(4, "processes one remembers of those it meets", least=1, most=64)
    pull: float = parameter(400.0, "between two pulls", live=0.4, above=0, unit="time")
    batch: int = parameter(1, "messages of a publisher in the answer to a pull", least=1, most=1024)
    buffer: int = parameter(512, "batches of a publisher kept for others", least=1, most=1 << 20)

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(slots=True)
class Enter(Packet):
    """To the first process: who came last?"""


@dataclass(slots=True)
class Last(Packet):
    node: NodeId

    def mentions(self) -> Iterable[NodeId]:
        return (self.node,)


@dataclass(slots=True)
class Knock(Packet):
    """A connection is opened, which takes a round trip, before anything is asked."""

    answer: bool


@dataclass(slots=True)
class Visit(Packet):
    """May I be your child, and who came before you?"""


@dataclass(slots=True)
class Visited(Packet):
    room: bool
    before: tuple[NodeId, ...]

    def mentions(self) -> Iterable[NodeId]:
        return self.before


@dataclass(slots=True)
class Attach(Packet):
    pass


@dataclass(slots=True)
class Pull(Packet):
    digest: tuple[tuple[Source, Counter], ...]


@dataclass(slots=True)
class Nothing(Packet):
    """There is no more than the asker has."""


class Tag(Disseminator):
    def __init__(
        self,
        node: NodeId,
        first: NodeId,
        parameters: TagParameters,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        subscribed: Iterable[Topic] = (),
    ) -> None:
        super().__init__(node, incarnation, subscribed, keep=parameters.buffer)
        self.parent: NodeId | None = None
        self.children: dict[NodeId, None] = {}
        self.settled_after = 0.0
        """How long it took to find the present parent."""
        self.hard_delays: list[float] = []
        """How long repairs took for which the list had to be gone through from its end."""
        self._first = first
        self._last = node
        """At the first process: who came last."""
        self._before: tuple[NodeId, ...] = ()
        self._peers: dict[NodeId, None] = {}
        self._visiting: NodeId | None = None
        self._met_first = self._is_hard = False
        self._searching_since = 0.0
        self._pulls = self._visited_at = self._silent = 0
        self._parameters = parameters
        self._rng = rng
        self._now = 0.0

    def on_start(self, now: float) -> Effects:
        self._now = self._searching_since = now
        self._enter()
        self._set_timer("pull", now + self._rng.uniform(0, self._parameters.pull))
        return self._take()

    def _enter(self) -> None:
        if self.node != self._first:
            self._before, self._met_first = (), False
            self._visiting, self._visited_at = self._first, self._pulls
            self._send((self._first,), Enter())

    # -- the list ----------------------------------------------------------------------------------------------------

    def _visit(self, node: NodeId) -> None:
        self._visiting, self._visited_at = node, self._pulls
        self._link(node)
        self._send((node,), Knock(answer=False))

    def _on_visited(self, sender: NodeId, packet: Visited) -> None:
        if sender != self._visiting:
            return
        before = tuple(one for one in packet.before[:2] if one >= 0 and one != self.node)
        if not self._met_first:
            self._met_first, self._before = True, (sender, *before)[:2]
        if len(self._peers) < self._parameters.peers:
            self._peers[sender] = None
        self._visiting = None
        if packet.room:
            self.parent, self.settled_after = sender, self._now - self._searching_since
            if self._is_hard:
                self._is_hard = False
                self.hard_delays = [*self.hard_delays, self.settled_after][-MOST_DELAYS:]
            self._send((sender,), Attach())
            return
        self._unlink(sender)
        if before:
            self._visit(before[0])
        else:
            self._enter()

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._now = now
        self.children.pop(peer, None)
        self._peers.pop(peer, None)
        self._before = tuple(one for one in self._before if one != peer)
        if peer == self.parent:
            self.parent, self._searching_since = None, now
            self._search()
        elif peer == self._visiting:
            self._search()
        return self._take()

    def _search(self) -> None:
        if self._before:
            self._visit(self._before[0])
        else:
            self._is_hard = True
            self._enter()

    # -- pulling -----------------------------------------------------------------------------------------------------

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        self._now = now
        self._pulls += 1
        if self.parent is not None:
            self._send((self.parent,), Pull(self.digest()))
        elif self._visiting is not None and self._pulls - self._visited_at > PATIENCE_PULLS:
            self._before = tuple(one for one in self._before if one != self._visiting)
            self._search()
        if self._peers and (self.parent is None or self._silent >= SILENT_PULLS):
            self._silent = 0
            self._send((self._rng.choice(list(self._peers)),), Pull(self.digest()))
        self._set_timer("pull", now + self._parameters.pull)
        return self._take()

    def _on_pull(self, sender: NodeId, packet: Pull) -> None:
        if len(packet.digest) > MOST_SOURCES:
            raise RemoteProtocolError("a digest of more publishers than there may be")
        found = self.missing_there(packet.digest, self._parameters.batch)
        for one in found:
            self._send((sender,), one)
        if not found:
            self._send((sender,), Nothing())

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        self._now = now
        match packet:
            case Message():
                self._silent = 0
                self._accept(sender, packet)
            case Nothing():
                self._silent += 1
            case Pull():
                self._on_pull(sender, packet)
            case Enter() if self.node == self._first:
                last, self._last = self._last, sender
                self._send((sender,), Last(last if last != sender else self.node))
            case Last() if sender == self._first and 0 <= packet.node != self.node:
                self._visit(packet.node)
            case Knock():
                self._on_knock(sender, packet)
            case Visit():
                self._send((sender,), Visited(len(self.children) < self._parameters.children, self._before))
            case Visited():
                self._on_visited(sender, packet)
            case Attach():
                self._link(sender)
                self.children[sender] = None
            case _:
                raise RemoteProtocolError(f"a {type(packet).__name__} that no process of TAG sends here")
        return self._take()

    def _spread(self, sender: NodeId, packet: Message) -> None:
        """Messages are pulled from the root downwards: who publishes hands its own to the root."""
        if sender == self.node != self._first:
            self._send((self._first,), packet)

    def _on_knock(self, sender: NodeId, packet: Knock) -> None:
        if not packet.answer:
            self._send((sender,), Knock(answer=True))
        elif sender == self._visiting:
            self._send((sender,), Visit())


TAG_PACKETS: tuple[type[Any], ...] = (Enter, Last, Knock, Visit, Visited, Attach, Pull, Nothing, Message)
