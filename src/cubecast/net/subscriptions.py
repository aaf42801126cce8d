"""Which of a node's subscribers hear of which topic."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.patterns import Selection, covers, is_pattern, matcher
from cubecast.net.port import COMPLETE, GapNotice, Logged, Sink


@dataclass(eq=False)
class Subscription:
    pattern: str
    matches: Callable[[Topic], bool]
    sink: Sink
    topics: dict[Topic, None] = field(default_factory=dict)
    is_paused: bool = False
    was_ready: bool = False

    @property
    def is_wild(self) -> bool:
        return is_pattern(self.pattern)


class Subscriptions:
    """Local subscriptions by number and by topic."""

    def __init__(self) -> None:
        self._all: dict[int, Subscription] = {}
        self._wild: dict[int, Subscription] = {}
        """Those with wildcards, to be asked about each new topic."""
        self._numbers = 0
        self.by_topic: dict[Topic, tuple[Subscription, ...]] = {}
        """Replaced, never changed: a sink that has had enough unsubscribes while it is called."""
        self._confirmed: set[Topic] = set()
        self._reopening: set[Topic] = set()
        self.withholds: Callable[[Topic], bool] = lambda topic: False
        """Is nobody to be told yet that something may be missing?"""

    # Coming and going

    def open(self, pattern: str, sink: Sink) -> int:
        """Raises BadInput for what is no pattern."""
        subscription = Subscription(pattern, matcher(pattern), sink)
        self._numbers += 1
        self._all[self._numbers] = subscription
        if subscription.is_wild:
            self._wild[self._numbers] = subscription
        return self._numbers

    def attach(self, number: int, topic: Topic) -> bool:
        """The subscription hears of the topic from now on; True when it is the first that names it."""
        subscription = self._all[number]
        first = not subscription.is_wild and not self.names(topic)
        subscription.topics[topic] = None
        self.by_topic[topic] = (*self.by_topic.get(topic, ()), subscription)
        return first

    def attach_known(self, number: int) -> None:
        """A subscription with wildcards was opened: it hears of what others here hear of already."""
        subscription = self._all[number]
        for topic in filter(subscription.matches, self.topics):
            self.attach(number, topic)

    def attach_matching(self, topic: Topic) -> None:
        """A topic came up that a wildcard selects."""
        for number, one in self._wild.items():
            if topic not in one.topics and one.matches(topic):
                self.attach(number, topic)

    def close(self, number: int) -> Subscription | None:
        subscription = self._all.pop(number, None)
        self._wild.pop(number, None)
        if subscription is not None:
            for topic in subscription.topics:
                self.by_topic[topic] = tuple(one for one in self.by_topic[topic] if one is not subscription)
            subscription.sink.on_end(None)
        return subscription

    def forget_unheard(self, topics: Iterable[Topic]) -> None:
        """The machine has left those that nobody here hears of any more. Before, who opens a subscription joins in."""
        for topic in topics:
            if not self.by_topic.get(topic, True):
                del self.by_topic[topic]
                self._confirmed.discard(topic)
                self._reopening.discard(topic)

    def end_all(self, error: CubecastError | None) -> None:
        subscriptions, self._all, self._wild = list(self._all.values()), {}, {}
        self.by_topic.clear()
        for subscription in subscriptions:
            subscription.sink.on_end(error)

    # What happens

    def deliver(
        self, topic: Topic, message: MessageId, payloads: Sequence[bytes], logged: Logged | None = None
    ) -> None:
        for subscription in self.by_topic.get(topic, ()):
            if logged is None:
                subscription.sink.on_batch(topic, message, payloads)
            else:
                subscription.sink.on_batch(topic, message, payloads, logged)

    def reopened(self) -> None:
        """The node lives on as another incarnation: until each topic is confirmed anew, something may be missing."""
        self._reopening.update(self.by_topic)

    def confirmed(self, topic: Topic) -> None:
        self._confirmed.add(topic)
        if topic in self._reopening:
            self._reopening.discard(topic)
            if not self.withholds(topic):
                self.gap(GapNotice(topic, (), COMPLETE))
        for subscription in self.by_topic.get(topic, ()):
            self.check_ready(subscription)

    def interest_known(self, patterns: Collection[str]) -> None:
        """Nobody publishes what one of these selects without addressing this node."""
        for subscription in list(self._wild.values()):
            if subscription.pattern in patterns:
                self._become_ready(subscription)

    def check_ready(self, subscription: Subscription) -> None:
        if not subscription.is_wild and all(topic in self._confirmed for topic in subscription.topics):
            self._become_ready(subscription)

    def _become_ready(self, subscription: Subscription) -> None:
        if not subscription.was_ready:
            subscription.was_ready = True
            subscription.sink.on_ready()

    def check_ready_soon(self, number: int) -> None:
        """In the next turn, so that whoever subscribes has its number by then; a confirmation to come looks itself."""

        def check() -> None:
            if number in self._all:
                self.check_ready(self._all[number])

        if all(topic in self._confirmed for topic in self._all[number].topics):
            asyncio.get_running_loop().call_soon(check)

    def gap(self, notice: GapNotice) -> None:
        for subscription in self.by_topic.get(notice.topic, ()):
            subscription.sink.on_gap(notice)

    # Looking

    def __getitem__(self, number: int) -> Subscription:
        return self._all[number]

    def __contains__(self, number: int) -> bool:
        return number in self._all

    @property
    def interest(self) -> Selection | None:
        """What the patterns with wildcards select; None when there are none."""
        patterns = dict.fromkeys(one.pattern for one in self._wild.values())
        return Selection(tuple(patterns)) if patterns else None

    def names(self, topic: Topic) -> bool:
        """Does a subscription spell it?"""
        return any(not one.is_wild for one in self.by_topic.get(topic, ()))

    def is_served(self, pattern: str) -> bool:
        """Does the node hear all of it already, and has it been ready to?"""
        return any(one.was_ready and covers(one.pattern, pattern) for one in self._all.values())

    @property
    def is_complete(self) -> bool:
        """Nothing waits to be confirmed anew."""
        return not self._reopening

    @property
    def is_any_paused(self) -> bool:
        return any(one.is_paused for one in self._all.values())

    def is_paused(self, topic: Topic) -> bool:
        for one in self.by_topic.get(topic, ()):  # noqa: SIM110 - asked before each publication: no generator for one
            if one.is_paused:
                return True
        return False

    @property
    def topics(self) -> list[Topic]:
        return sorted(self.by_topic)

    def __len__(self) -> int:
        return len(self._all)
