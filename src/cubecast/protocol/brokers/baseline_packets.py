"""What brokers of the two systems LoCaPS is compared with send each other."""

from dataclasses import dataclass
from typing import ClassVar

from cubecast.ids import MessageId, Topic
from cubecast.protocol.brokers.packets import SubscriptionId, Table, WireFilter
from cubecast.protocol.contract import Packet


@dataclass(slots=True)
class DeltaSubscribe(Packet):
    subscription: SubscriptionId
    wanted: WireFilter


@dataclass(slots=True)
class DeltaSubscribed(Packet):
    """The sender and all brokers behind it, seen from the subscriber, know of the subscription."""

    subscription: SubscriptionId


@dataclass(slots=True)
class DeltaUnsubscribe(Packet):
    subscription: SubscriptionId


@dataclass(slots=True)
class DeltaEvent(Packet):
    """Messages of one publisher from `message` on."""

    topic: Topic
    message: MessageId
    attributes: dict[str, bool | int | float | str]
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True


@dataclass(slots=True)
class DeltaEventDone(Packet):
    """The messages reached everybody behind the sender."""

    topic: Topic
    message: MessageId


@dataclass(slots=True)
class GryphonSubscribe(Packet):
    """The leaf's subscription of this number, on its way to the root."""

    leaf: int
    number: int
    subscription: SubscriptionId
    wanted: WireFilter


@dataclass(slots=True)
class GryphonKnown(Packet):
    """The root knows of so many subscriptions of the leaf."""

    leaf: int
    number: int


@dataclass(slots=True)
class GryphonEvent(Packet):
    """Messages of the root, with how many subscriptions of each leaf it knew of."""

    topic: Topic
    message: MessageId
    attributes: dict[str, bool | int | float | str]
    payloads: tuple[bytes, ...]
    known: Table
    publication: ClassVar[bool] = True


DELTA_PACKETS = (DeltaSubscribe, DeltaSubscribed, DeltaUnsubscribe, DeltaEvent, DeltaEventDone)
GRYPHON_PACKETS = (GryphonSubscribe, GryphonKnown, GryphonEvent)
