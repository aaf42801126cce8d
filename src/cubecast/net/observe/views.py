"""What the JSON endpoints say; docs/http.md documents the shapes. Times are in seconds, those of day since 1970."""

from time import monotonic, time
from typing import Any

from cubecast.errors import BadInput, Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.driver import Driver
from cubecast.net.handshake import Place
from cubecast.net.observe.chains import Chains
from cubecast.net.observe.observer import Observer
from cubecast.net.observe.samples import MOST
from cubecast.protocol.vcube.cubecast import inspection
from cubecast.protocol.vcube.topology import mask_of, tree

MOST_SHOWN = 1000


def _inside(observer: Observer) -> tuple[Place, Driver]:
    me, driver = observer.directory.me, observer.driver
    if me is None or driver is None:
        raise Closed("this node has no place yet")
    return me, driver


def cube(observer: Observer, root: NodeId | None, topic: Topic | None) -> dict[str, Any]:
    """Members and one tree: by which way a publication of `root` reaches the living, or those who want `topic`."""
    me, driver = _inside(observer)
    standings = inspection.standings(driver.machine.life)
    queued = observer.peers.queued
    members = []
    for node in sorted(observer.directory.places):
        place = observer.directory.places[node]
        standing = standings.get(node)
        state, since = observer.state(place, standings)
        members.append(
            {
                "node": node,
                "incarnation": place.incarnation if standing is None else standing.incarnation,
                "address": place.address,
                "state": state,
                "since": since,
                "connected": node == me.node or node in queued,
                "queued": queued.get(node, 0),
            }
        )
    dimension = observer.directory.dimension
    return {
        "node": me.node,
        "incarnation": me.incarnation,
        "cluster": observer.config.cluster,
        "dimension": dimension,
        "at": time(),
        "members": members,
        "tree": _tree(
            me.node if root is None else root, dimension, inspection.destinations(driver.machine.life, topic), topic
        ),
    }


def _tree(root: NodeId, dimension: int, destinations: list[NodeId], topic: Topic | None) -> dict[str, Any]:
    if not 0 <= root < 1 << dimension:
        raise BadInput(f"node {root} does not exist in a cube of {1 << dimension}")
    children = tree(root, dimension, mask_of(destinations) & ~(1 << root))
    return {"root": root, "topic": topic, "children": {str(node): list(below) for node, below in children.items()}}


def topics(observer: Observer) -> dict[str, Any]:
    """Every topic this node knows, the busiest first."""
    _, driver = _inside(observer)
    known = inspection.describe_topics(driver.machine.life)
    delivered, published = observer.samples.topic_rates["delivered"], observer.samples.topic_rates["published"]
    held_back = driver.held_back
    rows = [
        {
            "topic": name,
            **{part: one[part] for part in ("members", "subscribed", "confirmed", "published")},
            "delivered": observer.meter.delivered.get(name, 0),
            "publish_rate": published.get(name, 0.0),
            "deliver_rate": delivered.get(name, 0.0),
            **{part: one[part] for part in ("unstable", "waiting", "window", "kept", "kept_bytes")},
            "lag": sum(publisher["lag"] for publisher in one["publishers"]),
            "held_back": held_back.get(name, 0),
        }
        for name, one in known.items()
    ]
    rows.sort(key=lambda row: (-row["deliver_rate"] - row["publish_rate"], row["topic"]))
    return {"topics": rows[:MOST_SHOWN], "topics_in_all": len(rows)}


def rates(observer: Observer, last: int) -> dict[str, Any]:
    """The last seconds, oldest first, and the totals since this node began."""
    return {
        "started": observer.started,
        "at": time(),
        "samples": list(observer.samples.ring)[-max(1, min(last, MOST)) :],
        "totals": observer.samples.totals() | {"reconnects": observer.reconnects},
    }


def faults(observer: Observer) -> dict[str, Any]:
    return {"events": observer.happenings.newest_first(), "counts": dict(observer.happenings.counts)}


def held(observer: Observer) -> dict[str, Any]:
    """What is held at this node and why, oldest first."""
    me, driver = _inside(observer)
    found = inspection.describe_held(driver.machine.life, monotonic())
    return {
        "node": me.node,
        "held": Chains(found, observer.config, observer.peers, driver).explained(MOST_SHOWN),
        "held_in_all": len(found),
        "held_back": driver.held_back,
        "waiting": driver.machine.waiting()[:MOST_SHOWN],
    }
