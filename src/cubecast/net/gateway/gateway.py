"""A node's side of the connection to one thin client.

What is held for a client is bounded both ways. Towards it: when its connection is full its subscriptions are paused,
and when it stays full it is cut off. From it: publications the node has no room for wait here, no more of them than
the client has credit for. They are taken in the order they came, whatever their topic.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cubecast.errors import CubecastError, RemoteProtocolError
from cubecast.net.gateway.client_publications import ClientPublications
from cubecast.net.gateway.client_subscriptions import MOST_SUBSCRIPTIONS, ClientSubscriptions
from cubecast.net.gateway.link import Link, OpenRequests
from cubecast.net.gateway.messages import (
    Advertise,
    AwaitDurable,
    AwaitStable,
    CutLog,
    ListLog,
    LogCut,
    LogList,
    LogPlace,
    LogRange,
    Pause,
    Ping,
    PlaceInLog,
    Pong,
    ProducerKnown,
    Publish,
    ReadLog,
    RegisterProducer,
    Resume,
    StatusReply,
    StatusRequest,
    Subscribe,
    Unsubscribe,
    decode_from_client,
    encode,
)
from cubecast.net.links.loop import Slices
from cubecast.net.node.status import fitting
from cubecast.net.port.port import NodePort, ProducerState
from cubecast.net.security.limits import Bucket, Holdings, Share
from cubecast.net.settings.security import Limits

MOST_STATUS = 1 << 20
"""Bytes of an answer about the node; a client hangs up on frames that are too large."""
FULL_FOR = 2.0
"""Seconds a client's connection may stay full."""
REQUESTS_PER_SECOND = 10_000.0
"""Other than publications."""
SILENT_FOR = 30.0
"""Seconds without a word after which a client is taken for dead; it sends a word every few seconds."""


class Gateway:
    """One client. Frames go in through `on_frames`, out through the link; `close` when the connection is gone."""

    def __init__(
        self,
        port: NodePort,
        link: Link,
        *,
        full_for: float = FULL_FOR,
        silent_for: float = SILENT_FOR,
        requests_per_second: float = REQUESTS_PER_SECOND,
        subscriptions: int = MOST_SUBSCRIPTIONS,
        alike: int = MOST_SUBSCRIPTIONS,
        slices: Slices | None = None,
        share: Share | None = None,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_full` is told when the connection becomes full."""
        self._port, self._link, self._silent_for = port, link, silent_for
        self._loop = asyncio.get_running_loop()
        self._open = OpenRequests()
        self._subscriptions = ClientSubscriptions(
            port,
            link,
            self.send,
            slices or Slices(),
            share or Share(Holdings(Limits), "", None),
            on_full,
            full_for=full_for,
            most=subscriptions,
            alike=alike,
        )
        self._publications = ClientPublications(port, link, self.send, self._open)
        self._log = LogService(port, self.send)
        self._requests = Bucket(requests_per_second, 1.0, self._loop.time())
        self._closed = False
        self._last_word = self._loop.time()
        self._silence_timer = self._loop.call_later(silent_for, self._check_silence)
        self._fenced: Callable[[str], None] = lambda reason: self._link.abort(reason)
        self._handlers = self._handling()

    def _handling(self) -> dict[type, Callable[[Any], None]]:
        return {
            Subscribe: self._subscriptions.on_subscribe,
            Unsubscribe: self._subscriptions.on_unsubscribe,
            Pause: self._subscriptions.on_pause,
            Resume: self._subscriptions.on_resume,
            Publish: self._publications.on_publish,
            AwaitStable: self._publications.on_await,
            AwaitDurable: self._publications.on_await,
            StatusRequest: self._on_status_request,
            Advertise: self._publications.on_advertise,
            ReadLog: self._log.on_read,
            ListLog: self._log.on_list,
            CutLog: self._log.on_cut,
            PlaceInLog: self._log.on_place,
            RegisterProducer: self._on_register_producer,
            Ping: lambda _: self.send(Pong()),
        }

    def send(self, message: Any) -> None:
        if not self._closed:
            self._link.send(encode(message))

    def on_frames(self, frames: list[bytes]) -> None:
        """RemoteProtocolError for what no correct client sends; the connection is then to be closed."""
        self._last_word = self._loop.time()
        for frame in frames:
            message = decode_from_client(frame)
            if type(message) is not Publish:
                self._count_request()
            self._handlers[type(message)](message)
        self._publications.take()

    def _count_request(self) -> None:
        if self._requests.wait(self._last_word):
            raise RemoteProtocolError("it asks more often than a client may")
        self._requests.take(1)

    def close(self) -> None:
        """The client is gone."""
        if not self._closed:
            self._closed = True
            self._silence_timer.cancel()
            self._log.close()
            self._port.forget_producer(self._fenced)
            self._open.close()
            self._publications.close()
            self._subscriptions.close()

    def on_room(self) -> None:
        """The connection is not full any more."""
        self._subscriptions.on_room()

    def _check_silence(self) -> None:
        left = self._last_word + self._silent_for - self._loop.time()
        if left <= 0:
            self._link.abort(f"the client {self._link.label} said nothing for {self._silent_for} s")
        else:
            self._silence_timer = self._loop.call_later(left, self._check_silence)

    # Questions

    def _on_status_request(self, message: StatusRequest) -> None:
        def done(future: asyncio.Future[dict[str, Any]]) -> None:
            error = future.exception()
            status = fitting(future.result(), MOST_STATUS) if error is None else {"error": str(error)}
            self.send(StatusReply(message.request, status))

        self._open.begin()
        self._open.follow(self._port.status(), done)

    def _on_register_producer(self, message: RegisterProducer) -> None:
        def done(future: asyncio.Future[ProducerState]) -> None:
            error = future.exception()
            told = None if error is None else (type(error).__name__, str(error))
            self.send(ProducerKnown(message.request, None if error else future.result(), told))

        self._open.begin()
        state = self._port.register_producer(message.name, message.epoch, message.topics, self._fenced)
        self._open.follow(state, done)


# A gateway's answers about its node's log, few at a time.

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
