"""A client's subscriptions at its node: opened and closed, paused while its connection is full.

What comes for one of them becomes messages of the gateway."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from cubecast.errors import BadInput, CubecastError, NotKept, RemoteProtocolError
from cubecast.ids import MessageId, Topic
from cubecast.net.gateway.link import Link
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
from cubecast.net.links.loop import Slices
from cubecast.net.port.chunks import pieces
from cubecast.net.port.port import FromCut, GapNotice, Logged, NodePort, PublisherCut, Since
from cubecast.net.security.limits import CUT_ENTRY, FILTER_CHARACTER, SUBSCRIPTION, Share

AT_ONCE = 10_000
"""Entries of a cut in one message."""


class Serving(Protocol):
    """The gateway it belongs to."""

    def send(self, message: Any) -> None: ...
    def check_full(self, sink: "ClientSink") -> None: ...
    def forget(self, number: int) -> None: ...


class ClientSink:
    """A client's subscription, as the node's port sees it."""

    __slots__ = ("_gateway", "_number", "asked", "held", "known", "number", "pattern", "size")

    def __init__(self, gateway: Serving, number: int) -> None:
        self._gateway, self._number = gateway, number
        self.number: int | None = None
        """The port's name for it."""
        self.asked = self.held = False
        """Paused because the client said so; because its connection is full."""
        self.known = 0
        """Entries of the cut it began with."""
        self.pattern = ""
        self.size = 0
        """Bytes it is counted with."""

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        source, incarnation, counter = first
        offset, at = (None, 0.0) if logged is None else logged
        for piece in pieces(payloads):
            self._gateway.send(Deliver(self._number, topic, source, incarnation, counter, list(piece), offset, at))
            counter += len(piece)
            offset = None if offset is None else offset + len(piece)
        self._gateway.check_full(self)

    def on_ready(self) -> None:
        self._gateway.send(Ready(self._number))

    def on_live(self, known: PublisherCut) -> None:
        entries = [(*publisher, counter) for publisher, counter in known.items()]
        for start in range(0, len(entries), AT_ONCE):
            self._gateway.send(Standing(self._number, entries[start : start + AT_ONCE]))
        self._gateway.send(CaughtUp(self._number))

    def on_gap(self, gap: GapNotice) -> None:
        named, runs = list(gap.missing), list(gap.runs)
        self._gateway.send(Lost(self._number, gap.topic, named, gap.reason, runs, gap.count, gap.offsets))

    def on_end(self, error: CubecastError | None) -> None:
        if error is not None:
            self._gateway.forget(self._number)
            self._gateway.send(Ended(self._number, str(error), type(error).__name__))


MOST_SUBSCRIPTIONS = 10_000
MOST_KNOWN = 20_000
"""Entries of the cuts that a client's open subscriptions began with; a client of ours sends no larger ones."""


