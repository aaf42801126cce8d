"""What brokers send each other: copies of messages with what orders them, and what repairs the way.

A copy's header is LoCaMu's, its body LoCaPS's. Tables in headers are by broker id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Packet

Table: TypeAlias = dict[int, int]
Tables: TypeAlias = dict[int, dict[int, int]]
WireFilter: TypeAlias = list[list[list[Any]]]


class PublisherId(NamedTuple):
    broker: NodeId
    incarnation: Incarnation
    number: int


class SubscriptionId(NamedTuple):
    broker: NodeId
    incarnation: Incarnation
    number: int


class Advertise(NamedTuple):
    """A publisher will publish what matches the template and nothing else; so far it has `published` messages."""

    publisher: PublisherId
    topic: Topic
    template: WireFilter
    published: Counter


class AdvertiseEcho(NamedTuple):
    """The broker and all behind it, seen from the publisher, know of the advertisement."""

    publisher: PublisherId
    broker: NodeId


class Unadvertise(NamedTuple):
    """The publisher ended with the message that has this counter."""

    publisher: PublisherId
    last: Counter


class Subscribe(NamedTuple):
    subscription: SubscriptionId
    wanted: WireFilter


class Unsubscribe(NamedTuple):
    subscription: SubscriptionId


class Marker(NamedTuple):
    """The subscription gets what the publisher publishes after `last`."""

    publisher: PublisherId
    subscription: SubscriptionId
    last: Counter


class Partial(NamedTuple):
    """One of f + 1 brokers in a row, `hops` before the pivot, says: a covering subscription that branches off at the
    pivot gets all this one wants."""

    subscription: SubscriptionId
    pivot: NodeId
    hops: int
    lasts: list[tuple[PublisherId, Counter]]


class Run(NamedTuple):
    """Consecutive messages with the same attributes."""

    attributes: dict[str, bool | int | float | str]
    payloads: tuple[bytes, ...]


class Event(NamedTuple):
    """Messages of one publisher with consecutive counters up to `last`."""

    publisher: PublisherId
    topic: Topic
    last: Counter
    runs: tuple[Run, ...]

    @property
    def size(self) -> int:
        """How many messages."""
        return sum([len(run.payloads) for run in self.runs])

    @property
    def message(self) -> MessageId:
        """The first of them."""
        broker, incarnation, _ = self.publisher
        return MessageId(broker, incarnation, self.last - self.size + 1)

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return tuple([payload for run in self.runs for payload in run.payloads])


class Gone(NamedTuple):
    """The broker was removed: publishers of this life of it, and those before, will publish no more."""

    broker: NodeId
    life: Incarnation


class Restore(NamedTuple):
    """For a broker that restarted: publishers and subscriptions on the sender's side of it, or a part of them; and of
    publishers on the other side those that everybody on this side knows."""

    ads: list[tuple[PublisherId, Topic, WireFilter, Counter]]
    subscriptions: list[tuple[SubscriptionId, WireFilter]]
    echoed: list[PublisherId]
    is_last: bool


Body: TypeAlias = (
    Advertise | AdvertiseEcho | Unadvertise | Subscribe | Unsubscribe | Marker | Partial | Event | Gone | Restore
)


class Header(NamedTuple):
    """Who made the message and in which of its turns; who made this copy, for whom; and what orders it.

    `turns`: for brokers that processed the message, which message it was for them. `stamps`: numbers each of them gave
    it, by target. `labels`: numbers of brokers that were bypassed and gave theirs too late to order anything. `past`:
    by target, how many messages each broker had issued to it before.
    """

    origin: NodeId
    turn: int
    by: NodeId
    to: NodeId
    turns: Table
    stamps: Tables
    labels: Tables
    past: Tables

    @property
    def message(self) -> tuple[NodeId, int]:
        return self.origin, self.turn

    @property
    def identity(self) -> tuple[object, ...]:
        """Copies of a message that passed the same brokers still differ in what they wait for by who made them, and in
        whom it was promised to by then."""
        promised = sum([len(numbers) for table in (self.stamps, self.labels) for numbers in table.values()])
        return self.message, self.by, promised, tuple(sorted(self.turns.items()))


@dataclass(slots=True)
class Copy(Packet):
    header: Header
    body: Any


@dataclass(slots=True)
class AdvertiseCopy(Copy):
    header: Header
    body: Advertise


@dataclass(slots=True)
class EchoCopy(Copy):
    header: Header
    body: AdvertiseEcho


@dataclass(slots=True)
class UnadvertiseCopy(Copy):
    header: Header
    body: Unadvertise


@dataclass(slots=True)
class SubscribeCopy(Copy):
    header: Header
    body: Subscribe


@dataclass(slots=True)
class UnsubscribeCopy(Copy):
    header: Header
    body: Unsubscribe


@dataclass(slots=True)
class MarkerCopy(Copy):
    header: Header
    body: Marker


@dataclass(slots=True)
class PartialCopy(Copy):
    header: Header
    body: Partial


@dataclass(slots=True)
class EventCopy(Copy):
    header: Header
    body: Event
    publication: ClassVar[bool] = True

    @property
    def topic(self) -> Topic:
        return self.body.topic

    @property
    def message(self) -> MessageId:
        return self.body.message

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return self.body.payloads


@dataclass(slots=True)
class GoneCopy(Copy):
    header: Header
    body: Gone


@dataclass(slots=True)
class RestoreCopy(Copy):
    header: Header
    body: Restore


COPIES: Mapping[type, type[Copy]] = {
    Advertise: AdvertiseCopy,
    AdvertiseEcho: EchoCopy,
    Unadvertise: UnadvertiseCopy,
    Subscribe: SubscribeCopy,
    Unsubscribe: UnsubscribeCopy,
    Marker: MarkerCopy,
    Partial: PartialCopy,
    Event: EventCopy,
    Gone: GoneCopy,
    Restore: RestoreCopy,
}


@dataclass(slots=True)
class Want(Packet):
    """The sender lacks what `broker` issued to it after `after`; `standing`: until it says otherwise."""

    broker: NodeId
    after: int
    standing: bool


@dataclass(slots=True)
class Unwant(Packet):
    """The sender is no longer cut off from `broker`."""

    broker: NodeId


@dataclass(slots=True)
class Processed(Packet):
    """How many messages of each broker the sender has processed without a hole."""

    got: Table


@dataclass(slots=True)
class Restarted(Packet):
    """The sender begins this life and remembers nothing of those before, which are over."""

    life: Incarnation


@dataclass(slots=True)
class Removed(Packet):
    """The receiver's life up to this one is over, as far as the sender is concerned: it was silent for too long."""

    life: Incarnation


@dataclass(slots=True)
class Living(Packet):
    """The sender has been in this life for a while: who begins, or was cut off, cannot know of it."""

    life: Incarnation


@dataclass(slots=True)
class Alive(Packet):
    """Nothing else was to be said for a while."""


PACKETS: tuple[type[Packet], ...] = (
    *(kind for kind in COPIES.values() if kind is not RestoreCopy),
    Want,
    Unwant,
    Processed,
    Restarted,
    RestoreCopy,
    Removed,
    Alive,
    Living,
)
