"""Bringing the subscriptions of one life in line with the wishes, some topics in a step.

An interest may match any number of topics, and so may one that is given up; each of them costs a wave. All at once
would keep the node from everything else, and waves that are not answered in time are sent again. So the next ones are
begun as earlier ones are answered. A topic that somebody is about to publish to is not put off: it is looked at in that
step.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final

from cubecast.ids import Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.interests import Wishes
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.effects import InterestMatched, Unsubscribed

BEGUN_AT_ONCE: Final = 64
"""Subscriptions, or their ends, that a step begins."""
LOOKED_AT_ONCE: Final = 1000
"""Topics that a step compares with the wishes."""
MOST_UNDER_WAY: Final = 512


class Subscribing:
    def __init__(self, context: Context, wishes: Wishes, topic: Callable[[Topic], TopicState]) -> None:
        self._context = context
        self._wishes = wishes
        self._topic = topic
        self.takes_part = False
        """Joining nodes note what they wish for, and subscribe when they take part."""
        self._due: OrderedDict[Topic, None] = OrderedDict()
        """To be looked at."""
        self._begun: deque[Topic] = deque()
        """Not known to everybody yet."""
        self._unconfirmed: deque[Topic] = deque()
        """Known to everybody, and something else withholds that the subscription counts."""

    def __bool__(self) -> bool:
        """Is there anything to do, or to wait for?"""
        return bool(self._due or self._begun or self._unconfirmed)

    @property
    def may_go_on(self) -> bool:
        """Another step should follow without waiting for any answer."""
        return bool(self._due) and len(self._begun) < MOST_UNDER_WAY

    def review(self, topics: Iterable[Topic]) -> None:
        """These may be wished for by now, or not any more."""
        for topic in topics:
            self._due[topic] = None

    def go_on(self) -> None:
        """A step's share of it."""
        self._look_back()
        due, looked, most = self._due, 0, min(MOST_UNDER_WAY, len(self._begun) + BEGUN_AT_ONCE)
        while due and looked < LOOKED_AT_ONCE and len(self._begun) < most:
            looked += 1
            self.consider(due.popitem(last=False)[0])
        self._look_back()  # alone, everybody knows at once

    def consider(self, topic: Topic) -> None:
        """A topic is known: subscribe to it if it is wanted, leave it if it is not any more."""
        if self._wishes.wants(topic):
            if self._wishes.add(topic):
                self._context.emit(InterestMatched(topic, True))
            if self.takes_part and self._topic(topic).delivery is None:
                self._topic(topic).subscribe()
                self._begun.append(topic)
        elif topic in self._wishes:
            self._context.emit(InterestMatched(topic, False))
            self.leave(topic)
        if self.takes_part and self._context.process.has_published(topic):
            self._topic(topic).register()  # what others lack of that is to be named there

    def leave(self, topic: Topic) -> None:
        self._wishes.drop(topic)
        self._context.emit(Unsubscribed(topic))
        if self.takes_part and self._topic(topic).delivery is not None:
            self._topic(topic).unsubscribe()
            self._begun.append(topic)
        self._context.process.left(topic)

    def _look_back(self) -> None:
        """In the order in which they were begun: each is looked at once after everybody knows it."""
        begun, unconfirmed = self._begun, self._unconfirmed
        while begun and not self._topic(begun[0]).is_asking:
            topic = begun.popleft()
            if self._is_withheld(topic):
                unconfirmed.append(topic)
        while unconfirmed and not self._is_withheld(unconfirmed[0]):
            unconfirmed.popleft()

    def _is_withheld(self, topic: Topic) -> bool:
        state = self._topic(topic)
        return state.delivery is not None and not state.confirmed

    def waiting(self) -> list[str]:
        many = len(self._due)
        return [f"wishes: {many} topics wait until others are subscribed to"] if many else []
