"""What EpTO tells status and pages about itself."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.epidemic.epto import Epto
from cubecast.protocol.epidemic.epto_order import Order
from cubecast.protocol.inspector import Inspector, topic_told

MOST_SHOWN = 100


class EptoInspector(Inspector):
    machine: Epto

    @property
    def living(self) -> list[NodeId]:
        return sorted((self.machine.node, *self.machine.peers))

    @property
    def topics(self) -> Collection[Topic]:
        return self.machine.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        return {name: self._topic(name, self.machine.topics[name]) for name in names}

    def _topic(self, name: Topic, order: Order) -> dict[str, Any]:
        """Who subscribes elsewhere no process knows; kept is what is too young to be delivered."""
        published = self.machine.published.get(name, 0)
        young = {**order.received, **order.next_ball}
        return topic_told(
            subscribed=order.subscribed,
            confirmed=order.subscribed,
            published=published,
            unstable=published - self.machine.released(name),
            kept=len(young),
            kept_bytes=sum(len(one.payload or b"") for one in young.values()),
            publishers=self._publishers(order) if order.subscribed else [],
        )

    def _publishers(self, order: Order) -> list[dict[str, Any]]:
        """The last ones heard, with what has arrived of each and waits for its place."""
        lag = Counter(one.message[:2] for one in order.received.values() if one.payload is not None)
        return [
            {"node": source, "incarnation": incarnation, "delivered": reached, "lag": lag[source, incarnation]}
            for (source, incarnation), reached in islice(reversed(order.at.items()), MOST_SHOWN)
        ]

    def published(self) -> Mapping[Topic, int]:
        return self.machine.published

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        order = self.machine.topics.get(topic)
        return order is not None and order.at.get(message[:2], 0) >= message.counter

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        """A ball may go to anybody."""
        return self.living