class ClientSubscriptions:
    def __init__(
        self,
        port: NodePort,
        link: Link,
        send: Callable[[Any], None],
        slices: Slices,
        share: Share,
        on_full: Callable[[], None],
        *,
        full_for: float,
        most: int,
        alike: int,
    ) -> None:
        """At most so many in all, and so many alike; the link may stay full for `full_for` seconds."""
        self._port, self._link, self.send, self._slices, self._share = port, link, send, slices, share
        self._on_full, self._full_for, self._most, self._most_alike = on_full, full_for, most, alike
        self._loop = asyncio.get_running_loop()
        self._sinks: dict[int, ClientSink] = {}
        self._patterns: Counter[str] = Counter()
        self._known = 0
        self._held: dict[ClientSink, None] = {}
        """Those that wait for the connection."""
        self._full_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def on_subscribe(self, message: Subscribe) -> None:
        if message.subscription in self._sinks:
            raise RemoteProtocolError(f"subscription {message.subscription} exists already")
        sink = ClientSink(self, message.subscription)
        try:
            if len(self._sinks) >= self._most:
                raise BadInput(f"a client may have {self._most} subscriptions here, and has them")
            if self._patterns[message.pattern] >= self._most_alike:
                alike = f"a client may subscribe {self._most_alike} times to the same here"
                raise BadInput(f"{alike}, and has: share what comes in on {message.pattern}")
            sink.number = self._opened(message, sink)
            self._sinks[message.subscription] = sink
            sink.pattern = message.pattern
            self._patterns[sink.pattern] += 1
            self._known += sink.known
        except CubecastError as error:
            self.send(Ended(message.subscription, str(error), type(error).__name__))

    def _opened(self, message: Subscribe, sink: ClientSink) -> int:
        """Whether there is memory for it is asked first."""
        size = SUBSCRIPTION + (CUT_ENTRY * len(message.since.known) if isinstance(message.since, FromCut) else 0)
        size += FILTER_CHARACTER * len(message.where or "")
        self._share.take(size)
        try:
            number = self._open_at_port(message, sink)
        except BaseException:
            self._share.give_back(size)
            raise
        sink.size = size
        return number

    def _open_at_port(self, message: Subscribe, sink: ClientSink) -> int:
        since, subscribe = message.since, self._port.subscribe
        if message.where is not None:
            subscribe = partial(subscribe, where=message.where)
        if since is None:
            return subscribe(message.pattern, sink)
        resumes = isinstance(since, FromCut) and since.resumes
        try:
            sink.known = self._checked(since)
            number = subscribe(message.pattern, sink, since)
        except NotKept:
            if not resumes:
                raise
            sink.known = 0
            self.send(Resumed(message.subscription, is_complete=False))
            return subscribe(message.pattern, sink)
        if resumes:
            self.send(Resumed(message.subscription, is_complete=True))
        return number

    def _checked(self, since: Since) -> int:
        """How many entries it has; NotKept when they are too many."""
        known = len(since.known) if isinstance(since, FromCut) else 0
        if self._known + known > MOST_KNOWN:
            raise NotKept(f"the cuts of a client's subscriptions may name {MOST_KNOWN} publishers here, not more")
        return known

    def _drop(self, number: int) -> ClientSink | None:
        sink = self._sinks.pop(number, None)
        if sink is not None:
            self._patterns[sink.pattern] -= 1
            if not self._patterns[sink.pattern]:
                del self._patterns[sink.pattern]
            self._known -= sink.known
            self._share.give_back(sink.size)
        return sink

    def on_unsubscribe(self, message: Unsubscribe) -> None:
        sink = self._drop(message.subscription)
        if sink is not None and sink.number is not None:
            self._port.unsubscribe(sink.number)

    def on_pause(self, message: Pause) -> None:
        sink = self._sinks.get(message.subscription)
        if sink is not None and not sink.asked:
            sink.asked = True
            self._hold(sink, sink.held)

    def on_resume(self, message: Resume) -> None:
        sink = self._sinks.get(message.subscription)
        if sink is not None and sink.asked:
            sink.asked = False
            self._let_go(sink)

    def _hold(self, sink: ClientSink, already: bool) -> None:
        if sink.number is not None and not already:
            self._port.pause(sink.number)

    def _let_go(self, sink: ClientSink) -> None:
        if sink.number is not None and not sink.asked and not sink.held:
            self._port.resume(sink.number)

    def check_full(self, sink: ClientSink) -> None:
        """After something was sent: a client that does not read is waited for, but not for ever."""
        if self._link.is_full and not sink.held and not self._closed:
            sink.held = True
            self._held[sink] = None
            self._hold(sink, sink.asked)
            if self._full_timer is None:
                self._loop.call_soon(self._on_full)
                reason = f"the client {self._link.label} read nothing for {self._full_for} s"
                self._full_timer = self._loop.call_later(self._full_for, self._link.abort, reason)

    def on_room(self) -> None:
        """The connection is not full any more."""
        if self._full_timer is not None:
            self._full_timer.cancel()
            self._full_timer = None
        held, self._held = self._held, {}
        if held:
            self._slices.begin(lambda: self._let_one_go(held))

    def _let_one_go(self, held: dict[ClientSink, None]) -> bool:
        sink = held.popitem()[0]
        sink.held = False
        self._let_go(sink)
        return bool(held)

    def forget(self, number: int) -> None:
        """The node ended a subscription of the client's."""
        self._drop(number)

    def close(self) -> None:
        """The client is gone."""
        self._closed = True
        if self._full_timer is not None:
            self._full_timer.cancel()
        if self._sinks:
            self._slices.begin(self._leave_one)

    def _leave_one(self) -> bool:
        """Of the subscriptions of a client that is gone; more than one may wait."""
        sink = self._sinks.popitem()[1]
        self._share.give_back(sink.size)
        if sink.number is not None:
            self._port.unsubscribe(sink.number)
        return bool(self._sinks)
