"""A thin client's publications: coalesced per turn, sent as the node gives credit, waited for."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cubecast.errors import BadInput, Closed, CubecastError, HandedOver, NotDurable, NotPermitted, OutcomeUnknown
from cubecast.ids import Topic
from cubecast.net.gateway.messages import (
    Advertise,
    Advertised,
    AwaitDurable,
    AwaitStable,
    Durable,
    Reaches,
    Stable,
    Taken,
)
from cubecast.net.gateway.outbox import Outbox, Question, Uncertain
from cubecast.net.settings.config import MAX_PAYLOAD
from cubecast.patterns import check_topic
from cubecast.protocol.filters import parse

_ERRORS: dict[str, type[CubecastError]] = {
    kind.__name__: kind for kind in (BadInput, NotDurable, NotPermitted, OutcomeUnknown)
}


class Advertisements:
    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._made: dict[Topic, str | None] = {}
        self._open: dict[int, tuple[Advertise, asyncio.Future[None]]] = {}
        self._numbers = 0

    def advertise(self, topic: Topic, where: str | None) -> asyncio.Future[None]:
        if where is not None:
            parse(where)  # BadInput here and now, although the node reads it too
        return self._ask(Advertise(self._next(), check_topic(topic), where))

    def unadvertise(self, topic: Topic) -> asyncio.Future[None]:
        return self._ask(Advertise(self._next(), check_topic(topic), None, True))

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, asked: Advertise) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[asked.request] = asked, future
        self._send(asked)
        return future

    def on_advertised(self, message: Advertised) -> None:
        asked, future = self._open.pop(message.request, (None, None))
        if asked is None or future is None:
            return
        if message.error is None:
            if asked.ends:
                self._made.pop(asked.topic, None)
            else:
                self._made[asked.topic] = asked.where
        if not future.done():
            if message.error is None:
                future.set_result(None)
            else:
                kind, text = message.error
                future.set_exception(_ERRORS.get(kind, CubecastError)(text))

    def open_all(self) -> None:
        """At a node that knows nothing of them. What others promised of the same topic there stays."""
        for topic, where in self._made.items():
            self._send(Advertise(self._next(), topic, where))
        for asked, _ in self._open.values():
            self._send(asked)

    def fail(self, error: CubecastError) -> None:
        for _, future in self._open.values():
            if not future.done():
                future.set_exception(error)


BUDGET = 4 << 20
"""Bytes published and not taken by a node, before publishers wait."""
DOUBTS_REMEMBERED = 1_000


class RemotePublications:
    """`send` sends at once when `is_connected` says so; what does not go out now goes out with the next connection."""

    def __init__(
        self, send: Callable[[Any], None], is_connected: Callable[[], bool], on_refused: Callable[[str], object]
    ) -> None:
        self._send, self._is_connected, self._on_refused = send, is_connected, on_refused
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(BUDGET)
        self._is_dirty = False
        self._requests = 0
        self._asked: dict[int, tuple[float, asyncio.Future[Any]]] = {}
        self._doubts: deque[tuple[range, CubecastError]] = deque(maxlen=DOUBTS_REMEMBERED)
        """The last messages that were refused, or were sent to a node that is gone."""
        self._logged: set[Topic] = set()
        """Topics that the present node is known to log."""
        self.max_payload = MAX_PAYLOAD
        """Bytes of a message that the present node, or the last one, takes."""
        self._room: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        self._check(topic, payloads)
        self._flush_soon()
        return self._outbox.publish(topic, payloads)

    def _check(self, topic: Topic, payloads: Sequence[bytes]) -> None:
        check_topic(topic)
        if payloads and max(map(len, payloads)) > self.max_payload:
            size, most = max(map(len, payloads)), self.max_payload
            raise BadInput(f"a message of {size} bytes; the node takes at most {most}. Nothing was published")

    def _flush_soon(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._loop.call_soon(self.flush)

    def ask(self, topic: Topic, payload: bytes) -> asyncio.Future[bool]:
        request = self._next()
        self._check(topic, (payload,))
        accepted = self._outbox.publish_question(topic, payload, request)
        self._flush_soon()
        future: asyncio.Future[bool] = self._loop.create_future()
        self._asked[request] = accepted, future
        future.add_done_callback(lambda _: self._asked.pop(request, None))
        return future

    def on_reaches(self, message: Reaches) -> None:
        if message.error is None:
            self._answer(message.request, None, message.anybody)
        else:
            kind, text = message.error
            self._answer(message.request, _ERRORS.get(kind, BadInput)(text))

    def flush(self) -> None:
        """Send what may be sent."""
        self._is_dirty = False
        if self._is_connected():
            for message in self._outbox.take():
                self._send(message)

    @property
    def has_room(self) -> bool:
        return self._outbox.has_room

    def room(self) -> Awaitable[None]:
        if self._room is None or self._room.done():
            self._room = self._loop.create_future()
            self._wake()
        return self._room

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        if not accepted:
            return self._done()  # nothing was ever published here
        return self._ask(AwaitStable(self._next(), topic), accepted)

    def durable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        if accepted:
            return self._ask(AwaitDurable(self._next(), topic, False), accepted)
        if topic in self._logged:
            return self._done()
        question = AwaitDurable(self._next(), topic, True)
        answer = self._ask(question, math.inf)  # any node may answer it
        answer.add_done_callback(lambda future: self._learn(topic, future))
        return answer

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        found = [
            (max(accepted.start, those.start), error) for those, error in self._doubts if _overlap(accepted, those)
        ]
        return min(found, key=lambda one: one[0], default=None)

    def _learn(self, topic: Topic, answer: asyncio.Future[None]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._logged.add(topic)

    def _done(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        future.set_result(None)
        return future

    def _next(self) -> int:
        self._requests += 1
        return self._requests

    def _ask(self, question: Question, accepted: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        if accepted <= self._outbox.base:
            text = f"the node that got this publication on {question.topic} is gone; it may have been published"
            future.set_exception(OutcomeUnknown(text))
            return future
        self._asked[question.request] = accepted, future
        future.add_done_callback(lambda _: self._asked.pop(question.request, None))
        self._outbox.ask(question, accepted)
        if not self._is_dirty:
            self.flush()
        return future

    def drained(self) -> Awaitable[None]:
        """Done when a node has taken everything, or nothing is left of which that could be known."""
        self._drained = self._loop.create_future()
        self._wake()
        return self._drained

    @property
    def left(self) -> int:
        """Messages no node is known to have taken."""
        return self._outbox.left

    def on_taken(self, message: Taken) -> None:
        those = self._outbox.taken(message.number)
        if message.refused is not None:
            self._doubts.append((those, BadInput(message.refused)))
            self._on_refused(message.refused)
            for accepted, future in list(self._asked.values()):
                if accepted in those and not future.done():
                    future.set_exception(BadInput(message.refused))
        self.flush()
        self._wake()

    def on_stable(self, message: Stable) -> None:
        kind = BadInput if message.refused else HandedOver if message.handed_over else OutcomeUnknown
        self._answer(message.request, None if message.unknown is None else kind(message.unknown))

    def on_durable(self, message: Durable) -> None:
        if message.error is None:
            self._answer(message.request, None)
        else:
            self._logged.clear()  # so that the next one asks first, and is not published
            kind, text = message.error
            self._answer(message.request, _ERRORS.get(kind, NotDurable)(text))

    def _answer(self, request: int, error: CubecastError | None, result: bool | None = None) -> None:
        _, future = self._asked.get(request, (0, None))
        if future is not None and not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def connection_lost(self, node: str) -> Uncertain:
        before = self._outbox.base
        uncertain = self._outbox.connection_lost()
        gone = OutcomeUnknown(f"the connection to {node} broke; what it got may have been published")
        self._doubts.append((range(before + 1, self._outbox.base + 1), gone))
        self._logged.clear()
        for accepted, future in list(self._asked.values()):
            if accepted <= self._outbox.base and not future.done():
                text = f"the connection to {node} broke before the answer came; it may have been published"
                future.set_exception(OutcomeUnknown(text))
        self._wake()
        return uncertain

    def close(self, error: CubecastError) -> Uncertain:
        """What was never sent."""
        unsent, unpublished = self._outbox.unsent(), Closed(f"{error}. Nothing was published")
        ends: list[tuple[asyncio.Future[None] | None, CubecastError]] = [
            (self._room, unpublished),
            (self._drained, error),
        ]
        for accepted, future in self._asked.values():
            is_sent = accepted <= self._outbox.sent
            ends.append((future, OutcomeUnknown(f"{error}; it may have been published") if is_sent else unpublished))
        for waiting, reason in ends:
            if waiting is not None and not waiting.done():
                waiting.set_exception(reason)
                waiting.exception()  # the publisher that waits gets it; where none does, that is no mistake
        return unsent

    def _wake(self) -> None:
        if self._room is not None and not self._room.done() and self._outbox.has_room:
            self._room.set_result(None)
        if self._drained is not None and not self._drained.done() and self._outbox.is_empty:
            self._drained.set_result(None)


def _overlap(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)
