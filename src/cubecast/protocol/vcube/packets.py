"""What VCube-PS and the single-tree baselines send. Immutable by convention: forwarding shares the object.

Not frozen, for the reason given in `contract`: the simulator builds millions of acknowledgements.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.ids import Counter, MessageId, NodeId
from cubecast.protocol.contract import Deliver, Packet
from cubecast.protocol.order.barrier import Groups, grouped
from cubecast.protocol.vcube.topology import MAX_DIMENSION

MOST_SOURCES = 1 << MAX_DIMENSION
"""Sources become bits of masks: whoever takes a `Pub` from outside makes sure first that they lie below this."""


class Operation(Enum):
    SUB = "SUB"
    UNS = "UNS"


class Entry(NamedTuple):
    """The newest operation of a node on a topic, as somebody knows it; a higher counter is newer."""

    node: NodeId
    operation: Operation
    counter: Counter


OperationKey: TypeAlias = tuple[Operation, NodeId, Counter]


@dataclass(slots=True)
class Pub(Packet):
    topic: str
    message: MessageId
    payloads: tuple[bytes, ...]
    barrier: tuple[MessageId, ...]
    publication: ClassVar[bool] = True

    # Derived once, used at every hop.
    source: NodeId = field(init=False, repr=False, compare=False)
    bit: int = field(init=False, repr=False, compare=False)
    counter: Counter = field(init=False, repr=False, compare=False)
    opens: bool = field(init=False, repr=False, compare=False)
    """Whether its publisher never said anything before."""
    groups: Groups = field(init=False, repr=False, compare=False)
    acknowledgement: "PubAck" = field(init=False, repr=False, compare=False)
    delivery: Deliver = field(init=False, repr=False, compare=False)
    """All acknowledgements and all deliveries of a publication are alike, so each is one object."""

    def __post_init__(self) -> None:
        self.source, incarnation, self.counter = self.message
        self.bit = 1 << self.source
        self.opens = self.counter == 1 and not incarnation
        self.groups = grouped(self.barrier)
        self.acknowledgement = PubAck(self.topic, self.message)
        self.delivery = Deliver(self.topic, self.message, self.payloads)

    @property
    def key(self) -> MessageId:
        return self.message


@dataclass(slots=True)
class PubAck(Packet):
    topic: str
    message: MessageId


@dataclass(slots=True)
class Sub(Packet):
    topic: str
    source: NodeId
    counter: Counter

    @property
    def key(self) -> OperationKey:
        return (Operation.SUB, self.source, self.counter)


@dataclass(slots=True)
class Uns(Packet):
    topic: str
    source: NodeId
    counter: Counter

    @property
    def key(self) -> OperationKey:
        return (Operation.UNS, self.source, self.counter)


@dataclass(slots=True)
class OperationAck(Packet):
    """Acknowledges a SUB or an UNS; a SUB's gathers, on the way up, the entry of every subscriber it passes."""

    topic: str
    operation: Operation
    source: NodeId
    counter: Counter
    members: tuple[Entry, ...]

    @property
    def key(self) -> OperationKey:
        return (self.operation, self.source, self.counter)
