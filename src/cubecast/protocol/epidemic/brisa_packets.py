"""What Brisa's processes send each other about flows, besides HyParView's packets."""

from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar, NamedTuple

from cubecast.errors import RemoteProtocolError
from cubecast.ids import ID_LIMIT, Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.epidemic.hyparview import ForwardJoin, Probe, Shuffle

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


# What no correct process of an overlay sends is refused before anything changes.

MOST_COUNTER = 1 << 48
MOST_IDS = 32
MOST_ROUTE = 17
MOST_STATES = 64
MOST_FLOWS_KNOWN = 1024
MOST_TTL = 16


def check_packet(packet: Any) -> None:
    if not _is_right(packet):
        raise RemoteProtocolError(f"a {type(packet).__name__} that no process sends")


def _is_right(packet: Any) -> bool:
    match packet:
        case Data():
            counters = packet.first > 0 and packet.last < MOST_COUNTER
            return counters and _flow(packet.flow) and _position(packet.position) and _ids(packet.route, MOST_ROUTE)
        case Feed() | Info():
            return _flow(packet.flow) and _standing(packet.standing)
        case Fetch():
            return (
                _flow(packet.flow) and 0 < packet.low <= packet.high < MOST_COUNTER and _ids(packet.route, MOST_ROUTE)
            )
        case Lost():
            return _flow(packet.flow) and 0 < packet.upto < MOST_COUNTER and _ids(packet.route, MOST_ROUTE)
        case KeepAlive():
            states = len(packet.flows) <= MOST_STATES and not isnan(packet.stamp)
            return states and all(_flow(flow) and _standing(one) for flow, one in packet.flows)
        case GuestData():
            counters = packet.first > 0 and packet.last < MOST_COUNTER
            return counters and _flow(packet.flow) and _flow(packet.carrier)
        case GuestFetch():
            return _flow(packet.flow) and 0 <= packet.have < MOST_COUNTER
        case GuestsAlive():
            return len(packet.guests) <= MOST_STATES and all(map(_guest, packet.guests))
        case ForwardJoin():
            return 0 <= packet.newcomer < ID_LIMIT and packet.ttl <= MOST_TTL
        case Shuffle():
            return 0 <= packet.origin < ID_LIMIT and packet.ttl <= MOST_TTL and _ids(packet.ids, MOST_IDS)
        case Probe():
            return _ids(packet.ids, MOST_IDS) and max(len(packet.have), len(packet.before)) <= MOST_FLOWS_KNOWN
        case _:
            return _ids(getattr(packet, "ids", ()), MOST_IDS)


def _guest(state: tuple[FlowId, FlowId, int, int]) -> bool:
    flow, carrier, have, kept_from = state
    return _flow(flow) and _flow(carrier) and 0 <= have < MOST_COUNTER and 0 <= kept_from < MOST_COUNTER


def _flow(flow: FlowId) -> bool:
    return 0 <= flow.root < ID_LIMIT and flow.incarnation >= 0


def _standing(standing: Any) -> bool:
    return 0 <= standing.have < MOST_COUNTER and _position(standing.position)


def _position(position: Position) -> bool:
    numbers = position.metric >= 0 and position.cost >= 0 and 0 <= position.depth < MOST_COUNTER
    return numbers and _ids(position.path, MOST_PATH)


def _ids(ids: tuple[NodeId, ...], most: int) -> bool:
    return len(ids) <= most and min(ids, default=0) >= 0 and max(ids, default=0) < ID_LIMIT
