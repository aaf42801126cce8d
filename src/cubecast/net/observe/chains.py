"""Why messages are held: for each, the chain of what it waits for, to the one that is not here, and what comes next."""

from collections.abc import Sequence
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.net.config import NodeConfig
from cubecast.net.driver import Driver
from cubecast.net.peers import Peers
from cubecast.protocol.vcube.cubecast import inspection
from cubecast.protocol.vcube.topology import mask_of, tree

MOST_EXPLAINED = 100
"""Held publications whose chain is followed, oldest first; an answer must fit into a frame."""
MOST_LINKS = 16
"""Of one chain."""


class Chains:
    """Made for one answer."""

    def __init__(self, held: Sequence[dict[str, Any]], config: NodeConfig, peers: Peers, driver: Driver) -> None:
        self._held, self._config, self._peers, self._machine = held, config, peers, driver.machine
        self._dimension = driver.machine.life.context.parameters.dimension
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
        link = source == self._machine.node or self._peers.is_connected(source)
        via = self._parent(held["topic"], source)
        about = {"source": source, "source_state": standing, "connected": link, "via": via}
        return about | {"next": self._next(source, standing, link, via)}

    def _next(self, source: NodeId, standing: str, link: bool, via: NodeId | None) -> str:
        config = self._config
        if standing == "alive" and link:
            way = "" if via is None or via == source else f", by way of node {via}"
            return (
                f"node {source} lives and keeps it; until this node acknowledges it comes every {config.retry:g} s{way}"
            )
        if standing == "alive":
            return (
                f"the link to node {source} is lost; it is dialled again, and after {config.patience:g} s without a "
                "sign of life the node is held faulty and the members agree on what it left"
            )
        if standing == "faulty":
            waiting = "; ".join(self._machine.life.settlement.waiting()) or "the agreement is complete"
            return (
                f"node {source} is held faulty: whoever has it hands it on, and what nobody has is announced as a gap "
                f"({waiting})"
            )
        if standing == "settled":
            return f"everything node {source} left is settled; this is released with the next step"
        return f"node {source} was never heard of here; a member that knows it will introduce it"

    def _parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        """Who hands this node what the source publishes, when nothing goes wrong."""
        key = (topic, source)
        if key not in self._parents:
            members = mask_of(inspection.destinations(self._machine.life, topic))
            below = tree(source, self._dimension, members & ~(1 << source))
            found = [node for node, children in below.items() if self._machine.node in children]
            self._parents[key] = found[0] if found else None
        return self._parents[key]
