"""A gateway's answers about its node's log, few at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cubecast.errors import CubecastError, RemoteProtocolError
from cubecast.net.gateway.messages import CutLog, ListLog, LogCut, LogList, LogPlace, LogRange, PlaceInLog, ReadLog
from cubecast.net.port.port import NodePort

log = logging.getLogger(__name__)

MOST_AT_ONCE = 4
"""Pieces one client may have asked for and not got: each is held in memory until its connection takes it."""


class LogService:
    def __init__(self, port: NodePort, send: Callable[[Any], None]) -> None:
        self._port, self._send = port, send
        self._open: set[asyncio.Task[None]] = set()

    def on_read(self, message: ReadLog) -> None:
        self._begin(self._read(message))

    def on_list(self, message: ListLog) -> None:
        self._begin(self._list(message))

    def on_cut(self, message: CutLog) -> None:
        self._begin(self._cut(message))

    def on_place(self, message: PlaceInLog) -> None:
        self._begin(self._place(message))

    def _begin(self, answer: Any) -> None:
        if len(self._open) >= MOST_AT_ONCE:
            answer.close()
            raise RemoteProtocolError(f"more than {MOST_AT_ONCE} pieces of the log were asked for at once")
        task = asyncio.get_running_loop().create_task(answer, name="read the log for a client")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _read(self, message: ReadLog) -> None:
        answer = self._port.read_log_packed(message.topic, message.start, message.stop, message.wanted)
        piece, error = await _attempt(answer)
        self._send(LogRange(message.request, None if piece is None else msgspec.Raw(piece), error))  # type: ignore[arg-type]

    async def _list(self, message: ListLog) -> None:
        topics, error = await _attempt(self._port.log_topics(message.after))
        topics = topics or []
        bounds, ends = [one[:3] for one in topics], [one.durable for one in topics]
        self._send(LogList(message.request, bounds, error, ends, topics[0].log_id if topics else ""))

    async def _cut(self, message: CutLog) -> None:
        cut, error = await _attempt(self._port.log_cut(message.topic, message.offset))
        known = [(source, incarnation, counter) for (_, source, incarnation), counter in (cut or {}).items()]
        self._send(LogCut(message.request, known, error))

    async def _place(self, message: PlaceInLog) -> None:
        cut = {(message.topic, source, incarnation): counter for source, incarnation, counter in message.known}
        ask = self._port.log_reach if message.reaches else self._port.log_place
        answer = ask(message.topic, cut) if message.at is None else self._port.log_at(message.topic, message.at)
        offset, error = await _attempt(answer)
        self._send(LogPlace(message.request, offset or 0, error))

    def close(self) -> None:
        for task in self._open:
            task.cancel()


async def _attempt(answer: Awaitable[Any]) -> tuple[Any, tuple[str, str] | None]:
    try:
        return await answer, None
    except CubecastError as error:
        return None, (type(error).__name__, str(error.args[0] if error.args else error))
    except Exception:  # our mistake, which is no reason to let a client wait for ever
        log.exception("the log could not be read for a client")
        return None, (CubecastError.__name__, "the node failed to read its log; it has logged why")
