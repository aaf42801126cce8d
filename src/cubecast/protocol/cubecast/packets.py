"""What cubecast nodes send each other. Immutable by convention: forwarding shares the object.

Every packet opens with the same two fields: `by`, the incarnation of the node that sent it on this hop, and `dead`, the
incarnations that node holds faulty and cannot yet assume everybody to know of. Receivers look at these two first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.ids import Counter, Incarnation, MessageId, Topic
from cubecast.protocol.contract import Carried, Packet
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.vocabulary import (
    Bitmap,
    Dependency,
    Entry,
    Holding,
    Life,
    Member,
    Reach,
    Run,
    Since,
    Standing,
    Start,
)


class Part(NamedTuple):
    """A publication in a convoy, without what the convoy says for all."""

    message: MessageId
    payloads: tuple[bytes, ...]
    members: Bitmap
    epochs: tuple[Member, ...]
    starts: tuple[Start, ...]
    dependencies: tuple[Dependency, ...]
    stable: Counter

    @classmethod
    def of(cls, packet: Publication) -> "Part":
        return cls(
            packet.message,
            packet.payloads,
            packet.members,
            packet.epochs,
            packet.starts,
            packet.dependencies,
            packet.stable,
        )


@dataclass(slots=True)
class Convoy(Packet):
    """Several publications for the same node, causes before effects."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    messages: tuple[Part, ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> list[Carried]:
        return [
            Carried(self.topic, part.message, len(part.payloads), sum(map(len, part.payloads)))
            for part in self.messages
        ]

    def publications(self) -> Iterator[Publication]:
        for part in self.messages:
            yield Publication(self.by, self.dead, self.topic, *part)


@dataclass(slots=True)
class Ack(Packet):
    """The publications opening with these messages reached the sender and everybody it had to forward them to."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    messages: tuple[MessageId, ...]


@dataclass(slots=True)
class Ask(Packet):
    """The sender still keeps publications of the receiver up to `counter`: are they stable?"""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    incarnation: Incarnation
    counter: Counter


@dataclass(slots=True)
class Stable(Packet):
    """All of the sender's publications up to `counter` reached everybody they were for."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    counter: Counter


@dataclass(slots=True)
class Wave(Packet):
    """SUB, UNS (with the sender's entry) or the registration of a publisher (without)."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    number: int
    entry: Entry | None
    published: bool = False
    """The sender published on the topic in this incarnation."""
    resumed: bool = False
    """The sender's process lived before: answers say whether what that process knows of is accounted for."""
    reached: tuple[Reach, ...] = ()
    """How far lives that are over published, as that process knows: its own, and those it heard."""
    since: tuple[Since, ...] = ()
    """Of the subscriptions of the receiver's that this process knows of, in whatever life."""
    entries: tuple[Entry, ...] = ()
    """Who was subscribed in its former lives, as it knows."""


@dataclass(slots=True)
class WaveAck(Packet):
    """What the sender knows of the topic, the wave's own entry included."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    incarnation: Incarnation
    number: int
    entries: tuple[Entry, ...]
    accounted: bool = True
    """All that the wave spoke of was handed to the application here, or named as missing."""
    start: Counter = 0
    """The first message of the sender's that is for the subscription the wave made known; 0: it made none known."""
    reached: tuple[Reach, ...] = ()
    """How far lives that are over published, as the sender knows and the wave did not."""
    since: tuple[Since, ...] = ()
    """Of the receiver's subscriptions, as in the wave of a process that lived before."""


@dataclass(slots=True)
class Hello(Packet):
    """A new incarnation of the sender asks to be known."""

    by: Incarnation
    dead: tuple[Life, ...]


@dataclass(slots=True)
class Welcome(Packet):
    """The sender knows the receiver's incarnation now, and tells whom else it knows."""

    by: Incarnation
    dead: tuple[Life, ...]
    incarnation: Incarnation
    active: bool
    """False from a node that is joining itself."""
    nodes: tuple[Standing, ...]


@dataclass(slots=True)
class Introduction(Packet):
    """The sender began to take part knowing the receiver's incarnation, or asks whether the receiver did so."""

    by: Incarnation
    dead: tuple[Life, ...]
    incarnation: Incarnation
    known: bool


@dataclass(slots=True)
class Settle(Packet):
    """What the sender has of faulty sources, given whom it holds faulty (per node, the newest such incarnation)."""

    by: Incarnation
    dead: tuple[Life, ...]
    version: int
    asking: bool
    faulty: tuple[Life, ...]
    holdings: tuple[Holding, ...]


@dataclass(slots=True)
class SettlePart(Packet):
    """One of the pieces of a `Settle` that is too large for one packet; it counts when all are there."""

    by: Incarnation
    dead: tuple[Life, ...]
    version: int
    asking: bool
    faulty: tuple[Life, ...]
    part: int
    """From 0."""
    parts: int
    holdings: tuple[Holding, ...]


@dataclass(slots=True)
class Obituary(Packet):
    """The receiver's incarnation is held faulty by the sender, or unknown to it, who lives with these nodes."""

    by: Incarnation
    dead: tuple[Life, ...]
    incarnation: Incarnation
    alive: Bitmap
    stranger: bool = False
    """Unknown, not held faulty: the two began apart from each other."""


@dataclass(slots=True)
class Test(Packet):
    """Are you there? Answered by another one that does not ask."""

    by: Incarnation
    dead: tuple[Life, ...]
    asking: bool


@dataclass(slots=True)
class Inquiry(Packet):
    """Which topics do you know beyond this one, in alphabetical order?"""

    by: Incarnation
    dead: tuple[Life, ...]
    number: int
    after: Topic


@dataclass(slots=True)
class TopicList(Packet):
    """The answer to an inquiry of the receiver's incarnation."""

    by: Incarnation
    dead: tuple[Life, ...]
    incarnation: Incarnation
    number: int
    after: Topic
    topics: tuple[Topic, ...]
    more: bool


@dataclass(slots=True)
class MissingReport(Packet):
    """The sender named these messages of the receiver's process as missing, and repeats it until it is answered."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    runs: tuple[Run, ...]


@dataclass(slots=True)
class MissingReportAck(Packet):
    """The receiver's news of missing messages arrived."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    runs: tuple[Run, ...]


AnyPacket: TypeAlias = (
    Publication
    | Ack
    | Ask
    | Stable
    | Wave
    | WaveAck
    | Hello
    | Welcome
    | Settle
    | Obituary
    | Test
    | Inquiry
    | TopicList
    | Convoy
    | SettlePart
    | Introduction
    | MissingReport
    | MissingReportAck
)
FIRST_PACKETS: tuple[type, ...] = (Publication, Ack, Ask, Stable, Wave, WaveAck, Hello, Welcome, Settle, Obituary, Test)
LATER_PACKETS: tuple[type, ...] = (
    Inquiry,
    TopicList,
    Convoy,
    SettlePart,
    Direct,
    Introduction,
    MissingReport,
    MissingReportAck,
)
PACKETS = (*FIRST_PACKETS, *LATER_PACKETS)
