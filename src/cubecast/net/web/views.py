"""What the JSON endpoints say; docs/http.md documents the shapes. Times are in seconds, those of day since 1970."""

from collections.abc import Mapping
from heapq import nlargest
from itertools import chain, islice
from time import monotonic, time
from typing import Any

from cubecast.errors import BadInput, Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.node.driver import Driver
from cubecast.net.node.status import Chains
from cubecast.net.observe.recent import MOST_SAMPLES
from cubecast.net.web.observer import Observer
from cubecast.protocol.inspector import Inspector

MOST_SHOWN = 1000
MOST_TOPICS = 250
"""Described in one answer; a look at each of very many would keep the node from its work."""


def _inside(observer: Observer) -> tuple[Place, Driver]:
    me, driver = observer.directory.me, observer.driver
    if me is None or driver is None:
        raise Closed("this node has no place yet")
    return me, driver


def cube(observer: Observer, root: NodeId | None, topic: Topic | None) -> dict[str, Any]:
    """Members and one tree: by which way a publication of `root` reaches the living, or those who want `topic`."""
    me, driver = _inside(observer)
    inspector = driver.inspector
    tree = _tree(_source(me.node, inspector, topic) if root is None else root, observer.directory, inspector, topic)
    standings = observer.standings()
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
    members += [_unheard_of(int(node)) for node in tree["children"] if int(node) not in observer.directory.places]
    return {
        "node": me.node,
        "incarnation": me.incarnation,
        "cluster": observer.config.cluster,
        "dimension": observer.directory.told_dimension,
        "at": time(),
        "members": members,
        "overlay": inspector.overlay().to_json(MOST_SHOWN),
        "tree": tree,
    }


def _unheard_of(node: NodeId) -> dict[str, Any]:
    """A node that trees name, and of which nothing else is known here."""
    standing = {"incarnation": 0, "address": "", "state": "unknown", "since": None}
    return {"node": node, **standing, "connected": False, "queued": 0}


def _source(me: NodeId, inspector: Inspector, topic: Topic | None) -> NodeId:
    """Whose tree is shown to those who ask for none: this node's, unless it only hears others'."""
    heard = [one["publisher"] for one in inspector.streams(MOST_TOPICS) if topic in (None, one["topic"])]
    return me if me in heard else next(iter(heard), me)


def _tree(root: NodeId, directory: Directory, inspector: Inspector, topic: Topic | None) -> dict[str, Any]:
    children = inspector.tree(root, topic)
    if directory.draws_ids and root not in directory.places and not children:
        raise BadInput(f"this node knows no node {root}")
    if not 0 <= root < directory.size:
        raise BadInput(f"node {root} does not exist in a cube of {directory.size}")
    named = dict.fromkeys(chain(children, *children.values()), ())
    return {
        "root": root,
        "topic": topic,
        "whole": inspector.knows_whole_trees,
        "children": {str(node): list(below) for node, below in (named | children).items()},
    }


def topics(observer: Observer) -> dict[str, Any]:
    """Topics this node knows, the busiest first, then those with something under way."""
    _, driver = _inside(observer)
    inspector = driver.inspector
    delivered, published = observer.samples.topic_rates["delivered"], observer.samples.topic_rates["published"]
    known = inspector.describe_topics(_some_topics(inspector, delivered, published))
    held_back = driver.deferred.counts
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
    streams = inspector.streams(MOST_TOPICS)
    return {"topics": rows, "topics_in_all": len(inspector.topics), "streams": streams}


def _some_topics(
    inspector: Inspector, delivered: Mapping[Topic, float], published: Mapping[Topic, float]
) -> list[Topic]:
    """Described are the busiest of the last second, and as far as there is room others."""
    if len(inspector.topics) <= MOST_TOPICS:
        return list(inspector.topics)
    rates = {name: rate + published.get(name, 0.0) for name, rate in delivered.items()}
    rates |= {name: rate for name, rate in published.items() if name not in rates}
    busiest = [name for name in nlargest(MOST_TOPICS, rates, key=rates.__getitem__) if name in inspector.topics]
    if len(busiest) == MOST_TOPICS:
        return busiest
    others = inspector.some_topics(MOST_TOPICS)
    return list(islice(dict.fromkeys(chain(busiest, others)), MOST_TOPICS))


def rates(observer: Observer, last: int) -> dict[str, Any]:
    """The last seconds, oldest first, and the totals since this node began."""
    return {
        "started": observer.started,
        "at": time(),
        "samples": list(observer.samples.ring)[-max(1, min(last, MOST_SAMPLES)) :],
        "totals": observer.samples.totals() | {"reconnects": observer.reconnects},
    }


def faults(observer: Observer) -> dict[str, Any]:
    return {"events": observer.happenings.newest_first(), "counts": dict(observer.happenings.counts)}


def held(observer: Observer) -> dict[str, Any]:
    """What is held at this node and why, oldest first."""
    me, driver = _inside(observer)
    found = driver.inspector.held(monotonic())
    return {
        "node": me.node,
        "held": Chains(found, observer.peers, driver).explained(MOST_SHOWN),
        "held_in_all": len(found),
        "held_back": driver.deferred.counts,
        "waiting": driver.inspector.waiting()[:MOST_SHOWN],
    }
