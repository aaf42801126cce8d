"""What Brisa's processes send each other about flows, besides HyParView's packets."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Packet

Path = tuple[NodeId, ...]
MOST_PATH = 64


class FlowId(NamedTuple):
    """The messages of one publisher to one topic."""

    topic: Topic
    root: NodeId
    incarnation: Incarnation


class Position(NamedTuple):
    """Where a process is in a flow's tree: what its way from the root costs, how long it is, and through whom."""

    metric: float
    depth: int
    path: Path
    cost: float
    """What a link to this process costs its child, where the strategy leaves that to the parent."""


class Standing(NamedTuple):
    """What a process says about itself in a flow. `orphan`: it has no way to the root."""

    have: Counter
    position: Position
    orphan: bool


@dataclass(slots=True)
class FlowData(Packet):
    """Messages of a flow from `first` on."""

    flow: FlowId
    first: Counter
    payloads: tuple[bytes, ...]
    publication: ClassVar[bool] = True

    @property
    def topic(self) -> Topic:
        return self.flow.topic

    @property
    def message(self) -> MessageId:
        return MessageId(self.flow.root, self.flow.incarnation, self.first)

    @property
    def last(self) -> Counter:
        return self.first + len(self.payloads) - 1


@dataclass(slots=True)
class Data(FlowData):
    """Along the flow's own tree. `route`: those it was asked for through, still to be passed."""

    position: Position
    recovered: bool
    route: Path


@dataclass(slots=True)
class Feed(Packet):
    """On: feed me, I have so much. Off: do not; `mutual`: and I do not feed you."""

    flow: FlowId
    on: bool
    mutual: bool
    standing: Standing


@dataclass(slots=True)
class Info(Packet):
    flow: FlowId
    standing: Standing


@dataclass(slots=True)
class Fetch(Packet):
    """The sender lacks these messages; the route says whom the answer goes back through."""

    flow: FlowId
    low: Counter
    high: Counter
    route: Path


@dataclass(slots=True)
class Lost(Packet):
    """Messages up to this one are not to be had here; `sure`: the root says so."""

    flow: FlowId
    upto: Counter
    sure: bool
    route: Path


@dataclass(slots=True)
class KeepAlive(Packet):
    flows: tuple[tuple[FlowId, Standing], ...]
    stamp: float
    """The sender's clock, to be sent back."""


@dataclass(slots=True)
class KeepAliveEcho(Packet):
    stamp: float


@dataclass(slots=True)
class GuestData(FlowData):
    """Along the tree of another publisher's flow, the carrier."""

    carrier: FlowId


@dataclass(slots=True)
class GuestFetch(Packet):
    """The sender lacks what follows on `have`."""

    flow: FlowId
    have: Counter


@dataclass(slots=True)
class GuestsAlive(Packet):
    """How far the sender is with each guest: its carrier, what it has, and from where on it keeps messages."""

    guests: tuple[tuple[FlowId, FlowId, Counter, Counter], ...]


FLOW_PACKETS = (Data, Feed, Info, Fetch, Lost, KeepAlive, KeepAliveEcho, GuestData, GuestFetch, GuestsAlive)
