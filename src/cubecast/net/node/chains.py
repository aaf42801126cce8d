"""Why messages are held: for each, the chain of what it waits for, to the one that is not here, and what comes next."""

from collections.abc import Sequence
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.net.members.peers import Peers
from cubecast.net.node.driver import Driver

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
