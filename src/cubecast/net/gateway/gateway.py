"""A node's side of the connection to one thin client.

What is held for a client is bounded both ways. Towards it: when its connection is full its subscriptions are paused,
and when it stays full it is cut off. From it: publications the node has no room for wait here, no more of them than
the client has credit for. They are taken in the order they came, whatever their topic.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from cubecast.errors import BadInput, CubecastError, NotKept, OutcomeUnknown, RemoteProtocolError
from cubecast.ids import Topic
from cubecast.net.gateway.client_sink import ClientSink
from cubecast.net.gateway.log_serving import LogService
from cubecast.net.gateway.messages import (
    CREDIT,
    Advertise,
    Advertised,
    AwaitDurable,
    AwaitStable,
    CutLog,
    Durable,
    Ended,
    ListLog,
    Pause,
    Ping,
    PlaceInLog,
    Pong,
    ProducerKnown,
    Publish,
    Reaches,
    ReadLog,
    RegisterProducer,
    Resume,
    Resumed,
    Stable,
    StatusReply,
    StatusRequest,
    Subscribe,
    Taken,
    Unsubscribe,
    decode_from_client,
    encode,
)
from cubecast.net.links.connection import Traffic
from cubecast.net.links.slices import Slices
from cubecast.net.node.status import fitting
from cubecast.net.port.chunks import weight
from cubecast.net.port.port import NodePort, ProducerState
from cubecast.net.port.since import FromCut, Since
from cubecast.net.security.buckets import Bucket
from cubecast.net.security.holdings import CUT_ENTRY, FILTER_CHARACTER, SUBSCRIPTION, Holdings, Share
from cubecast.net.settings.security import Limits

MOST_SUBSCRIPTIONS = 10_000
MOST_KNOWN = 20_000
"""Entries of the cuts that a client's open subscriptions began with; a client of ours sends no larger ones."""
MOST_REQUESTS = 1_000
"""Questions of one client that may be open at a time."""
MOST_STATUS = 1 << 20
"""Bytes of an answer about the node; a client hangs up on frames that are too large."""
TOPICS_REMEMBERED = 1_000
"""Topics for which a client may still ask about stability."""
FULL_FOR = 2.0
"""Seconds a client's connection may stay full."""
REQUESTS_PER_SECOND = 10_000.0
"""Other than publications."""
SILENT_FOR = 30.0
"""Seconds without a word after which a client is taken for dead; it sends a word every few seconds."""


