"""What a node says about itself when asked: the machine's description, with addresses and queues beside it.

And why messages are held: for each, the chain of what it waits for, to the one that is not here, and what comes next.
"""

from collections.abc import Sequence
from itertools import islice
from time import monotonic
from typing import Any

import msgspec

from cubecast.errors import Closed
from cubecast.ids import NodeId, Topic
from cubecast.net.links.handshake import Place
from cubecast.net.members.directory import Directory
from cubecast.net.members.peers import Peers
from cubecast.net.node.driver import Driver
from cubecast.net.settings.config import NodeConfig

MOST_EXPLAINED = 100
"""Held publications whose chain is followed, oldest first; an answer must fit into a frame."""
MOST_LINKS = 16
"""Of one chain."""


class Chains:
    """Made for one answer."""

    def __init__(self, held: Sequence[dict[str, Any]], peers: Peers, driver: Driver) -> None:
        self._held, self._peers, self._inspector = held, peers, driver.inspector
        self._by_message: dict[tuple[Topic, int, int], list[dict[str, Any]]] = {}
        for one in held:
            source, incarnation, _ = one["message"]
            self._by_message.setdefault((one["topic"], source, incarnation), []).append(one)
        self._parents: dict[tuple[Topic, NodeId], NodeId | None] = {}

    def explained(self, most: int) -> list[dict[str, Any]]:
        """What is held, at most so many, the first ones with their `chain`."""
        first = [one | {"chain": self.of(one)} for one in self._held[: min(most, MOST_EXPLAINED)]]
        return first + [one | {"chain": []} for one in self._held[len(first) : most]]

    def of(self, held: dict[str, Any]) -> list[dict[str, Any]]:
        """From what it waits for to what is not here; each is held because of the next."""
        chain: list[dict[str, Any]] = []
        while len(chain) < MOST_LINKS:
            message, blocker = held["first_missing"], self._find(held["topic"], held["first_missing"])
            if blocker is None:
                chain.append({"message": message, "state": "missing", **self._missing(held)})
                return chain
            chain.append({"message": message, "state": "held", "for": blocker["for"]})
            held = blocker
        return chain

    def _find(self, topic: Topic, message: Sequence[int]) -> dict[str, Any] | None:
        """The held publication with this message in it."""
        source, incarnation, counter = message
        for one in self._by_message.get((topic, source, incarnation), ()):
            if one["message"][2] <= counter < one["message"][2] + one["messages"]:
                return one
        return None

    # What is not here

    def _missing(self, held: dict[str, Any]) -> dict[str, Any]:
        source, standing = held["first_missing"][0], held["source"]
        link = source == self._inspector.machine.node or self._peers.is_connected(source)
        via = self._parent(held["topic"], source)
        about = {"source": source, "source_state": standing, "connected": link, "via": via}
        return about | {"next": self._inspector.outlook(source, standing, connected=link, via=via)}

    def _parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        key = (topic, source)
        if key not in self._parents:
            self._parents[key] = self._inspector.parent(topic, source)
        return self._parents[key]


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
        "held_back": driver.deferred.counts,
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
