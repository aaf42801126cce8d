"""What the user's protocol tells about itself (`inspection.py`), in the form every family's inspector has."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.cubecast import inspection
from cubecast.protocol.cubecast.lifetime import Lifetime
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.hypercube.topology import tree
from cubecast.protocol.inspector import Inspector, Overlay, Reached, Standing
from cubecast.protocol.masks import mask_of


class CubecastInspector(Inspector):
    machine: Cubecast

    @property
    def _life(self) -> Lifetime:
        return self.machine.life

    @property
    def is_active(self) -> bool:
        return self.machine.is_active

    @property
    def living(self) -> list[NodeId]:
        return self.machine.living

    def standings(self) -> Mapping[NodeId, Standing]:
        return {node: Standing(*one) for node, one in inspection.standings(self._life).items()}

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        return self.machine.describe(now, most_topics)

    @property
    def topics(self) -> Collection[Topic]:
        return self._life.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        return inspection.describe_topics(self._life, names)

    def some_topics(self, most: int) -> list[Topic]:
        return inspection.some_topics(self._life, inspection.under_way(self._life), most)

    def envelope_bytes(self, topic: Topic) -> int:
        return self.machine.envelope_bytes(topic)

    def published(self) -> Mapping[Topic, int]:
        return inspection.published(self._life)

    def reached(self) -> list[Reached]:
        return [Reached(*one) for one in inspection.reached(self._life)]

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        return inspection.has_delivered(self._life, topic, message)

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        return inspection.destinations(self._life, topic)

    def reaches(self, topic: Topic, me: NodeId) -> bool:
        return any(node != me for node in self.destinations(topic))

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        members = mask_of(self.destinations(topic)) & ~(1 << root)
        return tree(root, self._life.context.parameters.dimension, members)

    def overlay(self) -> Overlay:
        return Overlay("cube")

    def waiting(self) -> list[str]:
        return inspection.describe_waiting(self._life)

    @property
    def is_at_rest(self) -> bool:
        return not inspection.describe_waiting(self._life, most=1)

    def held(self, now: float) -> list[dict[str, Any]]:
        return inspection.describe_held(self._life, now, inspection.under_way(self._life))

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        found = [node for node, children in self.tree(source, topic).items() if self.machine.node in children]
        return found[0] if found else None

    def outlook(self, source: NodeId, standing: str, *, connected: bool, via: NodeId | None) -> str:
        parameters = self._life.context.parameters
        if standing == "alive" and connected:
            way = "" if via is None or via == source else f", by way of node {via}"
            every = f"{parameters.retry:g} s"
            return f"node {source} lives and keeps it; until this node acknowledges it comes every {every}{way}"
        if standing == "alive":
            return (
                f"the link to node {source} is lost; it is dialled again, and after {parameters.patience:g} s without "
                "a sign of life the node is held faulty and the members agree on what it left"
            )
        if standing == "faulty":
            waiting = "; ".join(self._life.settlement.waiting()) or "the agreement is complete"
            return (
                f"node {source} is held faulty: whoever has it hands it on, and what nobody has is announced as a gap "
                f"({waiting})"
            )
        if standing == "settled":
            return f"everything node {source} left is settled; this is released with the next step"
        return f"node {source} was never heard of here; a member that knows it will introduce it"

    def metadata(self, packet: Any) -> Mapping[str, Any] | None:
        if not isinstance(packet, Publication):
            return None
        return {
            "barrier": packet.dependencies,
            "destinations": (packet.members, packet.epochs),
            "starts": packet.starts,
        }

    def timer(self, recorded: Any) -> Hashable:
        return Timer(recorded)

    def is_retry(self, timer: Hashable) -> bool:
        return timer is Timer.RETRY
