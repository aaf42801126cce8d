"""A thin client's subscriptions, which outlive the connections they are served through."""

from collections.abc import Callable, Iterable
from typing import Any

from cubecast.errors import (
    BadInput,
    Closed,
    CubecastError,
    DamagedLog,
    Forgotten,
    NotKept,
    NotPermitted,
    OutcomeUnknown,
)
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.net.gateway.messages import (
    CaughtUp,
    Deliver,
    Ended,
    Lost,
    Pause,
    Ready,
    Resume,
    Resumed,
    Standing,
    Subscribe,
    Unsubscribe,
)
from cubecast.net.port.port import (
    MOST_PUBLISHERS,
    FromBeginning,
    FromCut,
    FromNow,
    FromTime,
    GapNotice,
    Logged,
    Since,
    Sink,
    from_cut,
)
from cubecast.patterns import check_pattern
from cubecast.protocol.filters import parse

_ERRORS: dict[str, type[CubecastError]] = {
    kind.__name__: kind for kind in (BadInput, Closed, DamagedLog, Forgotten, NotKept, NotPermitted, OutcomeUnknown)
}
"""What a node may say of a subscription's end."""
PUBLISHERS_REMEMBERED = 65_536


class RemoteSubscription:
    __slots__ = (
        "_began_at",
        "_has_caught_up",
        "_last",
        "is_asking_a_log",
        "is_live_only",
        "is_partial",
        "is_paused",
        "pattern",
        "since",
        "sink",
        "where",
    )

    def __init__(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> None:
        self.pattern, self.sink, self.since, self.where = pattern, sink, since, where
        self.is_paused = False
        self.is_partial = False
        """Moved to another node whose subscription is not complete yet."""
        self.is_asking_a_log = False
        """Moved, and not known yet whether the new node's log can give what it asks for."""
        self.is_live_only = False
        """Moved to a node whose log cannot: no more of the past will come."""
        self._has_caught_up = False
        self._began_at: float | None = None
        self._last: dict[tuple[Topic, NodeId, Incarnation], int] = since.cut if isinstance(since, FromCut) else {}

    def deliver(self, message: Deliver) -> None:
        """What another node delivered before is left out: it comes in each publisher's order, so a number tells."""
        publisher = message.topic, message.source, message.incarnation
        counter, payloads, offset = message.counter, message.payloads, message.offset
        already = self._last.get(publisher, 0) - counter + 1
        if already > 0:
            payloads = payloads[already:]
            counter += already
            offset = None if offset is None else offset + already
        if payloads:
            if len(self._last) >= PUBLISHERS_REMEMBERED:
                del self._last[next(iter(self._last))]
            self._last[publisher] = counter + len(payloads) - 1
            first = MessageId(message.source, message.incarnation, counter)
            if offset is None:
                self.sink.on_batch(message.topic, first, payloads)
            else:
                self._began_at = message.at if self._began_at is None else self._began_at
                self.sink.on_batch(message.topic, first, payloads, Logged(offset, message.at))

    def learn(self, known: Iterable[tuple[Topic, NodeId, Incarnation, Counter]]) -> None:
        """All this is known, or came before the beginning."""
        for topic, source, incarnation, counter in known:
            publisher = topic, source, incarnation
            self._last[publisher] = max(counter, self._last.get(publisher, 0))

    def caught_up(self) -> None:
        self._has_caught_up = True
        self.tell_live()

    def tell_live(self) -> None:
        self.sink.on_live(dict(self._last))

    def elsewhere(self) -> Since | None:
        """Where to go on at another node: behind what is known. Before it is known what was before the beginning, only
        the time of it means the same there."""
        if self.since is None:
            return None
        if self._has_caught_up or isinstance(self.since, FromBeginning | FromCut):
            if len(self._last) <= MOST_PUBLISHERS:
                return from_cut(self._last, resumes=True, is_causal=True)
            return FromNow()
        if isinstance(self.since, FromTime):
            return self.since
        return FromNow() if self._began_at is None else FromTime(self._began_at)


class RemoteSubscriptions:
    """By number. `send` drops what is said while no node is there: `open_all` says it again."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._all: dict[int, RemoteSubscription] = {}
        self._numbers = 0
        self._moved = ""

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        if where is not None:
            parse(where)  # BadInput here and now, although the node reads it too
        self._numbers += 1
        self._all[self._numbers] = RemoteSubscription(check_pattern(pattern), sink, since, where)
        self._send(Subscribe(self._numbers, pattern, since, where))
        return self._numbers

    def unsubscribe(self, number: int) -> None:
        one = self._all.pop(number, None)
        if one is not None:
            self._send(Unsubscribe(number))
            one.sink.on_end(None)

    def pause(self, number: int) -> None:
        if number in self._all:
            self._all[number].is_paused = True
            self._send(Pause(number))

    def resume(self, number: int) -> None:
        if number in self._all:
            self._all[number].is_paused = False
            self._send(Resume(number))

    def open_all(self) -> None:
        """At a node that knows nothing of them."""
        for number, one in self._all.items():
            since = one.elsewhere()
            one.is_live_only, one.is_asking_a_log = False, since is not None and not isinstance(since, FromCut)
            self._open(number, one, since)

    def _open(self, number: int, one: RemoteSubscription, since: Since | None) -> None:
        self._send(Subscribe(number, one.pattern, since, one.where))
        if one.is_paused:
            self._send(Pause(number))

    def tell_moved(self, moved: str) -> None:
        """A gap now, before the new node delivers anything; another one when its subscription has become complete.

        Who goes on behind a cut is told when the new node says that it cannot.
        """
        self._moved = moved
        for one in list(self._all.values()):
            if not isinstance(one.elsewhere(), FromCut):
                self._tell_moved(one)

    def _tell_moved(self, one: RemoteSubscription) -> None:
        one.is_partial = True
        one.sink.on_gap(GapNotice(one.pattern, (), f"{self._moved}; messages may be missing until the next gap"))

    def end_all(self, error: CubecastError | None) -> None:
        everybody, self._all = list(self._all.values()), {}
        for one in everybody:
            one.sink.on_end(error)

    # What the node says; it may speak of subscriptions that have just been closed here

    def on_deliver(self, message: Deliver) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            one.deliver(message)

    def on_ready(self, message: Ready) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            if one.is_partial:
                one.is_partial = False
                one.sink.on_gap(GapNotice(one.pattern, (), "subscribed at another node; from here on all arrives"))
            one.is_asking_a_log = False
            one.sink.on_ready()
            if one.is_live_only:
                one.tell_live()  # a subscriber that waits for the rest of the past has a gap instead

    def on_gap(self, message: Lost) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            named, runs = tuple(message.missing), tuple(message.runs)
            one.sink.on_gap(GapNotice(message.topic, named, message.reason, runs, message.count, message.offsets))

    def on_resumed(self, message: Resumed) -> None:
        one = self._all.get(message.subscription)
        if one is not None and not message.is_complete:
            one.is_live_only = True
            self._tell_moved(one)

    def on_standing(self, message: Standing) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            one.learn(message.known)

    def on_caught_up(self, message: CaughtUp) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            one.caught_up()

    def on_ended(self, message: Ended) -> None:
        one = self._all.get(message.subscription)
        if one is not None and one.is_asking_a_log:
            # The gap was told when it moved: better live with it than not at all. What forbids that, too, ends it.
            one.is_asking_a_log, one.is_live_only = False, True
            self._open(message.subscription, one, None)
        elif one is not None:
            del self._all[message.subscription]
            one.sink.on_end(_ERRORS.get(message.kind, BadInput)(message.reason))

    def __len__(self) -> int:
        return len(self._all)
