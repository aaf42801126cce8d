"""The thin client: a port whose node is at the other end of a connection, and is replaced when it is lost.

When the node is lost the client moves to another one and subscribes again there. Each subscription is told of a gap,
because no node can know what was published in between, and of another one when it is complete again: a client that asks
for the present state then has it all. What both nodes deliver is delivered once. Publications that were certainly not
sent go to the new node; of those that may have been sent the outcome is unknown, which `on_uncertain` is told.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cubecast.addresses import Address
from cubecast.errors import (
    BadInput,
    Closed,
    CubecastError,
    DamagedLog,
    Fenced,
    Forgotten,
    NotDurable,
    NotKept,
    NotPermitted,
    OutcomeUnknown,
    Unreachable,
)
from cubecast.ids import Topic
from cubecast.net.gateway.messages import (
    Advertised,
    CaughtUp,
    CutLog,
    Deliver,
    Durable,
    Ended,
    ListLog,
    LogCut,
    LogList,
    LogPlace,
    LogRange,
    Lost,
    Ping,
    PlaceInLog,
    Pong,
    ProducerKnown,
    Reaches,
    ReadLog,
    Ready,
    RegisterProducer,
    Resumed,
    Stable,
    Standing,
    StatusReply,
    StatusRequest,
    Taken,
    decode_from_node,
    encode,
)
from cubecast.net.gateway.outbox import Uncertain
from cubecast.net.gateway.remote_publications import Advertisements, RemotePublications
from cubecast.net.gateway.remote_subscriptions import RemoteSubscriptions
from cubecast.net.links.calling import Dialler
from cubecast.net.links.connection import Connection
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.port.port import ProducerState, PublisherCut, Since, Sink, from_cut
from cubecast.net.port.ranges import ALL, LogPiece, TopicLog, Wanted
from cubecast.net.settings.config import MAX_PAYLOAD

# A thin client's questions about the log of its node. Offsets count at that node only, so no other one is asked.

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


# The client.

log = logging.getLogger(__name__)

PING_EVERY, SILENT_FOR = 2.0, 6.0
"""Seconds between signs of life, and without any before the node is taken for dead."""
CLOSING_TIME = 5.0


def warn(uncertain: Uncertain) -> None:
    topics = ", ".join(uncertain.topics[:5])
    log.warning("whether %d messages published on %s reached a node is not known", uncertain.messages, topics)


def complain(reason: str) -> None:
    log.error("the node refused a publication: %s", reason)


class ClientPort:
    """A `Port`. `await start()` first; it returns when a node has answered."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        cluster: str = "cubecast",
        name: str = "",
        patience: float = 60.0,
        on_uncertain: Callable[[Uncertain], object] = warn,
        on_refused: Callable[[str], object] = complain,
        login: Login = NOTHING,
        fills: bool = False,
        stays: bool = False,
    ) -> None:
        """`patience`: seconds without any node after which the port gives up and ends everything; `fills`: for a
        node's log, so that nodes answer that are not ready for clients yet; `stays`: with its first node or with none.
        """
        self._stays = stays
        self._dialler = Dialler(addresses, cluster, name, random.Random(), login, fills=fills)
        self._patience = patience
        self._on_uncertain, self._on_refused = on_uncertain, on_refused
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._node = ""
        self._subscriptions = RemoteSubscriptions(self._send)
        self._publications = RemotePublications(self._send, lambda: self._connection is not None, on_refused)
        self._log = LogQuestions(self._send, lambda: self._connection is not None)
        self._advertisements = Advertisements(self._send)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._requests = 0
        self._closed: CubecastError | None = None
        self._is_shut = False
        self._moving: asyncio.Task[None] | None = None
        self._heart: asyncio.TimerHandle | None = None
        self._last_word = 0.0
        self._handlers = self._handling()

    def _handling(self) -> dict[type, Callable[[Any], None]]:
        return {
            Deliver: self._subscriptions.on_deliver,
            Ready: self._subscriptions.on_ready,
            Lost: self._subscriptions.on_gap,
            Ended: self._subscriptions.on_ended,
            Resumed: self._subscriptions.on_resumed,
            Standing: self._subscriptions.on_standing,
            CaughtUp: self._subscriptions.on_caught_up,
            Taken: self._publications.on_taken,
            Stable: self._publications.on_stable,
            Durable: self._publications.on_durable,
            Reaches: self._publications.on_reaches,
            StatusReply: self._on_status,
            Advertised: self._advertisements.on_advertised,
            LogRange: self._log.on_range,
            LogList: self._log.on_list,
            LogCut: self._log.on_cut,
            LogPlace: self._log.on_place,
            ProducerKnown: self._log.on_producer,
            Pong: lambda _: None,
        }

    async def start(self, timeout: float = 5.0) -> None:
        """With the reasons, Unreachable when no node answers in time, BadInput when all refuse."""
        await self._connect(timeout)

    @property
    def node(self) -> str:
        """The node in use, for people."""
        return self._node

    # The connection

    async def _connect(self, patience: float) -> None:
        connection, accepted = await self._dialler.dial(patience)
        self._connection, self._node = connection, f"node {accepted.place.node} at {connection.label}"
        self._last_word = self._loop.time()
        self._heart = self._loop.call_later(PING_EVERY, self._beat, self._last_word + PING_EVERY)
        self._publications.max_payload = min(MAX_PAYLOAD, accepted.max_payload or MAX_PAYLOAD)
        connection.take_over(self._on_frames, self._on_lost)
        self._advertisements.open_all()
        self._subscriptions.open_all()
        for request in self._asked:
            self._send(StatusRequest(request))
        self._publications.flush()

    def _on_frames(self, connection: Connection, frames: list[bytes]) -> None:
        self._last_word = self._loop.time()
        for frame in frames:
            message = decode_from_node(frame)
            self._handlers[type(message)](message)

    def _on_lost(self, connection: Connection, error: Exception | None) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        if self._heart is not None:
            self._heart.cancel()
        self._log.fail(OutcomeUnknown(f"the connection to {self._node} broke while its log was read"))
        uncertain = self._publications.connection_lost(self._node)
        if uncertain.messages:
            self._loop.call_soon(self._on_uncertain, uncertain)
        if self._stays and not self._is_shut:
            self._shut(OutcomeUnknown(f"{self._node} is lost: {error or 'it closed the connection'}"))
        elif not self._is_shut:
            log.info("lost %s: %s", self._node, error or "closed")
            self._moving = self._loop.create_task(self._move(), name="move to another node")

    async def _move(self) -> None:
        before = self._node
        try:
            await self._connect(self._patience)
        except (BadInput, Unreachable) as error:
            self._shut(OutcomeUnknown(f"{before} is lost, and no other node takes this client: {error}"))
        else:
            moved = f"moved from {before} to {self._node}"
            log.info(moved)
            self._subscriptions.tell_moved(moved)

    def _beat(self, due: float) -> None:
        if self._connection is None:
            return
        now = self._loop.time()
        if now - due > PING_EVERY:
            self._last_word = now  # this process stood still: what the node said meanwhile has not been read
        silence = now - self._last_word
        if silence > SILENT_FOR:
            self._connection.abort(f"{self._node} said nothing for {silence:.1f} s")
        else:
            self._send(Ping())
            self._heart = self._loop.call_later(PING_EVERY, self._beat, now + PING_EVERY)

    def _send(self, message: Any) -> None:
        if self._connection is not None:
            self._connection.send(encode(message))

    # The port

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        self._check_open()
        return self._subscriptions.subscribe(pattern, sink, since, where)

    def unsubscribe(self, subscription: int) -> None:
        self._subscriptions.unsubscribe(subscription)

    def pause(self, subscription: int) -> None:
        self._subscriptions.pause(subscription)

    def resume(self, subscription: int) -> None:
        self._subscriptions.resume(subscription)

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        if self._closed is not None:
            raise self._closed
        return self._publications.publish(topic, payloads)

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        self._check_open()
        return self._publications.ask(topic, payload)

    def advertise(self, topic: Topic, where: str | None) -> Awaitable[None]:
        self._check_open()
        self._publications.flush()
        return self._advertisements.advertise(topic, where)

    def unadvertise(self, topic: Topic) -> Awaitable[None]:
        self._check_open()
        self._publications.flush()
        return self._advertisements.unadvertise(topic)

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        return self._publications.doubt(accepted)

    def has_room(self, topic: Topic) -> bool:
        """One budget for all topics: they share the connection."""
        return self._publications.has_room

    def room(self, topic: Topic) -> Awaitable[None]:
        self._check_open()
        return self._publications.room()

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        self._check_open()
        return self._publications.stable(topic, accepted)

    def durable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        self._check_open()
        return self._publications.durable(topic, accepted)

    def read_log(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL) -> Awaitable[LogPiece]:
        self._check_open()
        return self._log.read(topic, start, stop, wanted)

    def log_topics(self, after: Topic = "") -> Awaitable[list[TopicLog]]:
        self._check_open()
        return self._log.topics(after)

    def log_cut(self, topic: Topic, offset: int) -> Awaitable[PublisherCut]:
        self._check_open()
        return self._log.cut(topic, offset)

    def log_place(self, topic: Topic, cut: PublisherCut) -> Awaitable[int]:
        self._check_open()
        return self._log.place(topic, cut)

    def log_at(self, topic: Topic, at: float) -> Awaitable[int]:
        self._check_open()
        return self._log.place(topic, {}, at=at)

    def log_reach(self, topic: Topic, cut: PublisherCut) -> Awaitable[int]:
        self._check_open()
        return self._log.place(topic, cut, reaches=True)

    def register_producer(self, name: str, epoch: int, topics: Sequence[Topic]) -> Awaitable[ProducerState]:
        self._check_open()
        return self._log.register_producer(name, epoch, list(topics))

    def status(self) -> Awaitable[dict[str, Any]]:
        self._check_open()
        self._requests += 1
        request, future = self._requests, self._loop.create_future()
        self._asked[request] = future
        future.add_done_callback(lambda _: self._asked.pop(request, None))
        self._send(StatusRequest(request))
        return future

    def _on_status(self, message: StatusReply) -> None:
        future = self._asked.get(message.request)
        if future is not None and not future.done():
            if "error" in message.status:
                future.set_exception(CubecastError(message.status["error"]))
            else:
                future.set_result(message.status)

    # The end

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed

    async def close(self) -> None:
        """Let what was published reach a node, then go. OutcomeUnknown when it did not get there in time."""
        if self._closed is not None:
            return
        self._closed = Closed("this client is closed")
        self._subscriptions.end_all(None)
        self._publications.flush()
        try:
            async with asyncio.timeout(CLOSING_TIME):
                await self._publications.drained()
        except TimeoutError:
            left = self._publications.left
            raise OutcomeUnknown(f"closed while {left} messages were not known to have reached a node") from None
        finally:
            self._shut(self._closed)

    def _shut(self, error: CubecastError) -> None:
        self._closed, self._is_shut = Closed(str(error)), True
        if self._moving is not None and self._moving is not asyncio.current_task():
            self._moving.cancel()
        if self._heart is not None:
            self._heart.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._subscriptions.end_all(None if isinstance(error, Closed) else error)
        unsent = self._publications.close(error)
        if unsent.messages and not isinstance(error, Closed):  # who closes it is told
            topics = ", ".join(unsent.topics[:5])
            self._on_refused(f"{unsent.messages} messages on {topics} were not sent, and not published: {error}")
        self._log.fail(error)
        self._advertisements.fail(error)
        for future in self._asked.values():
            if not future.done():
                future.set_exception(error)
