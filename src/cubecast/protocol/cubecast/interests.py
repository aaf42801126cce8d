"""What the application wants to receive, and asking everybody which topics there are that it is interested in.

Topics that come to be later need no asking: whoever is about to publish to one for the first time asks everybody by a
wave, and a node answers a wave only after it has subscribed to what its interest matches. So once the inquiry is
complete and the subscriptions it brought are confirmed, nobody publishes anything the interest matches without
addressing this node.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from cubecast.ids import NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.packets import Inquiry, TopicList
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.effects import InterestMatched, Unsubscribed
from cubecast.protocol.inputs import Interest


class Wishes:
    """Topics by name, and whatever topic the interest matches; they outlive lives.

    A topic is wanted when it was named, or when the interest matches it; it is wished for once it is known, too.
    """

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


class OpenInquiry:
    """Which topics there are, for an interest that was declared after they came to be.

    One per incarnation; a newer interest asks anew.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._number = 0
        self._cursors: dict[NodeId, Topic] = {}
        """Who has not told everything, and up to which topic it has."""
        self.must_announce = False
        """The application was not told yet that its interest is known."""

    def __bool__(self) -> bool:
        return bool(self._cursors)

    def begin(self) -> None:
        registry = self._context.registry
        self._number += 1
        self._cursors = {node: "" for node in range(registry.others.bit_length()) if registry.others >> node & 1}
        self.must_announce = self._context.busy = True
        self.ask()

    def end(self) -> None:
        """There is no interest any more."""
        self._cursors = {}
        self.must_announce = False

    def ask(self) -> None:
        for node, after in self._cursors.items():
            self._ask(node, after)

    def answered(self, sender: NodeId, packet: TopicList) -> bool:
        """True when the answer is one that was waited for."""
        if packet.number != self._number or self._cursors.get(sender) != packet.after:
            return False
        if packet.more and packet.topics:
            self._cursors[sender] = packet.topics[-1]
            self._ask(sender, packet.topics[-1])
        else:
            del self._cursors[sender]
        return True

    def peer_died(self, node: NodeId) -> None:
        self._cursors.pop(node, None)

    def waiting(self) -> list[str]:
        return [f"the interest: waits for the topics of nodes {sorted(self._cursors)}"] if self._cursors else []

    def _ask(self, node: NodeId, after: Topic) -> None:
        context = self._context
        context.send((node,), Inquiry(context.by, context.dead, self._number, after))


def answer(context: Context, packet: Inquiry, names: Sequence[Topic], after: int) -> TopicList:
    """The next topics in the order in which this life came to know them, as many as fit.

    Those it comes to know meanwhile are at the end. Asked to go on behind a topic that another life named, it begins
    anew: `after` is the place of the first topic that was not named.
    """
    part = tuple(names[after : after + context.parameters.topics_per_answer])
    more = after + len(part) < len(names)
    return TopicList(context.by, context.dead, packet.by, packet.number, packet.after, part, more)


# Bringing the subscriptions of one life in line with the wishes, some topics in a step.
#
# An interest may match any number of topics, and so may one that is given up; each of them costs a wave. All at once
# would keep the node from everything else, and waves that are not answered in time are sent again. So the next ones are
# begun as earlier ones are answered. A topic that somebody is about to publish to is not put off: it is looked at in
# that step.

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
