"""What HyParView and Brisa tell status and pages about themselves."""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice, pairwise
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.epidemic.brisa import Brisa
from cubecast.protocol.inspector import Inspector, Overlay, Reached, topic_told


class OverlayInspector(Inspector):
    """No process of an overlay knows all members: neighbours are all it can name."""

    @property
    def living(self) -> list[NodeId]:
        return sorted((self.machine.node, *self.machine.overlay.active))

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        return self.living

    def overlay(self) -> Overlay:
        return Overlay("graph", tuple((self.machine.node, peer, "") for peer in sorted(self.machine.overlay.active)))


class BrisaInspector(OverlayInspector):
    machine: Brisa

    @property
    def topics(self) -> Collection[Topic]:
        return self.machine.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        published, subscribed = self.machine.published(), self.machine.delivered()
        return {
            name: topic_told(
                subscribed=name in subscribed, confirmed=name in subscribed, published=published.get(name, 0)
            )
            for name in names
        }

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        most = len(self.machine.flows) if most_topics is None else most_topics
        return super().describe(now, most_topics) | {
            "streams": self.streams(most),
            "streams_in_all": len(self.machine.flows),
        }

    def streams(self, most: int) -> list[dict[str, Any]]:
        return [self._stream(key, flow) for key, flow in islice(self.machine.flows.items(), most)]

    def _stream(self, key: Any, flow: Any) -> dict[str, Any]:
        """`behind`: messages a neighbour is known to have and this process has not; `slow`: children whose links are
        full, with the messages that wait for them."""
        return {
            "topic": key.topic,
            "publisher": key.root,
            "incarnation": key.incarnation,
            "messages": flow.have,
            "parent": flow.primary,
            "parents": list(flow.parents),
            "depth": flow.depth,
            "path": list(flow.path),
            "children": flow.children,
            "behind": flow.lag,
            "slow": {str(peer): flow.have - upto for peer, upto in flow.behind.items()},
            "copies_per_message": flow.copies / flow.fresh if flow.fresh else 0.0,
            "kept_bytes": flow.kept.bytes,
            "orphan": flow.orphan,
        }

    def overlay(self) -> Overlay:
        """Neighbours, and beside those who send or are sent a stream, of whom."""
        labels: dict[NodeId, list[str]] = {peer: [] for peer in self.machine.overlay.active}
        for key, flow in self.machine.flows.items():
            for peer in flow.parents:
                labels.setdefault(peer, []).append(f"{key.topic} from node {key.root}")
        me = self.machine.node
        return Overlay("graph", tuple((me, peer, ", ".join(labels[peer])) for peer in sorted(labels)))

    def published(self) -> Mapping[Topic, int]:
        return self.machine.published()

    def reached(self) -> list[Reached]:
        return [Reached(topic, True, delivered) for topic, delivered in self.machine.delivered().items()]

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        return any(one[:2] == message[:2] and one >= message for one in self.machine.delivered().get(topic, ()))

    knows_whole_trees = False

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        """As far as it is known here: the way from the root to this process, and its children."""
        for key, flow in self.machine.flows.items():
            if key.root == root and topic in (None, key.topic):
                way = [*flow.path, self.machine.node] if flow.path[-1:] != (self.machine.node,) else list(flow.path)
                links = {one: (below,) for one, below in pairwise(way)}
                return links | {self.machine.node: tuple(child for child in flow.children if child not in way)}
        return {}

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        found = (flow.primary for key, flow in self.machine.flows.items() if (key.topic, key.root) == (topic, source))
        return next(found, None)
