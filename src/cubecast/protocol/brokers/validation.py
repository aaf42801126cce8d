"""What no correct broker sends is refused before anything changes."""

from typing import Any

from cubecast.errors import BadInput, RemoteProtocolError
from cubecast.protocol.brokers.packets import (
    Advertise,
    AdvertiseEcho,
    Copy,
    Event,
    Gone,
    Marker,
    Partial,
    Restore,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from cubecast.protocol.brokers.received import MOST_LIVES
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.filters import Filter
from cubecast.protocol.filters.conditions import from_wire

MOST = 1 << 60
"""Of anything that is counted."""


def check_copy(copy: Copy, tree: BrokerTree, faults: int) -> None:
    header, brokers = copy.header, tree.neighbours
    tables = (header.stamps, header.labels, header.past)
    named = {header.origin, header.by, header.to, *header.turns}
    named |= {broker for table in tables for one, inside in table.items() for broker in (one, *inside)}
    if not named <= brokers.keys():
        raise RemoteProtocolError("a copy names brokers that do not exist")
    numbers = [header.turn, *header.turns.values()]
    numbers += [number for table in tables for inside in table.values() for number in inside.values()]
    if not all(0 < number < MOST for number in numbers):
        raise RemoteProtocolError("a copy has numbers that no broker gives")
    if header.turns.get(header.origin) != header.turn or header.by not in header.turns:
        raise RemoteProtocolError("a copy whose origin or maker did not process it")
    _check_body(copy.body, tree, faults)


def _check_body(body: Any, tree: BrokerTree, faults: int) -> None:
    match body:
        case Event(publisher, _, last, runs):
            right = publisher.broker in tree.neighbours and runs and all(run.payloads for run in runs)
            right = right and body.size <= last < MOST
        case Advertise(publisher, _, _, published):
            right = publisher.broker in tree.neighbours and 0 <= published < MOST and publisher.number > 0
            read_filter(body.template)
        case AdvertiseEcho(publisher, broker):
            right = {publisher.broker, broker} <= tree.neighbours.keys()
        case Unadvertise(publisher, last):
            right = publisher.broker in tree.neighbours and publisher.number > 0 and 0 <= last < MOST
        case Subscribe(subscription):
            right = subscription.broker in tree.neighbours
            read_filter(body.wanted)
        case Unsubscribe(subscription):
            right = subscription.broker in tree.neighbours
        case Marker(publisher, subscription, last):
            right = {publisher.broker, subscription.broker} <= tree.neighbours.keys() and 0 <= last < MOST
        case Partial(subscription, pivot, hops, lasts):
            named = {subscription.broker, pivot, *(publisher.broker for publisher, _ in lasts)}
            right = named <= tree.neighbours.keys() and 0 <= hops <= faults and all(0 <= n < MOST for _, n in lasts)
        case Gone(broker, life):
            right = broker in tree.neighbours and 0 <= life < MOST_LIVES
        case Restore(ads, subscriptions, echoed, _):
            named = {ad[0].broker for ad in ads} | {one[0].broker for one in subscriptions}
            named |= {publisher.broker for publisher in echoed}
            right = named <= tree.neighbours.keys() and all(0 <= count < MOST for *_, count in ads)
            for wire in (*(template for _, _, template, _ in ads), *(wanted for _, wanted in subscriptions)):
                read_filter(wire)
        case _:
            right = False
    if not right:
        raise RemoteProtocolError(f"a {type(body).__name__} that no broker sends")


def read_filter(wire: Any) -> Filter:
    """A filter that came from another broker."""
    try:
        return from_wire(wire)
    except BadInput as error:
        raise RemoteProtocolError(str(error)) from None
