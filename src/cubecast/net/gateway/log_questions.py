"""A thin client's questions about the log of its node. Offsets count at that node only, so no other one is asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cubecast.errors import (
    BadInput,
    CubecastError,
    DamagedLog,
    Fenced,
    Forgotten,
    NotDurable,
    NotKept,
    NotPermitted,
    OutcomeUnknown,
)
from cubecast.ids import Topic
from cubecast.net.gateway.messages import (
    CutLog,
    ListLog,
    LogCut,
    LogList,
    LogPlace,
    LogRange,
    PlaceInLog,
    ProducerKnown,
    ReadLog,
    RegisterProducer,
)
from cubecast.net.port.port import ProducerState, PublisherCut, from_cut
from cubecast.net.port.ranges import LogPiece, TopicLog, Wanted

_ERRORS: dict[str, type[CubecastError]] = {
    kind.__name__: kind
    for kind in (BadInput, DamagedLog, Fenced, Forgotten, NotDurable, NotKept, NotPermitted, CubecastError)
}


class LogQuestions:
    def __init__(self, send: Callable[[Any], None], is_connected: Callable[[], bool]) -> None:
        self._send, self._is_connected = send, is_connected
        self._requests = 0
        self._open: dict[int, asyncio.Future[Any]] = {}

    def read(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted) -> Awaitable[LogPiece]:
        return self._ask(lambda request: ReadLog(request, topic, start, stop, wanted))

    def topics(self, after: Topic) -> Awaitable[list[TopicLog]]:
        return self._ask(lambda request: ListLog(request, after))

    async def cut(self, topic: Topic, offset: int) -> PublisherCut:
        known = await self._ask(lambda request: CutLog(request, topic, offset))
        return {(topic, source, incarnation): counter for source, incarnation, counter in known}

    def place(self, topic: Topic, cut: PublisherCut, reaches: bool = False, at: float | None = None) -> Awaitable[int]:
        known = [(source, life, last) for one, source, life, last in from_cut(cut).known if one == topic]
        return self._ask(lambda request: PlaceInLog(request, topic, known, reaches, at))

    def register_producer(self, name: str, epoch: int, topics: list[Topic]) -> Awaitable[ProducerState]:
        return self._ask(lambda request: RegisterProducer(request, name, epoch, topics))

    def on_producer(self, message: ProducerKnown) -> None:
        self._answer(message.request, message.state, message.error)

    def _ask(self, question: Callable[[int], Any]) -> asyncio.Future[Any]:
        self._requests += 1
        request, future = self._requests, asyncio.get_running_loop().create_future()
        if self._is_connected():
            self._open[request] = future
            future.add_done_callback(lambda _: self._open.pop(request, None))
            self._send(question(request))
        else:
            future.set_exception(OutcomeUnknown("there is no node at present whose log could be read"))
        return future

    def on_range(self, message: LogRange) -> None:
        self._answer(message.request, message.piece, message.error)

    def on_list(self, message: LogList) -> None:
        ends = message.durable or [0] * len(message.topics)  # a node that does not tell: nothing is promised
        topics = [TopicLog(*one, end, message.log_id) for one, end in zip(message.topics, ends, strict=True)]
        self._answer(message.request, topics, message.error)

    def on_cut(self, message: LogCut) -> None:
        self._answer(message.request, message.known, message.error)

    def on_place(self, message: LogPlace) -> None:
        self._answer(message.request, message.offset, message.error)

    def _answer(self, request: int, answer: Any, error: tuple[str, str] | None) -> None:
        future = self._open.get(request)
        if future is not None and not future.done():
            if error is None:
                future.set_result(answer)
            else:
                future.set_exception(_ERRORS.get(error[0], CubecastError)(error[1]))

    def fail(self, error: CubecastError) -> None:
        """The node is gone, or the client is."""
        for future in list(self._open.values()):
            if not future.done():
                future.set_exception(error)
