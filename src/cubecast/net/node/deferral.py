"""Publications that wait outside the machine for a subscriber that reads slowly.

They are not acknowledged meanwhile, so that the windows of their publishers close. What does not fit the budget is
forgotten here and sent again by them.
"""

from collections.abc import Iterator
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic


class Deferred:
    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.by_topic: dict[Topic, dict[tuple[NodeId, MessageId], bytes]] = {}
        """Of those topics that are held back; the bytes of each packet, once."""
        self.bytes = 0
        self.refused = 0
        """Publications for which there was no room to wait."""

    def hold(self, topic: Topic) -> None:
        self.by_topic.setdefault(topic, {})

    def held_by(self, packet: Any) -> Topic | None:
        """The topic because of which it has to wait."""
        for one in packet.carried():
            if one.topic in self.by_topic:
                held: Topic = one.topic
                return held
        return None

    def add(self, topic: Topic, sender: NodeId, packet: Any, frame: bytes) -> None:
        """What is not acknowledged comes again and again."""
        waiting, key = self.by_topic[topic], (sender, packet.carried()[0].first)
        growth = len(frame) - len(waiting.get(key, b""))
        if self.bytes + growth <= self.budget:
            self.bytes += growth
            waiting[key] = frame
        else:
            self.refused += 1

    def released(self, topic: Topic) -> Iterator[tuple[NodeId, bytes]]:
        """Senders and packets, one by one: those that were handed on may have filled the subscriber up again."""
        waiting = self.by_topic.pop(topic, {})
        while waiting and topic not in self.by_topic:
            key = next(iter(waiting))
            frame = waiting.pop(key)
            self.bytes -= len(frame)
            yield key[0], frame
        if waiting:
            self.by_topic[topic] = waiting | self.by_topic[topic]

    @property
    def counts(self) -> dict[Topic, int]:
        """Per topic, how many wait."""
        return {topic: len(waiting) for topic, waiting in sorted(self.by_topic.items())}
