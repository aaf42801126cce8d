"""What a node says about itself when asked: the machine's description, with addresses and queues beside it."""

from itertools import islice
from time import monotonic
from typing import Any

import msgspec

from cubecast.errors import Closed
from cubecast.ids import NodeId
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.members.peers import Peers
from cubecast.net.node.chains import Chains
from cubecast.net.node.driver import Driver
from cubecast.net.settings.config import NodeConfig

MOST_SHOWN = 1000
"""Of held publications and so on; an answer must fit into a frame."""
MOST_TOPICS = 250
"""Asking for the status must not keep the node from its work: a topic takes ten microseconds."""
LONG = ("topics", "outgoing", "held", "held_back", "waiting", "subscribed")
"""Parts of which the first ones will do; how many there are in all is said beside most of them."""

_encode = msgspec.msgpack.Encoder().encode


def describe(config: NodeConfig, directory: Directory, peers: Peers, driver: Driver | None) -> dict[str, Any]:
    me = directory.me
    if me is None or driver is None:
        raise Closed("this node has no place yet")
    machine = driver.inspector.describe(monotonic(), MOST_TOPICS)
    standings = {one["node"]: one for one in machine.pop("standings")}
    known = sorted(directory.places.values(), key=lambda place: place.node)
    queued, living = peers.queued, set(driver.inspector.living)
    return {
        "node": me.node,
        "incarnation": me.incarnation,
        "address": me.address,
        "cluster": config.cluster,
        "dimension": directory.told_dimension,
        "members": [_member(place, me, standings.get(place.node), queued, living) for place in known],
        "overlay": driver.inspector.overlay().to_json(MOST_SHOWN),
        **machine,
        "held": Chains(machine["held"], peers, driver).explained(MOST_SHOWN),
        "held_in_all": len(machine["held"]),
        "held_back": driver.held_back,
        "waiting": machine["waiting"][:MOST_SHOWN],
    }


def _member(
    place: Place, me: Place, standing: dict[str, Any] | None, queued: dict[NodeId, int], living: set[NodeId]
) -> dict[str, Any]:
    """A place that a node holds or held; `queued` bytes wait for it to read."""
    return {
        "node": place.node,
        "incarnation": place.incarnation if standing is None else standing["incarnation"],
        "address": place.address,
        "alive": place.node in living if standing is None else standing["alive"],
        "connected": place.node == me.node or place.node in queued,
        "queued": queued.get(place.node, 0),
    }


def fitting(status: dict[str, Any], most: int) -> dict[str, Any]:
    """The same in at most so many bytes, with as much of each long part as there is room for."""
    shown = MOST_SHOWN
    while len(_encode(status)) > most:
        if shown <= 1:
            return {"error": "there is more to say about this node than fits into one answer"}
        shown //= 2
        status = status | {part: _first(status[part], shown) for part in LONG if part in status}
    return status


def _first(part: Any, shown: int) -> Any:
    return dict(islice(part.items(), shown)) if isinstance(part, dict) else part[:shown]
