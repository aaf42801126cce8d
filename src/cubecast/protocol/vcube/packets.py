"""What VCube-PS and the single-tree baselines send. Immutable by convention: forwarding shares the object.

Not frozen, for the reason given in `contract`: the simulator builds millions of acknowledgements.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.ids import Counter, MessageId, NodeId
from cubecast.protocol.contract import Packet
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
    bit: int = field(init=False, repr=False, compare=False)
    groups: Groups = field(init=False, repr=False, compare=False)
    acknowledgement: "PubAck | None" = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.bit = 1 << self.message.source
        self.groups = grouped(self.barrier)

    @property
    def key(self) -> MessageId:
        return self.message

    def ack(self) -> "PubAck":
        """All acknowledgements of a publication are alike, so they are one object."""
        if self.acknowledgement is None:
            self.acknowledgement = PubAck(self.topic, self.message)
        return self.acknowledgement


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
