"""Questions and answers on top of publications.

A client that asks names the topic of its own inbox and the question in the headers; the server publishes there, and
nowhere but in inboxes: a question is no way to make a server publish where one may not. Every responder that is
subscribed may answer; the first answer counts. A question's name is not to be guessed, so that nobody answers who was
not asked. Follows decision 0050.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cubecast.api.envelope import seal
from cubecast.api.message import Batch, Message
from cubecast.errors import BadInput, Closed, CubecastError, NoResponder, RemoteProtocolError, RequestFailed
from cubecast.headers import Headers, checked

if TYPE_CHECKING:
    from cubecast.api.client import Client
    from cubecast.api.subscription import Subscription

REPLY_TO, CORRELATION, FAILURE = "reply-to", "correlation", "failure"
INBOX = "_inbox."

Handler = Callable[[Message], Any | Awaitable[Any]]


class Requests:
    """The inbox of a client, opened with its first question."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._topic = INBOX + secrets.token_hex(8)
        self._open: dict[str, asyncio.Future[Message]] = {}
        self._inbox: Subscription[Any] | None = None

    async def ask(self, topic: str, data: Any, headers: Headers | None, timeout: float) -> Message:
        question = secrets.token_hex(8)
        asking = {**checked(headers or {}), REPLY_TO: self._topic, CORRELATION: question}
        sealed, is_asked = seal(data, asking), False
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        left: asyncio.Future[bool] | None = None
        self._open[question] = answer
        try:
            async with asyncio.timeout(timeout):
                await self._ready()
                left = await self._client.ask(topic, sealed)
                is_asked = True
                left.add_done_callback(lambda future: _give_up(topic, future, answer))
                return _checked(await answer)
        except TimeoutError:
            done = "it was asked, and may still be acted on" if is_asked else "nothing was asked"
            raise TimeoutError(f"{topic}: no answer in {timeout} s; {done}") from None
        finally:
            del self._open[question]
            if left is not None:
                left.cancel()

    async def _ready(self) -> None:
        if self._inbox is None or self._inbox.closed:
            self._inbox = self._client.subscribe(self._topic, on_batch=self._on_answers)
        await self._inbox.ready()

    def _on_answers(self, batch: Batch) -> None:
        for message in batch:
            try:
                question = str(message.headers.get(CORRELATION, ""))
            except RemoteProtocolError:
                continue  # anybody may publish to an inbox; what is no answer answers nothing
            answer = self._open.get(question)
            if answer is not None and not answer.done():
                answer.set_result(message)

    def close(self) -> None:
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(Closed("the client was closed before the answer came"))


def _give_up(topic: str, left: asyncio.Future[bool], answer: asyncio.Future[Message]) -> None:
    """When the question left, and was for nobody, or was not allowed to leave. After a broken connection an answer may
    still come."""
    if left.cancelled() or answer.done():
        return
    error = left.exception()
    if error is None and not left.result():
        answer.set_exception(
            NoResponder(f"{topic}: nobody is subscribed, so nobody answers; is it served? cubecast serve {topic} …")
        )
    elif isinstance(error, BadInput):
        answer.set_exception(error)


def _checked(answer: Message) -> Message:
    failure = answer.headers.get(FAILURE)
    if failure is not None:
        raise RequestFailed(str(failure))
    return answer


def is_request(headers: Headers) -> bool:
    return str(headers.get(REPLY_TO, "")).startswith(INBOX)


async def answer(client: "Client", message: Message, data: Any, failure: str | None = None) -> None:
    found = message.headers
    if not is_request(found):
        raise BadInput(
            f"message {tuple(message.id)} on {message.topic} is not a request: it names no inbox to reply to"
        )
    headers = {CORRELATION: found.get(CORRELATION, "")}
    if failure is not None:
        headers[FAILURE] = failure
    await client.publish(str(found[REPLY_TO]), data, headers=headers)


class Service:
    """Answers requests with a function's results, so many at a time, until closed."""

    def __init__(
        self,
        client: "Client",
        subscription: "Subscription[Message]",
        handler: Handler,
        on_close: Callable[["Service"], None],
        concurrency: int = 1,
    ) -> None:
        if not callable(handler):
            raise BadInput(f"requests are answered by a function of the message, not by {handler!r}")
        if concurrency < 1:
            raise BadInput(f"at least one request is answered at a time, not {concurrency}")
        self._client, self._subscription, self._handler = client, subscription, handler
        self._on_close, self._concurrency = on_close, concurrency
        self._answering: set[asyncio.Task[None]] = set()
        self._task = asyncio.get_running_loop().create_task(self._serve(), name=f"serve {subscription.pattern}")

    async def ready(self) -> None:
        await self._subscription.ready()

    async def ended(self) -> None:
        """Done when nobody is answered any more; raises the error that ended it, if one did."""
        await self._subscription.ended()

    async def _serve(self) -> None:
        try:
            await self._answer_all()
        except CubecastError as error:
            if not isinstance(error, Closed):
                self._report("ended: nobody is answered any more", error)

    async def _answer_all(self) -> None:
        async for message in self._subscription:
            try:
                if not is_request(message.headers):
                    continue
            except RemoteProtocolError:
                continue  # garbled: there is nobody to answer
            if self._concurrency == 1:
                await self._answer(message)
            else:
                await self._answer_beside_others(message)

    async def _answer_beside_others(self, message: Message) -> None:
        """Returns when the next one may come."""
        task = asyncio.create_task(self._answer(message), name=f"answer on {message.topic}")
        self._answering.add(task)
        if len(self._answering) >= self._concurrency:
            done, self._answering = await asyncio.wait(self._answering, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()

    async def _answer(self, message: Message) -> None:
        try:
            result = self._handler(message)
            if isinstance(result, Awaitable):
                result = await result
            await answer(self._client, message, result)
        except Closed:
            raise
        except Exception as error:
            # Whatever the handler does wrong is told to the one who asked; the service goes on.
            try:
                await answer(self._client, message, None, f"{type(error).__name__}: {error}")
            except CubecastError as unanswerable:
                self._report("left a request without an answer", unanswerable)

    def _report(self, what: str, error: CubecastError) -> None:
        context = {"message": f"the service on {self._subscription.pattern} {what}", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    async def close(self) -> None:
        self._on_close(self)
        self._subscription.close()
        tasks = [self._task, *self._answering]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> "Service":
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
