"""What EpTO tells status and pages about itself."""

from collections.abc import Collection, Mapping

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.epidemic.epto import Epto
from cubecast.protocol.inspector import Inspector


class EptoInspector(Inspector):
    machine: Epto

    @property
    def living(self) -> list[NodeId]:
        return sorted((self.machine.node, *self.machine.peers))

    @property
    def topics(self) -> Collection[Topic]:
        return self.machine.topics

    def published(self) -> Mapping[Topic, int]:
        return self.machine.published

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        order = self.machine.topics.get(topic)
        return order is not None and order.at.get(message[:2], 0) >= message.counter

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        """A ball may go to anybody."""
        return self.living
