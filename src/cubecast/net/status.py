"""What a node says about itself when asked: the machine's description, with addresses and queues beside it."""

from itertools import islice
from time import monotonic
from typing import Any

from cubecast.errors import Closed
from cubecast.ids import NodeId
from cubecast.net.config import NodeConfig
from cubecast.net.directory import Directory
from cubecast.net.driver import Driver
from cubecast.net.handshake import Place
from cubecast.net.observe.chains import Chains
from cubecast.net.peers import Peers

MOST_SHOWN = 1000
"""Of topics, held publications and so on; an answer must fit into a frame."""


def describe(config: NodeConfig, directory: Directory, peers: Peers, driver: Driver | None) -> dict[str, Any]:
    me = directory.me
    if me is None or driver is None:
        raise Closed("this node has no place yet")
    machine = driver.machine.describe(monotonic())
    standings = {one["node"]: one for one in machine.pop("standings")}
    known = sorted(directory.places.values(), key=lambda place: place.node)
    queued = peers.queued
    return {
        "node": me.node,
        "incarnation": me.incarnation,
        "address": me.address,
        "cluster": config.cluster,
        "dimension": directory.dimension,
        "members": [_member(place, me, standings.get(place.node), queued) for place in known],
        **machine,
        "topics": dict(islice(machine["topics"].items(), MOST_SHOWN)),
        "topics_in_all": len(machine["topics"]),
        "held": Chains(machine["held"], config, peers, driver).explained(MOST_SHOWN),
        "held_in_all": len(machine["held"]),
        "held_back": driver.held_back,
    }


def _member(place: Place, me: Place, standing: dict[str, Any] | None, queued: dict[NodeId, int]) -> dict[str, Any]:
    """A place somebody holds or held; `queued` bytes wait for it to read."""
    return {
        "node": place.node,
        "incarnation": place.incarnation if standing is None else standing["incarnation"],
        "address": place.address,
        "alive": standing is not None and standing["alive"],
        "connected": place.node == me.node or place.node in queued,
        "queued": queued.get(place.node, 0),
    }
