"""The same interface for programs without an event loop: one runs in a thread of its own.

    with cubecast.sync.connect("127.0.0.1:7400") as client:
        client.publish("greetings", "hello")
        for event in client.subscribe("greetings"):
            ...

Calls may come from any thread. Each costs a trip to the other thread, so publish many messages with `publish_batch`.
"""

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from cubecast.api.client import Client, Wait
from cubecast.api.connect import CONNECT_TIMEOUT, PATIENCE
from cubecast.api.connect import connect as connect_async
from cubecast.api.message import Batch, Gap, Message
from cubecast.api.requests import Service
from cubecast.api.subscription import Subscription
from cubecast.errors import BadInput, Closed, Unreachable
from cubecast.headers import Headers
from cubecast.net.gateway.client import complain, warn
from cubecast.net.gateway.outbox import Uncertain
from cubecast.net.links.login import NOTHING, Login
from cubecast.net.port.port import PublisherCut
from cubecast.net.port.ranges import TopicLog

if TYPE_CHECKING:
    import pyarrow as pa

CLOSING_TIME = 10.0
AT_ONCE = 512
"""Events fetched from the other thread in one trip."""

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a daemon thread, so that a forgotten client does not keep the program alive."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cubecast", daemon=True)
        self._thread.start()

    def run(
        self, coroutine: Coroutine[Any, Any, Result], timeout: float | None = None, what: str = "it was not done"
    ) -> Result:
        """Wait for the result; cancelled when it takes too long, or when the waiting is interrupted."""
        if not self._thread.is_alive():
            coroutine.close()
            raise Closed("this client is closed")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise Closed("the client was closed meanwhile") from None
        except TimeoutError:
            if future.done():
                raise  # its own
            raise TimeoutError(f"{what} in {timeout} s") from None
        finally:
            future.cancel()

    def stop(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(CLOSING_TIME)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSING_TIME)
            self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class SyncSubscription:
    """Iterate over it, or ask for the `next` event."""

    def __init__(self, thread: LoopThread, subscription: Subscription[Any]) -> None:
        self._thread, self._subscription = thread, subscription
        # Filled in the other thread: an interrupted wait loses nothing that was already taken.
        self._fetched: deque[Message | Gap] = deque()

    def ready(self, timeout: float | None = None) -> None:
        """Returns when whatever is published from now on, anywhere, arrives here."""
        self._thread.run(self._subscription.ready(), timeout, f"the subscription to {self.pattern} was not ready")

    def live(self, timeout: float | None = None) -> None:
        """With `since`: returns when what was logged before has arrived, read or not yet."""
        self._thread.run(self._subscription.live(), timeout, f"the subscription to {self.pattern} did not catch up")

    def ended(self, timeout: float | None = None) -> None:
        """Returns when nothing comes any more; raises the error that ended it, if one did."""
        self._thread.run(self._subscription.ended(), timeout, f"the subscription to {self.pattern} did not end")

    @property
    def pattern(self) -> str:
        return self._subscription.pattern

    @property
    def closed(self) -> bool:
        return self._subscription.closed

    @property
    def held(self) -> int:
        """Bytes that have arrived and wait to be fetched."""
        return self._subscription.held

    def next(self, timeout: float | None = None) -> Message | Gap:
        """The next event; `TimeoutError` when none comes in time, `Closed` when none will come."""
        while True:
            try:
                return self._fetched.popleft()
            except IndexError:  # or another thread took what this one fetched
                self._thread.run(self._fetch(timeout))

    def take(self, most: int, timeout: float | None = None) -> list[Message | Gap]:
        """What has arrived, at most so many events and at least one, which is waited for."""
        if most < 1:
            raise BadInput(f"at least one event is taken, not {most}")
        taken = [self.next(timeout)]
        while len(taken) < most and self._fetched:
            with suppress(IndexError):  # another thread may have taken it
                taken.append(self._fetched.popleft())
        return taken

    def batches(self) -> Iterator[Batch | Gap]:
        """The same events, with the messages in the batches they came in; those fetched one by one before, alone."""
        while True:
            try:
                event = self._fetched.popleft()
                yield Batch(event.origin, event.counter, [event.sealed]) if isinstance(event, Message) else event
            except IndexError:
                batch = self._thread.run(self._next_batch())
                if batch is None:
                    return
                yield batch

    async def _next_batch(self) -> Batch | Gap | None:
        return await anext(self._subscription.batches(), None)

    async def _fetch(self, timeout: float | None) -> None:
        self._fetched.extend(await self._subscription.take(AT_ONCE, timeout))

    def __iter__(self) -> Iterator[Message | Gap]:
        while True:
            try:
                yield self.next()
            except Closed:
                return

    def close(self) -> None:
        self._thread.run(self._close())

    async def _close(self) -> None:
        self._subscription.close()

    def __repr__(self) -> str:
        return f"<Sync{repr(self._subscription)[1:]}"

    def __enter__(self) -> Self:
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncService:
    """Answers requests until closed, by itself or with its client."""

    def __init__(self, thread: LoopThread, service: Service, handlers: concurrent.futures.Executor) -> None:
        self._thread, self._service, self._handlers = thread, service, handlers

    def ready(self, timeout: float | None = None) -> None:
        """Returns when every question asked from now on, anywhere, arrives."""
        self._thread.run(self._service.ready(), timeout, "the service was not ready")

    def ended(self, timeout: float | None = None) -> None:
        """Returns when nobody is answered any more; raises the error that ended it, if one did."""
        self._thread.run(self._service.ended(), timeout, "the service did not end")

    def close(self) -> None:
        self._handlers.shutdown(wait=False, cancel_futures=True)
        self._thread.run(self._service.close())

    def __enter__(self) -> Self:
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncClient:
    """Like `Client`, blocking. Every method that waits takes a timeout in seconds."""

    def __init__(self, thread: LoopThread, client: Client) -> None:
        self._thread, self._client = thread, client

    def publish(
        self,
        topic: str,
        data: Any,
        *,
        headers: Headers | None = None,
        wait: Wait | None = None,
        timeout: float | None = None,
    ) -> None:
        self._thread.run(self._client.publish(topic, data, headers=headers, wait=wait, timeout=timeout))

    def publish_batch(
        self,
        topic: str,
        batch: Iterable[Any],
        *,
        wait: Wait | None = None,
        timeout: float | None = None,
    ) -> None:
        self._thread.run(self._client.publish_batch(topic, list(batch), wait=wait, timeout=timeout))

    def publish_nowait(self, topic: str, data: Any, *, headers: Headers | None = None) -> None:
        """Like `publish`, but raises `NoRoom` instead of waiting for room."""

        async def publish() -> None:
            self._client.publish_nowait(topic, data, headers=headers)

        self._thread.run(publish())

    def advertise(self, topic: str, where: str | None = None, timeout: float | None = 5.0) -> None:
        """Promise brokers that whatever is published on the topic through this node matches the filter."""
        self._thread.run(self._client.advertise(topic, where), timeout, f"{topic} was not advertised")

    def unadvertise(self, topic: str, timeout: float | None = 5.0) -> None:
        self._thread.run(self._client.unadvertise(topic), timeout, f"{topic} was not unadvertised")

    def stable(self, topic: str, timeout: float | None = None) -> None:
        """Wait until everything published here on the topic reached everybody it is for."""
        self._thread.run(self._client.stable(topic, timeout=timeout))

    def subscribe(
        self,
        pattern: str,
        *,
        gaps: Literal["yield", "raise", "ignore"] = "yield",
        on_batch: Callable[[Batch], object] | None = None,
        **options: Any,
    ) -> SyncSubscription:
        """Options as for `Client.subscribe`. `on_batch` is called in the client's thread."""
        subscribe: Callable[..., Subscription[Any]] = self._client.subscribe

        async def open_it() -> Subscription[Any]:
            return subscribe(pattern, gaps=gaps, on_batch=on_batch, **options)

        return SyncSubscription(self._thread, self._thread.run(open_it()))

    def request(self, topic: str, data: Any, *, headers: Headers | None = None, timeout: float = 5.0) -> Message:
        return self._thread.run(self._client.request(topic, data, headers=headers, timeout=timeout))

    def serve(
        self, pattern: str, handler: Callable[[Message], Any], *, concurrency: int = 1, where: str | None = None
    ) -> "SyncService":
        """Answer each request with what the handler returns; it is called in a thread of its own and may block."""

        threads = concurrent.futures.ThreadPoolExecutor(max(1, concurrency), "cubecast-serve")

        async def answer(message: Message) -> Any:
            return await asyncio.get_running_loop().run_in_executor(threads, handler, message)

        async def open_it() -> Service:
            return self._client.serve(pattern, answer, concurrency=concurrency, where=where)

        return SyncService(self._thread, self._thread.run(open_it()), threads)

    def reply(self, message: Message, data: Any) -> None:
        self._thread.run(self._client.reply(message, data))

    def read_log(
        self,
        topic: str,
        start: int | None = None,
        stop: int | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> "pa.Table":
        """A range of the log, all in memory; `columns`, `behind`, `upto` and `where` as for `Client.read_log`."""

        async def read() -> "pa.Table":
            return await self._client.read_log(topic, start, stop, **options).table()

        return self._thread.run(read(), timeout, f"the log of {topic} was not read")

    def log_batches(
        self, topic: str, start: int | None = None, stop: int | None = None, **options: Any
    ) -> "Iterator[pa.RecordBatch]":
        """The same batch by batch, for ranges that memory does not hold."""
        reading = aiter(self._client.read_log(topic, start, stop, **options))

        async def following() -> "pa.RecordBatch | None":
            return await anext(reading, None)

        while (batch := self._thread.run(following())) is not None:
            yield batch

    def log_topics(self, timeout: float | None = 5.0) -> list[TopicLog]:
        return self._thread.run(self._client.log_topics(), timeout, "the node did not list its log")

    def log_cut(self, topic: str, offset: int, timeout: float | None = 5.0) -> PublisherCut:
        return self._thread.run(self._client.log_cut(topic, offset), timeout, "the node did not tell the cut")

    def log_place(self, topic: str, cut: PublisherCut, timeout: float | None = 5.0) -> int:
        return self._thread.run(self._client.log_place(topic, cut), timeout, "the node did not tell the place")

    def log_at(self, topic: str, at: float, timeout: float | None = 5.0) -> int:
        return self._thread.run(self._client.log_at(topic, at), timeout, "the node did not tell the place")

    def log_reach(self, topic: str, cut: PublisherCut, timeout: float | None = 5.0) -> int:
        return self._thread.run(self._client.log_reach(topic, cut), timeout, "the node did not tell the place")

    def status(self, timeout: float | None = 5.0) -> dict[str, Any]:
        return self._thread.run(self._client.status(), timeout, "the node did not answer")

    def __repr__(self) -> str:
        return f"<Sync{repr(self._client)[1:]}"

    def close(self) -> None:
        """Let what was published go out, then end the thread."""
        try:
            self._thread.run(self._client.close(), CLOSING_TIME)
        except Closed:
            return
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    *addresses: str,
    cluster: str = "cubecast",
    name: str = "",
    timeout: float = CONNECT_TIMEOUT,
    patience: float = PATIENCE,
    on_uncertain: Callable[[Uncertain], object] = warn,
    on_refused: Callable[[str], object] = complain,
    login: Login = NOTHING,
) -> SyncClient:
    """Connect to any of these nodes, each HOST:PORT. Use the result with `with`, or close it.

    Arguments as for `cubecast.connect`; the functions are called in the client's thread.
    """
    thread = LoopThread()

    async def open_it() -> Client:
        return await connect_async(
            *addresses,
            cluster=cluster,
            name=name,
            timeout=timeout,
            patience=patience,
            on_uncertain=on_uncertain,
            on_refused=on_refused,
            login=login,
        )

    try:
        return SyncClient(thread, thread.run(open_it()))
    except Unreachable as error:
        thread.stop()
        if not _has_loop():
            raise
        standing = "this thread has an event loop, which stood still meanwhile: a node in it could not answer"
        raise Unreachable(f"{error}; {standing}, use cubecast.connect there") from None
    except BaseException:
        thread.stop()
        raise


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
