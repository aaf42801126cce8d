"""Which of a node's subscribers hear of which topic."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cubecast.errors import CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.node.filtering import FilteredSubscriptions
from cubecast.net.port.port import COMPLETE, GapNotice, Logged, Sink
from cubecast.patterns import Selection, covers, is_pattern, matcher
from cubecast.protocol.filters import Filter


@dataclass(eq=False)
class Subscription:
    pattern: str
    matches: Callable[[Topic], bool]
    sink: Sink
    is_wild: bool
    where: Filter | None = None
    """What it wants of its topics, where the node has to choose for it."""
    channel: str | None = None
    """What the protocol knows it by, where that looks into messages itself."""
    topics: dict[Topic, None] = field(default_factory=dict)
    is_paused: bool = False
    was_ready: bool = False


class Audience:
    """Who hears of one topic. Coming, going and pausing cost the same however many there are."""

    __slots__ = ("_everybody", "_members", "_unfiltered", "filtered", "named", "paused")

    def __init__(self) -> None:
        self._members: dict[Subscription, None] = {}
        self._everybody: tuple[Subscription, ...] | None = ()
        self._unfiltered: tuple[Subscription, ...] = ()
        self.filtered: FilteredSubscriptions[Subscription] | None = None
        """Those that want some of it only."""
        self.named = 0
        """Those that spell the topic."""
        self.paused = 0

    def everybody(self) -> tuple[Subscription, ...]:
        """Made anew after changes, never changed: a sink that has had enough unsubscribes while it is called."""
        if self._everybody is None:
            self._everybody = tuple(self._members)
            self._unfiltered = (
                self._everybody
                if self.filtered is None
                else tuple([one for one in self._everybody if one.where is None])
            )
        return self._everybody

    def unfiltered(self) -> tuple[Subscription, ...]:
        """Those that want all of it."""
        if self._everybody is None:
            self.everybody()
        return self._unfiltered

    def add(self, one: Subscription) -> None:
        self._members[one] = None
        self._everybody = None
        if one.where is not None:
            if self.filtered is None:
                self.filtered = FilteredSubscriptions()
            self.filtered.add(one, one.where)
        self.named += not one.is_wild
        self.paused += one.is_paused

    def remove(self, one: Subscription) -> None:
        del self._members[one]
        self._everybody = None
        if one.where is not None and self.filtered is not None:
            self.filtered.remove(one)
            if not len(self.filtered):
                self.filtered = None
        self.named -= not one.is_wild
        self.paused -= one.is_paused

    def __len__(self) -> int:
        return len(self._members)


NOBODY: Final = Audience()


class Subscriptions:
    """Local subscriptions by number and by topic."""

    def __init__(self, withholds: Callable[[Topic], bool] = lambda topic: False) -> None:
        """`withholds`: is nobody to be told yet that something may be missing?"""
        self._all: dict[int, Subscription] = {}
        self._wild: dict[int, Subscription] = {}
        """Those with wildcards, to be asked about each new topic."""
        self._numbers = 0
        self.by_topic: dict[Topic, Audience] = {}
        self._patterns: Counter[str] = Counter()
        """How many subscriptions there are with each pattern that has wildcards."""
        self._paused = 0
        self._confirmed: set[Topic] = set()
        self._reopening: set[Topic] = set()
        self._withholds = withholds

    # Coming and going

    def open(self, pattern: str, sink: Sink, where: Filter | None = None, channel: str | None = None) -> int:
        """Raises BadInput for what is no pattern."""
        is_wild = is_pattern(pattern) and channel is None
        subscription = Subscription(pattern, matcher(pattern), sink, is_wild, where, channel)
        self._numbers += 1
        self._all[self._numbers] = subscription
        if subscription.is_wild:
            self._wild[self._numbers] = subscription
            self._patterns[pattern] += 1
        return self._numbers

    def attach(self, number: int, topic: Topic) -> bool:
        """The subscription hears of the topic from now on; True when it is the first that names it."""
        subscription = self._all[number]
        first = not subscription.is_wild and not self.names(topic)
        subscription.topics[topic] = None
        audience = self.by_topic.get(topic)
        if audience is None:
            audience = self.by_topic[topic] = Audience()
        audience.add(subscription)
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
        if self._wild.pop(number, None) is not None and subscription is not None:
            self._patterns[subscription.pattern] -= 1
            if not self._patterns[subscription.pattern]:
                del self._patterns[subscription.pattern]
        if subscription is not None:
            self._paused -= subscription.is_paused
            for topic in subscription.topics:
                self.by_topic[topic].remove(subscription)
            subscription.sink.on_end(None)
        return subscription

    def pause(self, number: int) -> Iterable[Topic]:
        """The topics that the subscription holds up from now on."""
        return self._set_paused(self._all[number], True)

    def resume(self, number: int) -> Iterable[Topic]:
        """The topics that it held up."""
        return self._set_paused(self._all[number], False)

    def _set_paused(self, one: Subscription, paused: bool) -> list[Topic]:
        change = paused - one.is_paused
        one.is_paused = paused
        self._paused += change
        if change:
            for topic in one.topics:
                self.by_topic[topic].paused += change
        return list(one.topics)

    def forget_unheard(self, topics: Iterable[Topic]) -> None:
        """The machine has left those that no subscriber here hears of any more. Before, who opens a subscription joins
        in."""
        for topic in topics:
            if topic in self.by_topic and not self.by_topic[topic]:
                del self.by_topic[topic]
                self._confirmed.discard(topic)
                self._reopening.discard(topic)

    def end_all(self, error: CubecastError | None) -> None:
        subscriptions, self._all, self._wild = list(self._all.values()), {}, {}
        self.by_topic.clear()
        self._patterns.clear()
        self._paused = 0
        for subscription in subscriptions:
            subscription.sink.on_end(error)

    # What happens

    def deliver(
        self, topic: Topic, message: MessageId, payloads: Sequence[bytes], logged: Logged | None = None
    ) -> None:
        audience = self.by_topic.get(topic, NOBODY)
        for subscription in audience.unfiltered():
            if logged is None:
                subscription.sink.on_batch(topic, message, payloads)
            else:
                subscription.sink.on_batch(topic, message, payloads, logged)
        if audience.filtered is not None:
            audience.filtered.deliver(topic, message, payloads, logged)

    def reopened(self) -> None:
        """The node lives on as another incarnation: until each topic is confirmed anew, something may be missing."""
        self._reopening.update(self.by_topic)

    def confirmed(self, topic: Topic) -> None:
        self._confirmed.add(topic)
        if topic in self._reopening:
            self._reopening.discard(topic)
            if not self._withholds(topic):
                self.gap(GapNotice(topic, (), COMPLETE))
        for subscription in self.by_topic.get(topic, NOBODY).everybody():
            self.check_ready(subscription)

    def interest_known(self, patterns: Collection[str]) -> None:
        """No node publishes what one of these selects without addressing this node."""
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
        """In the next turn, so that the subscriber has its number by then; a confirmation to come looks itself."""

        def check() -> None:
            if number in self._all:
                self.check_ready(self._all[number])

        if all(topic in self._confirmed for topic in self._all[number].topics):
            asyncio.get_running_loop().call_soon(check)

    def gap(self, notice: GapNotice) -> None:
        for subscription in self.by_topic.get(notice.topic, NOBODY).everybody():
            subscription.sink.on_gap(notice)

    # Looking

    def __getitem__(self, number: int) -> Subscription:
        return self._all[number]

    def __contains__(self, number: int) -> bool:
        return number in self._all

    @property
    def interest(self) -> Selection | None:
        """What the patterns with wildcards select; None when there are none."""
        return Selection(tuple(self._patterns)) if self._patterns else None

    def names(self, topic: Topic) -> bool:
        """Does a subscription spell it?"""
        return self.by_topic.get(topic, NOBODY).named > 0

    def is_served(self, pattern: str) -> bool:
        """Does the node hear all of it already, and has it been ready to?"""
        return any(one.was_ready and covers(one.pattern, pattern) for one in self._all.values())

    @property
    def is_complete(self) -> bool:
        """Nothing waits to be confirmed anew."""
        return not self._reopening

    @property
    def is_any_paused(self) -> bool:
        return self._paused > 0

    def is_paused(self, topic: Topic) -> bool:
        audience = self.by_topic.get(topic)  # asked before each publication
        return audience is not None and audience.paused > 0

    @property
    def topics(self) -> list[Topic]:
        return sorted(self.by_topic)

    def __len__(self) -> int:
        return len(self._all)
