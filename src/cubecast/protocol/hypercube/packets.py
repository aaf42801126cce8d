"""What VCube-PS, VCube-PB, the single-tree baselines and VCube's diagnosis send.

Immutable by convention: forwarding shares the object. Not frozen, for the reason given in `contract`: the simulator
builds millions of acknowledgements.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, MessageId, NodeId
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Deliver
from cubecast.protocol.hypercube.topology import MAX_DIMENSION
from cubecast.protocol.order import Groups, grouped

MOST_SOURCES = 1 << MAX_DIMENSION
"""Sources become bits of masks."""


def number_of(message: MessageId) -> int:
    """The message as one integer: a key that is hashed in no time."""
    source, incarnation, counter = message
    return (incarnation << 32 | counter) << MAX_DIMENSION | source


def message_of(number: int) -> MessageId:
    rest, source = divmod(number, MOST_SOURCES)
    return MessageId(source, rest >> 32, rest & (1 << 32) - 1)


def check_ids(kind: str, ids: Iterable[NodeId]) -> None:
    """Of a packet from outside, before ids become bits of masks: a huge one would fill the memory."""
    if not all(0 <= one < MOST_SOURCES for one in ids):
        raise RemoteProtocolError(f"malformed {kind}: a source that does not exist")


class Operation(Enum):
    SUB = "SUB"
    UNS = "UNS"


class Entry(NamedTuple):
    """The newest operation of a node on a topic, as the sender knows it; a higher counter is newer."""

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
    number: int = field(init=False, repr=False, compare=False)
    source: NodeId = field(init=False, repr=False, compare=False)
    bit: int = field(init=False, repr=False, compare=False)
    counter: Counter = field(init=False, repr=False, compare=False)
    opens: bool = field(init=False, repr=False, compare=False)
    """Whether its publisher never said anything before."""
    groups: Groups = field(init=False, repr=False, compare=False)
    needed_firsts: int | None = field(init=False, repr=False, compare=False)
    """Of a message that opens and depends on nothing but first messages: their sources."""
    acknowledgement: "PubAck" = field(init=False, repr=False, compare=False)
    delivery: Deliver = field(init=False, repr=False, compare=False)
    """All acknowledgements and all deliveries of a publication are alike, so each is one object."""

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        """Of what came from outside."""
        _, message, _, barrier = values
        check_ids("Pub", (one.source for one in (message, *barrier)))

    def __post_init__(self) -> None:
        self.source, incarnation, self.counter = self.message
        self.bit = 1 << self.source
        self.opens = self.counter == 1 and not incarnation
        self.groups = grouped(self.barrier)
        firsts = dict(self.groups)
        sources = firsts.pop(1, 0)
        self.needed_firsts = sources if self.opens and not firsts else None
        self.acknowledgement = PubAck(self.topic, self.message)
        self.number = self.acknowledgement.number
        self.delivery = Deliver(self.topic, self.message, self.payloads)


@dataclass(slots=True)
class PubAck(Packet):
    topic: str
    message: MessageId
    number: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.number = number_of(self.message)


@dataclass(slots=True)
class Sub(Packet):
    topic: str
    source: NodeId
    counter: Counter

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        check_ids("Sub", values[1:2])

    @property
    def key(self) -> OperationKey:
        return (Operation.SUB, self.source, self.counter)


@dataclass(slots=True)
class Uns(Packet):
    topic: str
    source: NodeId
    counter: Counter

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        check_ids("Uns", values[1:2])

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

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        _, _, source, _, members = values
        check_ids("OperationAck", (source, *(entry.node for entry in members)))

    @property
    def key(self) -> OperationKey:
        return (self.operation, self.source, self.counter)


@dataclass(slots=True)
class Membership(Packet):
    """VCube-Top: what the sender learned about memberships since its last testing round."""

    news: tuple[tuple[str, Entry], ...]

    @staticmethod
    def check(values: tuple[Any, ...]) -> None:
        check_ids("Membership", (entry.node for _, entry in values[0]))


@dataclass(slots=True)
class Test(Packet):
    """Are you there? `event` is the tester's event counter for the tested node, so that it hears of a suspicion."""

    __test__: ClassVar[bool] = False  # not a test case, whatever a test runner thinks of the name

    number: int
    event: int


@dataclass(slots=True)
class TestReply(Packet):
    """Yes; and this is what I know of everybody: one event counter per id."""

    __test__: ClassVar[bool] = False

    number: int
    events: tuple[int, ...]
