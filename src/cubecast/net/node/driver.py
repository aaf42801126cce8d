"""Runs one machine in the event loop: the only place of the live system that interprets effects.

Time and packets go in, effects come out and are carried out in order. Rows of the trace are written before anybody
sees what they tell of.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.links.turn import Turn
from cubecast.net.node.pacing import Deferred
from cubecast.net.node.tracing import Journalling
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import (
    Acknowledged,
    CancelTimer,
    Cut,
    Deliver,
    Effect,
    Effects,
    Failed,
    Gap,
    InterestKnown,
    InterestMatched,
    Link,
    Observe,
    Published,
    Reincarnated,
    Released,
    Send,
    SetTimer,
    Subscribed,
    Undelivered,
    Unlink,
    Unsubscribed,
)
from cubecast.protocol.family import Family
from cubecast.protocol.inputs import (
    Advertise,
    Expelled,
    Follow,
    LinkFull,
    PeerDown,
    PeerUp,
    Publish,
    Reader,
    Start,
    Subscribe,
    Timer,
    Unadvertise,
    Unsubscribe,
)
from cubecast.wire.codec import MAX_PACKET_BYTES, codec_of

if TYPE_CHECKING:
    from cubecast.net.node.input_log import InputLog
    from cubecast.net.node.tracing import Journal
    from cubecast.net.observe.meter import Meter

log = logging.getLogger(__name__)

INPUTS: dict[str, Any] = {
    "on_start": Start,
    "on_timer": Timer,
    "on_peer_up": PeerUp,
    "on_peer_down": PeerDown,
    "on_expelled": Expelled,
    "on_link_full": LinkFull,
    "on_reader": Reader,
    "publish": Publish,
    "subscribe": Subscribe,
    "unsubscribe": Unsubscribe,
    "advertise": Advertise,
    "unadvertise": Unadvertise,
    "follow": Follow,
}
"""By the names that records of inputs use."""


class Listener(Protocol):
    """Who wants to know what the machine says, besides the network."""

    def on_deliver(self, topic: Topic, message: MessageId, payloads: Sequence[bytes], packet: Any) -> None: ...
    def on_deliver_to(
        self, subscription: Topic, topic: Topic, message: MessageId, payloads: Sequence[bytes]
    ) -> None: ...
    def on_published(self, topic: Topic, count: int) -> None: ...
    def on_acknowledged(self, topic: Topic, counter: int) -> None: ...
    def on_failed(self, topic: Topic, count: int, reason: str) -> None: ...
    def on_subscribed(self, topic: Topic) -> None: ...
    def on_interest_matched(self, topic: Topic) -> None: ...
    def on_interest_known(self) -> None: ...
    def on_gap(self, topic: Topic, missing: Sequence[MessageId], reason: str) -> None: ...
    def on_undelivered(self, topic: Topic, missing: Sequence[MessageId], peer: NodeId) -> None: ...
    def on_reincarnated(self, incarnation: int) -> None: ...


class Owner(Protocol):
    """Who the driver's machine belongs to, as the driver tells it."""

    def on_broken(self, error: Exception) -> None:
        """A step failed; nothing is done any more."""

    def on_suspect(self, peer: NodeId | None) -> None:
        """The machine holds a peer faulty."""

    def on_link(self, peer: NodeId, kept: bool) -> None:
        """Does the machine want to keep a connection to this peer?"""

    def introduce(self, peers: tuple[NodeId, ...], mentioned: Iterable[NodeId]) -> None:
        """What is sent to these peers next speaks of others."""


class Unowned:
    """For a machine on its own."""

    def on_broken(self, error: Exception) -> None: ...
    def on_suspect(self, peer: NodeId | None) -> None: ...
    def on_link(self, peer: NodeId, kept: bool) -> None: ...
    def introduce(self, peers: tuple[NodeId, ...], mentioned: Iterable[NodeId]) -> None: ...


