"""What no correct process of an overlay sends is refused before anything changes."""

from math import isnan
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import ID_LIMIT, NodeId
from cubecast.protocol.epidemic.brisa_packets import (
    MOST_PATH,
    Data,
    Feed,
    Fetch,
    FlowId,
    GuestData,
    GuestFetch,
    GuestsAlive,
    Info,
    KeepAlive,
    Lost,
    Position,
)
from cubecast.protocol.epidemic.hyparview import ForwardJoin, Probe, Shuffle

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