class Link(Protocol):
    """What a gateway needs of a connection."""

    host: str
    label: str
    budget: int
    traffic: Traffic
    is_full: bool

    @property
    def queued(self) -> int: ...
    def send(self, frame: bytes) -> None: ...
    def abort(self, reason: str) -> None: ...
    def close(self) -> None: ...


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
    ) -> None:
        self._port, self._link, self._full_for, self._silent_for = port, link, full_for, silent_for
        self._slices = slices or Slices()
        self._share = share or Share(Holdings(Limits), "", None)
        self.on_full: Callable[[], None] = lambda: None
        """Told when the connection becomes full."""
        self._loop = asyncio.get_running_loop()
        self._sinks: dict[int, ClientSink] = {}
        self._patterns: Counter[str] = Counter()
        self._most_alike = alike
        self._held: dict[ClientSink, None] = {}
        """Those that wait for the connection."""
        self._most_subscriptions, self._known = subscriptions, 0
        self._backlog: deque[Publish | AwaitStable | AwaitDurable | Advertise] = deque()
        self._backlog_bytes = 0
        self._heard = self._published = 0
        self._accepted: OrderedDict[Topic, int] = OrderedDict()
        self._waiting_for_room: asyncio.Future[None] | None = None
        self._refused: OrderedDict[Topic, BadInput] = OrderedDict()
        """Why the last publication on a topic was none, until the client asks."""
        self._requests = Bucket(requests_per_second, 1.0, self._loop.time())
        self._asked = 0
        self._open: set[asyncio.Future[Any]] = set()
        self._full_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._last_word = self._loop.time()
        self._silence_timer = self._loop.call_later(silent_for, self._check_silence)
        self._log = LogService(port, self.send)
        self._fenced: Callable[[str], None] = lambda reason: self._link.abort(reason)
        self._handlers = self._handling()

    def _handling(self) -> dict[type, Callable[[Any], None]]:
        return {
            Subscribe: self._on_subscribe,
            Unsubscribe: self._on_unsubscribe,
            Pause: self._on_pause,
            Resume: self._on_resume,
            Publish: self._on_publish,
            AwaitStable: self._on_await,
            AwaitDurable: self._on_await,
            StatusRequest: self._on_status_request,
            Advertise: self._on_advertise,
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
        self._take()

    def _count_request(self) -> None:
        if self._requests.wait(self._last_word):
            raise RemoteProtocolError("it asks more often than a client may")
        self._requests.take(1)

    def forget(self, number: int) -> None:
        """The node ended a subscription of the client's."""
        self._drop(number)

    def close(self) -> None:
        """The client is gone."""
        if not self._closed:
            self._closed = True
            self._silence_timer.cancel()
            if self._full_timer is not None:
                self._full_timer.cancel()
            self._log.close()
            self._port.forget_producer(self._fenced)
            for future in [*self._open, self._waiting_for_room]:
                if future is not None:
                    future.cancel()
            self._backlog.clear()
            if self._sinks:
                self._slices.begin(self._leave_one)

    def _leave_one(self) -> bool:
        """Of the subscriptions of a client that is gone; more than one may wait."""
        sink = self._sinks.popitem()[1]
        self._share.give_back(sink.size)
        if sink.number is not None:
            self._port.unsubscribe(sink.number)
        return bool(self._sinks)

    def _check_silence(self) -> None:
        left = self._last_word + self._silent_for - self._loop.time()
        if left <= 0:
            self._link.abort(f"the client {self._link.label} said nothing for {self._silent_for} s")
        else:
            self._silence_timer = self._loop.call_later(left, self._check_silence)

    # Subscriptions

    def _on_subscribe(self, message: Subscribe) -> None:
        if message.subscription in self._sinks:
            raise RemoteProtocolError(f"subscription {message.subscription} exists already")
        sink = ClientSink(self, message.subscription)
        try:
            if len(self._sinks) >= self._most_subscriptions:
                raise BadInput(f"a client may have {self._most_subscriptions} subscriptions here, and has them")
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

    def _on_unsubscribe(self, message: Unsubscribe) -> None:
        sink = self._drop(message.subscription)
        if sink is not None and sink.number is not None:
            self._port.unsubscribe(sink.number)

    def _on_pause(self, message: Pause) -> None:
        sink = self._sinks.get(message.subscription)
        if sink is not None and not sink.asked:
            sink.asked = True
            self._hold(sink, sink.held)

    def _on_resume(self, message: Resume) -> None:
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
                self._loop.call_soon(self.on_full)
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

    # Publications, in the order they came

    def _on_publish(self, message: Publish) -> None:
        self._heard += 1
        if message.number != self._heard:
            raise RemoteProtocolError(f"publication {message.number} where {self._heard} was expected: one is repeated")
        size = weight(message.payloads)
        self._backlog_bytes += size
        if not message.payloads or self._backlog_bytes > CREDIT + size:
            raise RemoteProtocolError("a client published nothing, or more than it has credit for")
        if message.request is not None and len(message.payloads) > 1:
            raise RemoteProtocolError("a question is a single message")
        self._backlog.append(message)

    def _on_await(self, message: AwaitStable | AwaitDurable) -> None:
        self._asked += 1
        self._check_requests()
        self._backlog.append(message)

    def _take(self) -> None:
        """Hand to the node what it has room for; come back when it has more."""
        before = self._published
        while self._backlog and self._waiting_for_room is None:
            message = self._backlog[0]
            if isinstance(message, AwaitStable):
                self._await_stable(message)
            elif isinstance(message, AwaitDurable):
                self._await_durable(message)
            elif isinstance(message, Advertise):
                self._advertise(message)
            elif self._port.has_room(message.topic):
                self._publish(message)
            else:
                # Shielded: the port may give the same future to everybody who waits.
                self._waiting_for_room = asyncio.shield(self._port.room(message.topic))
                self._waiting_for_room.add_done_callback(self._room_came)
                break
            self._backlog.popleft()
        if self._published > before:
            self.send(Taken(self._published))

    def _publish(self, message: Publish) -> None:
        self._backlog_bytes -= weight(message.payloads)
        self._published = message.number
        try:
            self._accepted[message.topic] = self._hand_over(message)
            self._accepted.move_to_end(message.topic)
            self._refused.pop(message.topic, None)
            if len(self._accepted) > TOPICS_REMEMBERED:
                self._accepted.popitem(last=False)
        except BadInput as error:
            if message.request is not None:
                self.send(Reaches(message.request, False, (type(error).__name__, str(error))))
                return
            self._refused[message.topic] = error
            if len(self._refused) > TOPICS_REMEMBERED:
                self._refused.popitem(last=False)
            self.send(Taken(message.number, str(error)))
        except CubecastError as error:
            self._link.abort(f"the node takes no publications any more: {error}")

    def _hand_over(self, message: Publish) -> int:
        """How many messages of the client's the node has accepted on the topic."""
        if message.request is None:
            return self._port.publish(message.topic, message.payloads)
        (payload,) = message.payloads
        left = self._port.ask(message.topic, payload)
        request = message.request

        def done(future: asyncio.Future[bool]) -> None:
            if future.exception() is None:
                self.send(Reaches(request, future.result()))

        self._asked += 1
        self._follow(left, done)
        return self._port.publish(message.topic, ())

    def _room_came(self, future: asyncio.Future[None]) -> None:
        self._waiting_for_room = None
        if not self._closed and not future.cancelled():
            if future.exception() is not None:
                self._link.abort(f"the node takes no publications any more: {future.exception()}")
            else:
                self._take()

    def _await_stable(self, message: AwaitStable) -> None:
        accepted = self._accepted.get(message.topic)
        refused = self._refused.pop(message.topic, None)
        if accepted is None or refused is not None:
            self._asked -= 1
            self.send(Stable(message.request, str(refused or _unheard_of(message.topic)), refused is not None))
            return

        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            self.send(Stable(message.request, None if error is None else str(error)))

        self._follow(self._port.stable(message.topic, accepted), done)

    def _await_durable(self, message: AwaitDurable) -> None:
        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            self.send(Durable(message.request, None if error is None else (type(error).__name__, str(error))))

        accepted = 0 if message.only_ask else self._accepted.get(message.topic)
        refused = None if message.only_ask else self._refused.pop(message.topic, None)
        if accepted is None or refused is not None:
            self._asked -= 1
            error = refused or _unheard_of(message.topic)
            self.send(Durable(message.request, (type(error).__name__, str(error))))
        else:
            self._follow(self._port.durable(message.topic, accepted), done)

    def _on_advertise(self, message: Advertise) -> None:
        """In the order of what is published around it."""
        self._asked += 1
        self._check_requests()
        self._backlog.append(message)

    def _advertise(self, message: Advertise) -> None:
        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            self.send(Advertised(message.request, None if error is None else (type(error).__name__, str(error))))

        asked = self._port.unadvertise(message.topic) if message.ends else None
        self._follow(asked or self._port.advertise(message.topic, message.where), done)

    # Questions

    def _on_status_request(self, message: StatusRequest) -> None:
        def done(future: asyncio.Future[dict[str, Any]]) -> None:
            error = future.exception()
            status = fitting(future.result(), MOST_STATUS) if error is None else {"error": str(error)}
            self.send(StatusReply(message.request, status))

        self._asked += 1
        self._check_requests()
        self._follow(self._port.status(), done)

    def _on_register_producer(self, message: RegisterProducer) -> None:
        def done(future: asyncio.Future[ProducerState]) -> None:
            error = future.exception()
            told = None if error is None else (type(error).__name__, str(error))
            self.send(ProducerKnown(message.request, None if error else future.result(), told))

        self._asked += 1
        self._check_requests()
        state = self._port.register_producer(message.name, message.epoch, message.topics, self._fenced)
        self._follow(state, done)

    def _check_requests(self) -> None:
        if self._asked > MOST_REQUESTS:
            raise RemoteProtocolError(f"more than {MOST_REQUESTS} requests are open")

    def _follow(self, answer: Awaitable[Any], done: Callable[[asyncio.Future[Any]], None]) -> None:
        def answered(future: asyncio.Future[Any]) -> None:
            self._asked -= 1
            self._open.discard(future)
            if not future.cancelled():
                done(future)

        future = asyncio.ensure_future(answer)
        self._open.add(future)
        future.add_done_callback(answered)


def _unheard_of(topic: Topic) -> OutcomeUnknown:
    """Also of those that were too long ago."""
    return OutcomeUnknown(f"this node knows of no publication of yours on {topic}")
