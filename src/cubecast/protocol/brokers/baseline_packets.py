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
    """On its way to the root; its number is the next of its broker's."""

    subscription: SubscriptionId
    wanted: WireFilter


@dataclass(slots=True)
class GryphonKnown(Packet):
    """The root knows of the subscription."""

    subscription: SubscriptionId


@dataclass(slots=True)
class GryphonPublish(Packet):
    """Messages on their way to the root."""

    topic: Topic
    message: MessageId
    attributes: dict[str, bool | int | float | str]
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True


@dataclass(slots=True)
class GryphonEvent(Packet):
    """Messages on their way down, with how many subscriptions of each broker the root knew of."""

    topic: Topic
    message: MessageId
    attributes: dict[str, bool | int | float | str]
    payloads: tuple[bytes, ...]
    known: Table
    publication: ClassVar[bool] = True


DELTA_PACKETS = (DeltaSubscribe, DeltaSubscribed, DeltaUnsubscribe, DeltaEvent, DeltaEventDone)
GRYPHON_PACKETS = (GryphonSubscribe, GryphonKnown, GryphonPublish, GryphonEvent)
