"""What the application wants to receive: topics by name, and whatever topic its interest matches. It outlives lives."""

from collections.abc import Iterator

from cubecast.ids import Topic
from cubecast.protocol.inputs import Interest


class Wishes:
    """A topic is wished for when it was named, or when it is known and the interest matches it."""

    def __init__(self) -> None:
        self._topics: dict[Topic, None] = {}
        self._named: set[Topic] = set()
        self._interest: Interest | None = None

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def is_named(self, topic: Topic) -> bool:
        return topic in self._named

    def name(self, topic: Topic) -> bool:
        """True when it was not wished for before."""
        self._named.add(topic)
        return self._add(topic)

    def unname(self, topic: Topic) -> bool:
        """True when it is not wished for any more."""
        self._named.discard(topic)
        return self._drop(topic)

    def match(self, topic: Topic) -> bool:
        """The topic is known: True when the interest makes it a new wish."""
        return self._interest is not None and self._interest(topic) and self._add(topic)

    def follow(self, interest: Interest | None) -> list[Topic]:
        """Replace the interest; the topics that are not wished for any more."""
        self._interest = interest
        return [topic for topic in list(self._topics) if self._drop(topic)]

    @property
    def follows(self) -> bool:
        return self._interest is not None

    def _add(self, topic: Topic) -> bool:
        new = topic not in self._topics
        self._topics[topic] = None
        return new

    def _drop(self, topic: Topic) -> bool:
        if topic in self._named or (self._interest is not None and self._interest(topic)):
            return False
        del self._topics[topic]
        return True
