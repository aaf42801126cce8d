"""What the application wants to receive, and asking everybody which topics there are that it is interested in.

Topics that come to be later need no asking: whoever is about to publish to one for the first time asks everybody by a
wave, and a node answers a wave only after it has subscribed to what its interest matches. So once the inquiry is
complete and the subscriptions it brought are confirmed, nobody publishes anything the interest matches without
addressing this node.
"""

from collections.abc import Iterator, Sequence

from cubecast.ids import NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.packets import Inquiry, TopicList
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
