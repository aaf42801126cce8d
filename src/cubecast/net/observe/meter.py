"""Counts what a machine was told and answered. Plain numbers, one look per step: a step is about a batch.

What a node can know without anybody's clock but its own: how long a publication was held here between its arrival and
its delivery, and how long an own publication took until everybody it was for had acknowledged it.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.links.framing import HEADER
from cubecast.protocol.effects import (
    Acknowledged,
    Deliver,
    Effect,
    Effects,
    Gap,
    Observe,
    Published,
    Reincarnated,
    Send,
    SetTimer,
    Unsubscribed,
)
from cubecast.protocol.inspector import Inspector

# A histogram of times that costs a bisection and an addition per value, and never grows.

_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
BOUNDS: tuple[float, ...] = tuple(float(f"{step}e{power}") for power in range(-5, 2) for step in _STEPS)
"""Upper bounds of the buckets in seconds, 10 µs to 70 s; what is larger falls into a last one."""


class Histogram:
    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float, weight: int = 1) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += weight
        self.sum += seconds * weight

    def with_zeros(self, zeros: int) -> "Histogram":
        """The same, and so many values of nothing."""
        more = Histogram()
        more.counts, more.sum = [self.counts[0] + zeros, *self.counts[1:]], self.sum
        return more

    @property
    def count(self) -> int:
        return sum(self.counts)


def percentile(counts: Sequence[int], rank: float) -> float | None:
    """The value below which a share `rank` of the counted lies, as if a bucket's values lay evenly in it; what lies in
    the first one, mostly things that did not wait at all, counts as nothing."""
    total = sum(counts)
    if not total:
        return None
    wanted, passed = rank * total, 0
    for position, count in enumerate(counts):
        if count and passed + count >= wanted:
            if not position:
                return 0.0
            low = BOUNDS[position - 1]
            high = BOUNDS[position] if position < len(BOUNDS) else low
            return low + (high - low) * max(0.0, wanted - passed) / count
        passed += count
    return BOUNDS[-1]


EVERY = 64
PARTS = ("payload", "barrier", "destinations", "starts", "rest")

_encode = msgspec.msgpack.Encoder().encode


class Metadata:
    __slots__ = ("looked_at", "parts")

    def __init__(self) -> None:
        self.looked_at = 0
        self.parts = dict.fromkeys(PARTS, 0)
        """Bytes of those that were looked at; the frame around them is part of the rest."""

    def look(self, packet: Any, parts: Mapping[str, Any], encode: Callable[[Any], bytes]) -> None:
        """A publication of this node leaves; `parts` travel with its messages."""
        frame = packet.frame
        if frame is None:
            frame = packet.frame = encode(packet)  # which spares the driver the work
        found = {"payload": sum(map(len, packet.payloads))}
        found |= {part: len(_encode(value)) for part, value in parts.items()}
        found["rest"] = len(frame) + HEADER.size - sum(found.values())
        self.looked_at += 1
        for part, size in found.items():
            self.parts[part] += size


Held = tuple[float, int, int]
"""Since when, how many messages, how many bytes."""
REMEMBERED = 4096
"""Deliveries whose time is remembered."""


class Notice(Protocol):
    """Told of what is rare and worth remembering."""

    def __call__(self, kind: str, peer: NodeId | None, detail: str, topic: Topic | None = None) -> None: ...


class Meter:
    """`step` is called between a step of the machine and the carrying out of its effects. What it does is written out
    in one function, because calling others would cost more than the work."""

    def __init__(self, notice: Notice) -> None:
        self.inspector: Inspector | None = None
        self.encode: Callable[[Any], bytes] = lambda packet: b""
        self._notice = notice
        self.delivered: dict[Topic, int] = {}
        self.published: dict[Topic, int] = {}
        self.batches_published = 0
        self.duplicates = self.discarded = self.repeated = self.gaps = self.missing = self.incarnations = 0
        self.at_once = 0
        """Messages that were delivered the moment they arrived."""
        self.held: dict[tuple[Topic, MessageId], Held] = {}
        self.held_bytes = 0
        self._waited, self.stability = Histogram(), Histogram()
        self.metadata = Metadata()
        self._until_look = 1
        self.recent: deque[tuple[Topic, MessageId, int, float]] = deque(maxlen=REMEMBERED)
        """The last deliveries: topic, first message, messages, when."""
        self.on_stable: Callable[[float, Topic, int, float], None] | None = None
        """Called with (now, topic, first, published at) of an own publication that is stable."""
        self._unstable: dict[Topic, deque[tuple[int, int, float]]] = {}

    def step(self, name: str, now: float, arguments: Sequence[Any], effects: Effects) -> None:
        if name == "packet":
            self.packet(now, arguments[1], effects)
            return
        if name == "on_timer" and self.inspector is not None and self.inspector.is_retry(arguments[0]):
            self._repeats(effects)
        for effect in effects:
            if isinstance(effect, Deliver):
                self._delivered(now, effect)
            elif isinstance(effect, Send):
                self._until_look -= 1
                if self._until_look <= 0:
                    self._look(effect)
            elif isinstance(effect, Published):
                self._published(now, effect)
            else:
                self._other(now, effect)

    def packet(self, now: float, packet: Any, effects: Effects) -> None:
        """A step that began with a packet: most of them do."""
        arrived: MessageId | None = None
        if packet.publication:
            if packet.bundle:
                self._bundle(now, packet, effects)
            else:
                arrived = packet.message
        for effect in effects:
            if isinstance(effect, Deliver):
                if effect.message is arrived:
                    topic, count = effect.topic, len(effect.payloads)
                    try:
                        self.delivered[topic] += count
                    except KeyError:
                        self.delivered[topic] = count
                    self.recent.append((topic, arrived, count, now))
                    self.at_once += count
                    arrived = None
                else:
                    self._delivered(now, effect)
            elif not isinstance(effect, Send):
                self._other(now, effect)
        if arrived is not None:
            payloads = packet.payloads
            self._not_delivered(now, packet.topic, arrived, len(payloads), sum(map(len, payloads)), effects)

    def _delivered(self, now: float, effect: Deliver) -> None:
        """An own message, or one that was held."""
        topic, message, count = effect.topic, effect.message, len(effect.payloads)
        self.delivered[topic] = self.delivered.get(topic, 0) + count
        self.recent.append((topic, message, count, now))
        if self.held:
            held = self.held.pop((topic, message), None)
            if held is not None:
                self.held_bytes -= held[2]
                self._waited.add(now - held[0], count)

    def _other(self, now: float, effect: Effect) -> None:
        if isinstance(effect, Acknowledged):
            self._acknowledged(now, effect)
        elif isinstance(effect, Published):  # what was released by what arrived
            self._published(now, effect)
        elif not isinstance(effect, SetTimer):
            self._rare(effect)

    @property
    def holding(self) -> Histogram:
        """From arrival to delivery; what was not held at all is in it, too."""
        return self._waited.with_zeros(self.at_once)

    # What is not so frequent

    def _look(self, effect: Send) -> None:
        """One of the things sent, now and then, if it is a publication of this node."""
        packet = effect.packet
        if packet.publication and not packet.bundle and self.inspector is not None:
            parts = self.inspector.metadata(packet)
            self._until_look = EVERY
            if parts is not None:
                self.metadata.look(packet, parts, self.encode)

    def _published(self, now: float, effect: Published) -> None:
        topic, count = effect.topic, effect.count
        self.batches_published += 1
        self.published[topic] = self.published.get(topic, 0) + count
        unstable = self._unstable.get(topic)
        if unstable is None:
            unstable = self._unstable[topic] = deque()
        unstable.append((effect.counter, effect.counter + count - 1, now))

    def _acknowledged(self, now: float, effect: Acknowledged) -> None:
        unstable = self._unstable.get(effect.topic)
        while unstable and unstable[0][1] <= effect.counter:
            first, last, since = unstable.popleft()
            self.stability.add(now - since, last - first + 1)
            if self.on_stable is not None:
                self.on_stable(now, effect.topic, first, since)
        if unstable is not None and not unstable:
            del self._unstable[effect.topic]  # most topics rest most of the time

    def _repeats(self, effects: Effects) -> None:
        """What is sent because time passed was sent before and not answered."""
        for effect in effects:
            if isinstance(effect, Send) and effect.packet.publication:
                self.repeated += len(effect.peers)

    # What is rare

    def _not_delivered(
        self, now: float, topic: Topic, message: MessageId, count: int, size: int, effects: Effects
    ) -> None:
        """It is discarded on purpose, held, or was here before."""
        if any(type(one) is Observe and one.kind == "discard" and one.message == message for one in effects):
            return
        assert self.inspector is not None, "a step has a machine"
        if (topic, message) in self.held or self.inspector.has_delivered(topic, message):
            self.duplicates += 1
        else:
            self.held[topic, message] = (now, count, size)
            self.held_bytes += size

    def _bundle(self, now: float, packet: Any, effects: Effects) -> None:
        """Several publications came together: which of them were delivered is seen in the effects."""
        delivered = {(one.topic, one.message) for one in effects if isinstance(one, Deliver)}
        for topic, message, count, size in packet.carried():
            if (topic, message) in delivered - self.held.keys():
                self.at_once += count
            elif (topic, message) not in delivered:
                self._not_delivered(now, topic, message, count, size, effects)

    def _rare(self, effect: Any) -> None:
        match effect:
            case Observe("discard"):
                self.discarded += 1
            case Observe("suspect", _, _, peer):
                self._notice("suspected", peer, "its incarnation takes part no more")
            case Gap(topic, missing, reason):
                self.gaps += 1
                self.missing += len(missing)
                self._notice("gap", None, f"{len(missing)} messages: {reason}", topic)
            case Unsubscribed(topic):
                self._forget(topic)
            case Reincarnated(incarnation):
                self.incarnations += 1
                self._forget(None)
                self._unstable.clear()
                self._notice("reincarnated", None, f"others held this node faulty; it is incarnation {incarnation} now")

    def _forget(self, topic: Topic | None) -> None:
        """What was held for a subscription went with it."""
        self.held = {key: held for key, held in self.held.items() if topic is not None and key[0] != topic}
        self.held_bytes = sum(size for _, _, size in self.held.values())

    @property
    def held_messages(self) -> int:
        return sum(count for _, count, _ in self.held.values())

    @property
    def unstable(self) -> int:
        """Own messages that are published and not known to be everywhere."""
        return sum(last - first + 1 for waiting in self._unstable.values() for first, last, _ in waiting)

    @property
    def topics(self) -> int:
        return len(self.delivered.keys() | self.published.keys())