class Driver:
    def __init__(
        self,
        machine: Machine,
        family: Family,
        listener: Listener,
        send: Callable[[tuple[NodeId, ...], bytes], None],
        turn: Turn,
        *,
        deferral_budget: int,
        journal: "Journal | None" = None,
        recorder: "InputLog | None" = None,
        owner: Owner | None = None,
        watcher: Callable[[], None] | None = None,
    ) -> None:
        """`watcher` is called after each step, until it is taken away, while steps may end what is waited for."""
        self.machine = machine
        self.inspector = family.inspect(machine)
        self.codec = codec_of(family)
        self._decode, self._encode = self.codec.decode, self.codec.encode
        self._frees_at_once, self._frees_by_release = family.frees is Published, family.frees is Released
        self._listener = listener
        self._send = send
        self._turn = turn
        self.journalling = Journalling(journal, self.inspector, self._encode)
        self._recorder = recorder
        self._introduces = family.population.draws_ids
        self.meter: Meter | None = None
        """Counts what happens, while an observer is there."""
        self.watcher = watcher
        self._owner: Owner = Unowned() if owner is None else owner
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self.deferred = Deferred(deferral_budget)
        self._relays = hasattr(machine, "on_reader")
        """It goes on while subscribers here do not read."""
        self._stopped = False
        self._inputs: deque[tuple[str, float, tuple[Any, ...]]] = deque()
        self._is_busy = False

    # Inputs

    def packets(self, sender: NodeId, frames: list[bytes]) -> None:
        """What one read from a peer's link brought."""
        if self._stopped:
            return
        now, turn = monotonic(), self._turn
        turn.is_held, turn.is_short = True, len(frames) == 1
        try:
            for frame in frames:
                packet = self._decode(frame)
                packet.born = now
                if self.deferred.by_topic and (held_by := self.deferred.held_by(packet)) is not None:
                    self.deferred.add(held_by, sender, packet, frame)
                elif self._is_busy or self.journalling.journal or self._recorder or self.watcher:
                    self._input("packet", now, sender, packet)
                else:
                    self._take(now, sender, packet)
        finally:
            turn.release()

    def _take(self, now: float, sender: NodeId, packet: Any) -> None:
        """As `_input` does it, when no recorder is there."""
        self._is_busy = True
        try:
            effects = self.machine.on_packet(now, sender, packet)
            if self.meter is not None:
                self.meter.packet(now, packet, effects)
            self._apply(now, effects)
            while self._inputs:
                self._step(*self._inputs.popleft())
        except (RemoteProtocolError, LocalProtocolError):
            raise
        except Exception as error:
            self._break(error)
        finally:
            self._is_busy = False

    def _break(self, error: Exception) -> None:
        """A mistake of ours in the middle of a step: what the machine knows and what was done may differ from now on,
        so this node says nothing any more."""
        log.critical("this node stops, because a step of its protocol failed", exc_info=error)
        self._inputs.clear()
        self.stop()
        self._owner.on_broken(error)

    def call(self, name: str, *arguments: Any) -> None:
        """One of the machine's other entry points."""
        if not self._stopped:
            self._input(name, monotonic(), *arguments)

    def _input(self, name: str, now: float, *arguments: Any) -> None:
        """Carried out now, or after the step that is under way when a subscriber asks from within a delivery."""
        if self._is_busy:
            self._inputs.append((name, now, arguments))
            return
        self._is_busy = True
        try:
            self._step(name, now, arguments)
            while self._inputs:
                self._step(*self._inputs.popleft())
        except (RemoteProtocolError, LocalProtocolError):
            raise
        except Exception as error:
            self._break(error)
        finally:
            self._is_busy = False

    def _step(self, name: str, now: float, arguments: tuple[Any, ...]) -> None:
        recorder = self._recorder
        effects = (
            self._ask(name, now, arguments) if recorder is None else recorder.step(self._ask, name, now, arguments)
        )
        if self.journalling.journal is not None:
            self._record(name, now, arguments, effects)
        if self.meter is not None:
            self.meter.step(name, now, arguments, effects)
        self._apply(now, effects)
        if self.watcher is not None:
            self.watcher()

    def _ask(self, name: str, now: float, arguments: Sequence[Any]) -> Effects:
        if name == "packet":
            return self.machine.on_packet(now, *arguments)
        return self.machine.handle(now, INPUTS[name](*arguments))

    def _record(self, name: str, now: float, arguments: tuple[Any, ...], effects: Effects) -> None:
        """On disk before anybody acts on it."""
        if name == "packet":
            sender, packet = arguments
            self.journalling.packet(now, sender, packet, effects)
        else:
            self.journalling.step(now, INPUTS[name](*arguments), effects)

    def stop(self) -> None:
        self._stopped = True
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    # A subscriber that reads slowly

    def hold_back(self, topic: Topic) -> None:
        if self._relays:
            self.call("on_reader", topic, False)
        else:
            self.deferred.hold(topic)

    def let_through(self, topic: Topic) -> None:
        if self._relays:
            self.call("on_reader", topic, True)
            return
        for sender, frame in self.deferred.released(topic):
            try:
                packet, now = self._decode(frame), monotonic()
                packet.born = now
                self._input("packet", now, sender, packet)
            except RemoteProtocolError as error:  # of the peer's making, and not for the reader who made room
                about = {"peer": sender, "topic": topic}
                log.warning("a publication from node %s that had to wait was refused: %s", sender, error, extra=about)

    def link_full(self, peer: NodeId, full: bool) -> None:
        """The connection to this peer takes no more for now, or does again."""
        if hasattr(self.machine, "on_link_full"):
            self.call("on_link_full", peer, full)

    # Effects

    def _apply(self, now: float, effects: Effects) -> None:
        turn, listener = self._turn, self._listener
        for effect in effects:
            if type(effect) is Deliver:  # the frequent ones like this: patterns cost more than what is done
                if turn.is_short and turn.writers:
                    turn.end()  # forward, then deliver
                if effect.subscription is None:
                    listener.on_deliver(effect.topic, effect.message, effect.payloads, effect.packet)
                else:
                    listener.on_deliver_to(effect.subscription, effect.topic, effect.message, effect.payloads)
            elif type(effect) is Send:
                packet = effect.packet
                frame = packet.frame
                if frame is None:
                    frame = packet.frame = self._encode(packet)
                if self._introduces and (mentioned := packet.mentions()):
                    self._owner.introduce(effect.peers, mentioned)
                if len(frame) <= MAX_PACKET_BYTES:
                    self._send(effect.peers, frame)
                else:  # the peer that got it would hang up, again and again
                    log.error("a %s of %d bytes cannot be sent", type(packet).__name__, len(frame))
            elif type(effect) is Published:
                listener.on_published(effect.topic, effect.count)
                if self._frees_at_once:
                    listener.on_acknowledged(effect.topic, effect.counter + effect.count - 1)
            else:
                self._apply_rare(effect)

    def _apply_rare(self, effect: Effect) -> None:
        listener = self._listener
        match effect:
            case Acknowledged(topic, counter):
                listener.on_acknowledged(topic, counter)
            case Released(topic, counter):
                if self._frees_by_release:
                    listener.on_acknowledged(topic, counter)
            case Link(peer):
                self._owner.on_link(peer, True)
            case Unlink(peer):
                self._owner.on_link(peer, False)
            case SetTimer(timer, at):
                self._set_timer(timer, at)
            case Failed(topic, _, count, reason):
                listener.on_failed(topic, count, reason)
            case Subscribed(topic):
                listener.on_subscribed(topic)
            case Gap(topic, missing, reason):
                listener.on_gap(topic, missing, reason)
            case Undelivered(topic, missing, peer):
                listener.on_undelivered(topic, missing, peer)
            case InterestMatched(topic, on):
                if on:
                    listener.on_interest_matched(topic)
            case InterestKnown():
                listener.on_interest_known()
            case Reincarnated(incarnation):
                listener.on_reincarnated(incarnation)
            case CancelTimer(timer):
                self._cancel_timer(timer)
            case Observe("suspect", _, _, peer):
                self._owner.on_suspect(peer)
            case Cut() | Unsubscribed() | Observe() | Send() | Deliver() | Published():
                pass  # of interest to the trace only, or applied already
            case _:
                assert_never(effect)

    def _set_timer(self, timer: Hashable, at: float) -> None:
        self._cancel_timer(timer)
        self._timers[timer] = self._loop.call_at(at, self._fire, timer)

    def _cancel_timer(self, timer: Hashable) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, timer: Hashable) -> None:
        self._timers.pop(timer, None)
        self.call("on_timer", timer)
