"""A thin client's subscriptions, which outlive the connections they are served through."""

from collections.abc import Callable
from typing import Any

from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Incarnation, MessageId, NodeId, Topic
from cubecast.net.gateway_messages import Deliver, Ended, Lost, Pause, Ready, Resume, Subscribe, Unsubscribe
from cubecast.net.patterns import check_pattern
from cubecast.net.port import GapNotice, Sink

PUBLISHERS_REMEMBERED = 65_536


class RemoteSubscription:
    __slots__ = ("_last", "is_partial", "is_paused", "pattern", "sink")

    def __init__(self, pattern: str, sink: Sink) -> None:
        self.pattern, self.sink = pattern, sink
        self.is_paused = False
        self.is_partial = False
        """Moved to another node whose subscription is not complete yet."""
        self._last: dict[tuple[Topic, NodeId, Incarnation], int] = {}

    def deliver(self, message: Deliver) -> None:
        """What another node delivered before is left out: it comes in each publisher's order, so a number tells."""
        publisher = message.topic, message.source, message.incarnation
        counter, payloads = message.counter, message.payloads
        already = self._last.get(publisher, 0) - counter + 1
        if already > 0:
            payloads = payloads[already:]
            counter += already
        if payloads:
            if len(self._last) >= PUBLISHERS_REMEMBERED:
                del self._last[next(iter(self._last))]
            self._last[publisher] = counter + len(payloads) - 1
            self.sink.on_batch(message.topic, MessageId(message.source, message.incarnation, counter), payloads)


class RemoteSubscriptions:
    """By number. `send` drops what is said while no node is there: `open_all` says it again."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._all: dict[int, RemoteSubscription] = {}
        self._numbers = 0

    def subscribe(self, pattern: str, sink: Sink) -> int:
        self._numbers += 1
        self._all[self._numbers] = RemoteSubscription(check_pattern(pattern), sink)
        self._send(Subscribe(self._numbers, pattern))
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
            self._send(Subscribe(number, one.pattern))
            if one.is_paused:
                self._send(Pause(number))

    def tell_moved(self, moved: str) -> None:
        """A gap now, before the new node delivers anything; another one when its subscription has become complete."""
        for one in list(self._all.values()):
            one.is_partial = True
            one.sink.on_gap(GapNotice(one.pattern, (), f"{moved}; messages may be missing until the next gap"))

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
            one.sink.on_ready()

    def on_gap(self, message: Lost) -> None:
        one = self._all.get(message.subscription)
        if one is not None:
            one.sink.on_gap(GapNotice(message.topic, tuple(message.missing), message.reason))

    def on_ended(self, message: Ended) -> None:
        one = self._all.pop(message.subscription, None)
        if one is not None:
            one.sink.on_end(BadInput(message.reason))

    def __len__(self) -> int:
        return len(self._all)
