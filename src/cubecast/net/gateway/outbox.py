"""What a thin client publishes, until the node has taken it. Pure bookkeeping: no connection, no clock.

Messages are counted in the order of acceptance. Those at the front are on their way (sent on this connection, not
known to be taken), the rest has certainly not been sent. When the connection breaks, the outcome of the former is
unknown and the latter wait for the next connection.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from cubecast.ids import Topic
from cubecast.net.gateway.messages import CREDIT, AwaitDurable, AwaitStable, Publish
from cubecast.net.port.chunks import MESSAGE_OVERHEAD, MOST_BYTES, MOST_MESSAGES

Question: TypeAlias = AwaitStable | AwaitDurable

TOPICS_REMEMBERED = 1_000
"""Topics of which it is known how far they were published on."""


class Uncertain(NamedTuple):
    """How much of what was published may or may not have reached the node."""

    messages: int
    topics: tuple[Topic, ...]


class _Pile:
    """Messages of one topic that will be one frame."""

    __slots__ = ("payloads", "request", "size", "topic")

    def __init__(self, topic: Topic, request: int | None = None) -> None:
        self.topic = topic
        self.request = request
        """Of a question, which is a frame of its own."""
        self.payloads: list[bytes] = []
        self.size = 0


class Outbox:
    def __init__(self, budget: int, credit: int = CREDIT) -> None:
        self._budget, self._credit = budget, credit
        self._unsent: deque[_Pile | tuple[Question, float]] = deque()
        self._unsent_bytes = 0
        self._under_way: deque[tuple[int, _Pile]] = deque()
        self._under_way_bytes = 0
        self._number = 0
        self.accepted = 0
        """Messages ever accepted."""
        self.sent = 0
        """Of these, how many were ever sent."""
        self._settled = 0
        """Of these, how many are taken, refused, or lost."""
        self._last: OrderedDict[Topic, int] = OrderedDict()
        self._has_forgotten = False
        self.base = 0
        """Sent on connections that are gone: their nodes cannot be asked about them any more."""

    @property
    def has_room(self) -> bool:
        return self._unsent_bytes + self._under_way_bytes < self._budget

    @property
    def left(self) -> int:
        """Messages that no node is known to have taken."""
        under_way = sum(len(pile.payloads) for _, pile in self._under_way)
        return under_way + self.accepted - self.sent

    @property
    def is_empty(self) -> bool:
        return not self._unsent and not self._under_way

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        """Put at the end; with what is there already where that makes one frame."""
        for payload in payloads:
            pile = self._unsent[-1] if self._unsent else None
            size = len(payload) + MESSAGE_OVERHEAD
            if not isinstance(pile, _Pile) or not _fits(pile, topic, size):
                pile = _Pile(topic)
                self._unsent.append(pile)
            pile.payloads.append(payload)
            pile.size += size
            self._unsent_bytes += size
        self.accepted += len(payloads)
        if payloads:
            self._last[topic] = self.accepted
            self._last.move_to_end(topic)
            if len(self._last) > TOPICS_REMEMBERED:
                self._last.popitem(last=False)
                self._has_forgotten = True
        return self.last(topic)

    def publish_question(self, topic: Topic, payload: bytes, request: int) -> int:
        self._unsent.append(_Pile(topic, request))
        return self.publish(topic, (payload,))

    def last(self, topic: Topic) -> int:
        """The number of the last message on the topic; 0 when there was none, of any topic when its node does not
        remember."""
        return self._last.get(topic, self.accepted if self._has_forgotten else 0)

    def ask(self, question: Question, accepted: float) -> None:
        """To be sent after everything published so far; `accepted` is what it asks about."""
        self._unsent.append((question, accepted))

    def take(self) -> list[Publish | Question]:
        """What may be sent now, in order."""
        ready: list[Publish | Question] = []
        while self._unsent:
            first = self._unsent[0]
            if isinstance(first, tuple):
                ready.append(first[0])
            elif self._under_way_bytes and self._under_way_bytes + first.size > self._credit:
                break
            else:
                ready.append(self._send(first))
            self._unsent.popleft()
        return ready

    def _send(self, pile: _Pile) -> Publish:
        self._number += 1
        self._under_way.append((self._number, pile))
        self._under_way_bytes += pile.size
        self._unsent_bytes -= pile.size
        self.sent += len(pile.payloads)
        return Publish(self._number, pile.topic, pile.payloads, pile.request)

    def taken(self, number: int) -> range:
        """The node is done with everything up to this number of the connection; the messages of the last of these."""
        before = self._settled
        while self._under_way and self._under_way[0][0] <= number:
            pile = self._under_way.popleft()[1]
            self._under_way_bytes -= pile.size
            before, self._settled = self._settled, self._settled + len(pile.payloads)
        return range(before + 1, self._settled + 1)

    def unsent(self) -> Uncertain:
        """What no node has seen."""
        piles = [one for one in self._unsent if isinstance(one, _Pile)]
        return Uncertain(self.accepted - self.sent, tuple(dict.fromkeys(pile.topic for pile in piles)))

    def connection_lost(self) -> Uncertain:
        """Forget what was under way; questions about it are forgotten too."""
        piles = [pile for _, pile in self._under_way]
        self._under_way.clear()
        self._under_way_bytes = self._number = 0
        self.base = self._settled = self.sent
        self._unsent = deque(one for one in self._unsent if isinstance(one, _Pile) or one[1] > self.base)
        topics = dict.fromkeys(pile.topic for pile in piles)
        return Uncertain(sum(len(pile.payloads) for pile in piles), tuple(topics))


def _fits(pile: _Pile, topic: Topic, size: int) -> bool:
    if pile.request is not None and pile.payloads:
        return False
    return pile.topic == topic and pile.size + size <= MOST_BYTES and len(pile.payloads) < MOST_MESSAGES
