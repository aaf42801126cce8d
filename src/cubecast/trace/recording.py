"""What of a node's life is recorded, and as which line. The one place where inputs and effects become lines.

Both drivers use it, so that a run of one machine leaves the same rows under either driver: the simulated world unfolds
the lines at once (`rows.py`), a live node writes them to its journal (`journal.py`). Follows decision 0048.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import (
    Acknowledged,
    CancelTimer,
    Cut,
    Deliver,
    Effect,
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
from cubecast.protocol.inputs import Follow, Input, PeerDown, Subscribe, Unsubscribe
from cubecast.trace.schema import Kind, digest_of

Line = Callable[..., None]
"""(kind, time, values …), written or unfolded."""


class Recording:
    """The history of one node, incarnation after incarnation. `packets`: effects tell of the packets sent, too."""

    def __init__(self, write: Line, *, packets: bool = False) -> None:
        self._write = write
        self._packets = packets
        self.incarnation = 0
        self._follows = False
        self._filters: dict[Topic, str | None] = {}
        """Of the subscriptions that are open."""
        self._leaving: set[Topic] = set()
        self._linked: set[NodeId] = set()

    # Beginning and end

    def started(self, now: float, incarnation: int, before: int | None = None) -> None:
        """`before` goes on under another incarnation."""
        self.incarnation = incarnation
        self._filters, self._leaving = {}, set()
        if before is None:
            self._follows, self._linked = False, set()
        self._write(Kind.START, now, incarnation, *(() if before is None else (before,)))

    def settled(self, now: float, topic: Topic) -> None:
        """A subscription that everybody knew from the start."""
        self._subscribe(now, topic)
        self._write(Kind.SUBSCRIBED, now, topic, ())

    def found(self, now: float, topic: Topic, delivered: Iterable[MessageId], *, confirmed: bool) -> None:
        """A subscription that was there before anything was recorded, and how far it was."""
        self._subscribe(now, topic)
        reached = tuple(delivered)
        if reached:
            self._write(Kind.CUT, now, topic, reached)
        if confirmed:
            self._write(Kind.SUBSCRIBED, now, topic, ())

    def ended(self, now: float, kind: Kind) -> None:
        """stop, crash or quiescent."""
        self._write(kind, now)

    def suspected(self, now: float, peer: NodeId) -> None:
        """The driver's failure detector holds the peer faulty."""
        self._write(Kind.SUSPECT, now, None, None, peer, "")

    # Steps

    def asked(self, now: float, given: Input, effects: Sequence[Effect]) -> None:
        """An input that the machine took; `effects`, what came of it, are still to be recorded."""
        match given:
            case Subscribe(topic, wanted):
                self._subscribe(now, topic, wanted)
            case Unsubscribe(topic):
                if not self._follows or Unsubscribed(topic) in effects:  # an interest may still match the topic
                    self._unsubscribe(now, topic)
            case Follow(interest):
                self._follows = interest is not None
            case PeerDown(peer) if peer in self._linked:
                self._linked.discard(peer)
                self._view(now)

    def effects(self, now: float, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effect(now, effect)

    def effect(self, now: float, effect: Effect) -> None:
        write = self._write
        match effect:
            case Deliver(topic, message, payloads):
                write(Kind.DELIVER, now, topic, *message, len(payloads), list(map(digest_of, payloads)))
            case Published(topic, counter, count, dependencies, payloads):
                told = (list(map(digest_of, payloads)), *_told(effect.attributes))
                write(Kind.PUBLISH, now, topic, counter, count, dependencies, *told)
            case Acknowledged(topic, counter):
                write(Kind.ACKNOWLEDGED, now, topic, counter)
            case Failed(topic, counter, count, reason):
                write(Kind.FAILED, now, topic, counter, count, reason)
            case Cut(topic, last_excluded):
                write(Kind.CUT, now, topic, (last_excluded,))
            case Subscribed(topic, cut):
                write(Kind.SUBSCRIBED, now, topic, cut)
            case Unsubscribed(topic):
                self._unsubscribe(now, topic)
                self._filters.pop(topic, None)
                self._leaving.discard(topic)
                write(Kind.UNSUBSCRIBED, now, topic)
            case Gap(topic, missing, reason):
                write(Kind.GAP, now, topic, tuple(missing), reason)
            case Undelivered(topic, missing, peer):
                write(Kind.UNDELIVERED, now, topic, tuple(missing), peer)
            case Observe(kind, topic, message, peer, detail):
                write(Kind(kind), now, topic, message, peer, detail)
            case InterestMatched(topic, on):
                (self._subscribe if on else self._unsubscribe)(now, topic)
            case Reincarnated(incarnation, topics):
                self._reincarnate(now, incarnation, topics)
            case Link(peer) | Unlink(peer):
                (self._linked.add if type(effect) is Link else self._linked.discard)(peer)
                self._view(now)
            case Send(peers, packet):
                for peer in peers if self._packets else ():
                    self.packet(Kind.SEND, now, peer, packet)
            case SetTimer() | CancelTimer() | InterestKnown() | Released():
                pass
            case _:
                assert_never(effect)

    def packet(self, kind: Kind, now: float, peer: NodeId, packet: Packet, *where: int) -> None:
        """`where`: the packet's number and hops, where the driver knows them."""
        batches = [(one.topic, *one.first, one.messages) for one in packet.carried()] if packet.publication else ()
        self._write(kind, now, peer, batches, None if packet.frame is None else len(packet.frame), *where)

    def _reincarnate(self, now: float, incarnation: int, topics: Iterable[Topic]) -> None:
        filters, before = self._filters, self.incarnation
        self._write(Kind.STOP, now)
        self.started(now, incarnation, before)
        for topic in topics:
            self._subscribe(now, topic, filters.get(topic))

    def _subscribe(self, now: float, topic: Topic, wanted: str | None = None) -> None:
        """Wished for by name or by an interest, it is one subscription."""
        if topic not in self._filters or topic in self._leaving:
            self._leaving.discard(topic)
            self._filters[topic] = wanted
            self._write(Kind.SUBSCRIBE, now, topic, *(() if wanted is None else (wanted,)))

    def _unsubscribe(self, now: float, topic: Topic) -> None:
        if topic not in self._leaving:
            self._leaving.add(topic)
            self._write(Kind.UNSUBSCRIBE, now, topic)

    def _view(self, now: float) -> None:
        self._write(Kind.VIEW, now, None, None, None, "", sorted(self._linked))


def _told(attributes: Mapping[str, Any] | None) -> tuple[str, ...]:
    """As JSON, without the topic, which the row has: filters may ask for it like for any other."""
    own = {name: value for name, value in (attributes or {}).items() if name != "topic"}
    return (json.dumps(own, sort_keys=True, ensure_ascii=False, separators=(",", ":")),) if own else ()
