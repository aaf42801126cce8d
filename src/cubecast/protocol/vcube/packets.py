"""What VCube-PS and the single-tree baselines send. Immutable by convention: forwarding shares the object.

Not frozen, for the reason given in `contract`: the simulator builds millions of acknowledgements.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple, TypeAlias

from cubecast.ids import Counter, MessageId, NodeId


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
class Pub:
    topic: str
    message: MessageId
    payloads: tuple[bytes, ...]
    barrier: tuple[MessageId, ...]
    publication: ClassVar[bool] = True

    @property
    def key(self) -> MessageId:
        return self.message


@dataclass(slots=True)
class PubAck:
    topic: str
    message: MessageId
    publication: ClassVar[bool] = False


@dataclass(slots=True)
class Sub:
    topic: str
    source: NodeId
    counter: Counter
    publication: ClassVar[bool] = False

    @property
    def key(self) -> OperationKey:
        return (Operation.SUB, self.source, self.counter)


@dataclass(slots=True)
class Uns:
    topic: str
    source: NodeId
    counter: Counter
    publication: ClassVar[bool] = False

    @property
    def key(self) -> OperationKey:
        return (Operation.UNS, self.source, self.counter)


@dataclass(slots=True)
class OperationAck:
    """Acknowledges a SUB or an UNS; a SUB's gathers, on the way up, the entry of every subscriber it passes."""

    topic: str
    operation: Operation
    source: NodeId
    counter: Counter
    members: tuple[Entry, ...]
    publication: ClassVar[bool] = False

    @property
    def key(self) -> OperationKey:
        return (self.operation, self.source, self.counter)
