"""What the application wants to receive: topics by name, and whatever topic its interest matches. It outlives lives."""

from collections.abc import Iterator

from cubecast.ids import Topic
from cubecast.protocol.inputs import Interest


class Wishes:
    """A topic is wanted when it was named, or when the interest matches it; it is wished for once it is known, too."""

    def __init__(self) -> None:
        self._topics: dict[Topic, None] = {}
        self._named: set[Topic] = set()
        self._interest: Interest | None = None

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def __contains__(self, topic: Topic) -> bool:
        return topic in self._topics

    def wants(self, topic: Topic) -> bool:
        return topic in self._named or (self._interest is not None and self._interest(topic))

    def is_named(self, topic: Topic) -> bool:
        return topic in self._named

    def name(self, topic: Topic) -> None:
        self._named.add(topic)
        self._topics[topic] = None

    def unname(self, topic: Topic) -> bool:
        """True when it is not wanted any more."""
        self._named.discard(topic)
        return not self.wants(topic)

    def follow(self, interest: Interest | None) -> None:
        """Replace the interest; the topics are added and dropped one by one, by whoever looks at them."""
        self._interest = interest

    @property
    def follows(self) -> bool:
        return self._interest is not None

    def add(self, topic: Topic) -> bool:
        """True when it was not wished for before."""
        new = topic not in self._topics
        self._topics[topic] = None
        return new

    def drop(self, topic: Topic) -> None:
        del self._topics[topic]
