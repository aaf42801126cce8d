"""Publishing and subscribing through any port: a node in this process, or a connection to one elsewhere."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self, TypeAlias, TypeVar, overload

from cubecast.api import requests
from cubecast.api.callbacks import CallbackSink, OnBatch, OnGap
from cubecast.api.envelope import seal, seal_all
from cubecast.api.inbox import DEFAULT_BUDGET, DEFAULT_PATIENCE, Gaps, Inbox, WhenSlow
from cubecast.api.lifecycle import Lifecycle
from cubecast.api.log_reading import LogReading
from cubecast.api.message import Gap, Message
from cubecast.api.requests import Handler, Requests, Service
from cubecast.api.subscription import Subscription
from cubecast.errors import BadInput, Closed, CubecastError, NoRoom, OutcomeUnknown, PartlyPublished
from cubecast.headers import Headers
from cubecast.net.port.chunks import pieces
from cubecast.net.port.port import Port, PublisherCut, Since, from_cut, start
from cubecast.net.port.ranges import TopicLog, Wanted
from cubecast.patterns import check_pattern, check_topic

SinceLike: TypeAlias = int | float | datetime | PublisherCut | Since | Literal["beginning", "now"]
Wait: TypeAlias = Literal["stable", "durable"]


class Client:
    """An application's end of a port. Use it in the event loop it was made in."""

    def __init__(self, port: Port, node: Callable[[], str] = lambda: "") -> None:
        """`node` says for people which one it talks to at the moment."""
        self._port, self._node = port, node
        self._requests = Requests(self)
        self._services: set[Service] = set()
        self._closed = False

    # -- publishing

    async def publish(
        self,
        topic: str,
        data: Any,
        *,
        headers: Headers | None = None,
        wait: Wait | None = None,
        timeout: float | None = None,
    ) -> None:
        """Publish bytes, text, or anything JSON can say.

        Returns when the message has its place behind everything published or read here before, which takes no turn of
        the event loop unless the budget is used up. With `wait="stable"` returns when it reached everybody it is for,
        with `wait="durable"` when it is on the disk of the node's log; `BadInput` when that keeps no such topic.
        Too late for `timeout`: `TimeoutError` when nothing was published, `OutcomeUnknown` when it was.
        """
        sealed = (seal(data, headers),)
        port = self._port
        if wait is not None:
            await self._check(wait, topic, timeout)
        if not port.has_room(topic):
            await self._room(topic, timeout)
        accepted = port.publish(topic, sealed)
        if wait is not None:
            await self._reached(wait, topic, accepted, timeout)

    def publish_nowait(self, topic: str, data: Any, *, headers: Headers | None = None) -> None:
        """Like `publish`, but raises `NoRoom` instead of waiting."""
        sealed = (seal(data, headers),)
        if not self._port.has_room(topic):
            raise NoRoom(f"{topic}: too much is published and not yet delivered; nothing was published")
        self._port.publish(topic, sealed)

    async def publish_batch(
        self,
        topic: str,
        batch: Iterable[Any],
        *,
        wait: Wait | None = None,
        timeout: float | None = None,
    ) -> None:
        """Publish messages in their order, as one piece where the budget allows.

        When cancelled or timed out, those published so far are the first ones of the list; when refused in the middle,
        `PartlyPublished` says how many.
        """
        sealed = seal_all(batch)
        accepted, done = [], 0
        if wait is not None:
            await self._check(wait, topic, timeout)
        for chunk in pieces(sealed):
            try:
                if not self._port.has_room(topic):
                    await self._room(topic, timeout, done)
                last = self._port.publish(topic, chunk)
            except CubecastError as error:
                if not done:
                    raise
                why = str(error).removesuffix(". Nothing was published")
                text = f"{topic}: the first {done} of {len(sealed)} messages were published, the rest was not: {why}"
                raise PartlyPublished(text, done) from None
            accepted.append(range(last - len(chunk) + 1, last + 1))
            done += len(chunk)
        if wait is not None and sealed:
            await self._all_reached(wait, topic, accepted, timeout)

    async def _all_reached(self, wait: Wait, topic: str, accepted: list[range], timeout: float | None) -> None:
        """Every piece, though only the last is waited for: what came before it was refused earlier, or is there too."""
        try:
            await self._reached(wait, topic, accepted[-1][-1], timeout)
        except BadInput as error:
            if len(accepted) == 1 and (self._port.doubt(accepted[0]) or (accepted[0][0],))[0] == accepted[0][0]:
                raise  # a piece that travelled whole
            self._tell_doubts(topic, accepted, error)
        else:
            self._tell_doubts(topic, accepted, None)

    def _tell_doubts(self, topic: str, accepted: list[range], last: BadInput | None) -> None:
        many, before = sum(map(len, accepted)), 0
        for piece in accepted:
            doubt = self._port.doubt(piece)
            if doubt is not None:
                before += doubt[0] - piece.start
                why = str(doubt[1]).removesuffix(". Nothing was published")
                if isinstance(doubt[1], OutcomeUnknown):
                    raise OutcomeUnknown(f"{topic}: {before} of {many} messages were published, then {why}") from None
                text = f"{topic}: the first {before} of {many} messages were published, of the rest not all: {why}"
                raise PartlyPublished(text, before) from None
            before += len(piece)
        if last is not None:
            raise OutcomeUnknown(f"{topic}: of {many} messages some were refused: {last}") from None

    async def stable(self, topic: str, *, timeout: float | None = None) -> None:
        """Wait until everything published here on the topic reached everybody it is for."""
        await self._reached("stable", topic, self._port.publish(check_topic(topic), ()), timeout)

    async def advertise(self, topic: str, where: str | None = None) -> None:
        """Promise that whatever is published on the topic through this node matches the filter, `where`.

        For protocols with brokers: only subscriptions that want some of it come here, and those find the way
        before the first message. What does not match is then refused.
        """
        await self._port.advertise(check_topic(topic), where)

    async def unadvertise(self, topic: str) -> None:
        """Take the promise back, with all that was published: nothing more comes until the next publication."""
        await self._port.unadvertise(check_topic(topic))

    async def _room(self, topic: str, timeout: float | None, done: int = 0) -> None:
        # Shielded, because the port may give one future to all who wait, and this one may be cancelled. Asked again,
        # because another publisher that waited may have used the room up.
        try:
            async with asyncio.timeout(timeout):
                while not self._port.has_room(topic):
                    await asyncio.shield(self._port.room(topic))
        except TimeoutError:
            what = f"the first {done} messages were published, and no more" if done else "nothing was published"
            raise TimeoutError(f"{topic}: no room to publish for {timeout} s; {what}") from None

    async def _check(self, wait: Wait, topic: str, timeout: float | None) -> None:
        """Before anything is published: can what is waited for come at all?"""
        if wait == "durable":
            try:
                async with asyncio.timeout(timeout):
                    await self._port.durable(check_topic(topic), 0)
            except TimeoutError:
                raise TimeoutError(f"{topic}: no node answered for {timeout} s; nothing was published") from None
        elif wait != "stable":
            raise BadInput(f"publications are waited for until they are stable or durable, not {wait!r}")

    async def _reached(self, wait: Wait, topic: str, accepted: int, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await (self._port.stable if wait == "stable" else self._port.durable)(topic, accepted)
        except TimeoutError:
            what = "to have reached everybody" if wait == "stable" else "to be durable"
            raise OutcomeUnknown(f"{topic}: accepted, and not known {what} in {timeout} s") from None

    # -- subscribing

    @overload
    def subscribe(
        self,
        pattern: str,
        *,
        gaps: Literal["yield"] = "yield",
        when_slow: str = ...,
        budget: int = ...,
        patience: float | None = ...,
        since: SinceLike | None = ...,
        where: str | None = ...,
        on_batch: OnBatch | None = ...,
        on_gap: OnGap | None = ...,
    ) -> Subscription[Message | Gap]: ...
    @overload
    def subscribe(
        self,
        pattern: str,
        *,
        gaps: Literal["raise", "ignore"],
        when_slow: str = ...,
        budget: int = ...,
        patience: float | None = ...,
        since: SinceLike | None = ...,
        where: str | None = ...,
    ) -> Subscription[Message]: ...
    def subscribe(
        self,
        pattern: str,
        *,
        gaps: str = "yield",
        when_slow: str = "block",
        budget: int = DEFAULT_BUDGET,
        patience: float | None = None,
        since: SinceLike | None = None,
        where: str | None = None,
        on_batch: OnBatch | None = None,
        on_gap: OnGap | None = None,
    ) -> Subscription[Any]:
        """Subscribe to a topic, or to all that a pattern with `*` or `>` selects.

        Without functions the result is read with `async for`, and `budget` bytes may wait to be read before `when_slow`
        (block, disconnect, drop-oldest, drop-newest) applies; one that blocks others and reads nothing for `patience`
        seconds (5) is cut off. With `on_batch` the function is called for each batch in the event loop, and must not
        block. Gaps are yielded among the messages, raised as `Missed`, or ignored.

        `since` begins in the node's log, at an offset, a time (float or datetime), behind a cut, at the "beginning", or
        "now", and goes on live without a seam. Such a subscription makes nobody wait: when it is slow it reads on in
        the log later.

        `where` is a filter over the topic and the headers, such as `price >= 10 and region in ('eu', 'us')`: what does
        not match is left out at the node, in the log's past too. `BadInput` with the column for what is no filter.
        """
        life = Lifecycle(self._port, check_pattern(pattern), None if since is None else start(since), where)
        sink: Inbox | CallbackSink
        if on_batch is not None:
            sink = CallbackSink(life, on_batch, on_gap, self)
        else:
            slow = _choice(WhenSlow, when_slow)
            is_behind = since is not None
            if patience is None and not is_behind:
                patience = DEFAULT_PATIENCE
            sink = Inbox(
                life,
                self,
                gaps=_choice(Gaps, gaps),
                when_slow=slow,
                budget=budget,
                patience=patience,
                is_behind=is_behind,
            )
        subscription: Subscription[Any] = Subscription(life, sink)
        life.open(sink)
        return subscription

    # -- questions and answers

    async def request(self, topic: str, data: Any, *, headers: Headers | None = None, timeout: float = 5.0) -> Message:
        """Publish a question and wait for the first answer.

        `RequestFailed` when the handler raised, `NoResponder` at once when the topic has no subscriber.
        """
        return await self._requests.ask(check_topic(topic), data, headers, timeout)

    async def ask(self, topic: str, sealed: bytes) -> asyncio.Future[bool]:
        """Publish a question of `request`; the result is done when it has left: is there anybody it is for?"""
        if not self._port.has_room(topic):
            await self._room(topic, None)
        return asyncio.ensure_future(self._port.ask(topic, sealed))

    async def reply(self, message: Message, data: Any) -> None:
        """Answer a message that was sent with `request`."""
        await requests.answer(self, message, data)

    def serve(self, pattern: str, handler: Handler, *, concurrency: int = 1, where: str | None = None) -> Service:
        """Answer each request with what the handler, plain or async, returns; closed with the client or by itself.

        Every server of a topic gets and answers every request; the client takes the first answer. One request after
        the other, or up to `concurrency` at a time. With `where` only those whose headers match.
        """
        subscription = self.subscribe(pattern, gaps="ignore", where=where)
        service = Service(self, subscription, handler, self._services.discard, concurrency)
        self._services.add(service)
        return service

    # -- the log

    def read_log(
        self,
        topic: str,
        start: int | None = None,
        stop: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        behind: PublisherCut | None = None,
        upto: PublisherCut | None = None,
        where: str = "",
        rows: int = 1,
    ) -> LogReading:
        """The messages of a topic with offsets from `start` on, before `stop`, in the log of this node, as Arrow.

        `columns` names those that are wanted: without payload and headers the node reads its index only. `behind` and
        `upto` are cuts: messages inside the one and outside the other are left out by the node, and so are those that
        the filter `where` over their headers does not match.

        `async for batch in …`, each of at least `rows` messages if there are so many, or `await ….table()`. Without
        limits all that is kept by now. `Forgotten` or `DamagedLog` for offsets the log cannot give. Offsets count at
        one node only: when it is lost, reading ends.
        """
        wanted = Wanted(_places(topic, behind or {}), None if upto is None else _places(topic, upto), where=where)
        return LogReading(self._port, check_topic(topic), start, stop, columns, wanted, rows)

    async def log_topics(self) -> list[TopicLog]:
        """The topics in the log of this node: first, last and last durable offset of each, and the log's id.

        Offsets behind the durable one may vanish with a kill of the node and come back with other messages.
        """
        found: list[TopicLog] = []
        while more := await self._port.log_topics(found[-1].topic if found else ""):
            found += more
        return found

    async def log_cut(self, topic: str, offset: int) -> PublisherCut:
        """All of the topic up to this offset as a cut, which counts at every node: for `log_place` and `since`."""
        return await self._port.log_cut(check_topic(topic), offset)

    async def log_place(self, topic: str, cut: PublisherCut) -> int:
        """The first offset in the log of this node of a message that is not in the cut; behind it, some may be."""
        return await self._port.log_place(check_topic(topic), cut)

    async def log_at(self, topic: str, at: float) -> int:
        """The first offset in the log of this node of a message delivered at that time or later."""
        return await self._port.log_at(check_topic(topic), at)

    async def log_reach(self, topic: str, cut: PublisherCut) -> int:
        """The first offset in the log of this node behind all its messages in the cut; before it, others may be."""
        return await self._port.log_reach(check_topic(topic), cut)

    # -- the rest

    async def status(self) -> dict[str, Any]:
        """What the node says about itself: members, topics, queues, held messages."""
        return await self._port.status()

    async def close(self) -> None:
        """Let what was published go out, end the subscriptions, leave."""
        if not self._closed:
            self._closed = True
            self._requests.close()
            for service in list(self._services):
                await service.close()
            await self._port.close()

    def __repr__(self) -> str:
        where = f" of {self._node()}" if self._node() else ""
        return f"<Client{where}, closed>" if self._closed else f"<Client{where}>"

    async def __aenter__(self) -> Self:
        if self._closed:
            raise Closed("this client was closed; open another one")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _places(topic: str, cut: PublisherCut) -> list[tuple[int, int, int]]:
    return [(source, incarnation, counter) for one, source, incarnation, counter in from_cut(cut).known if one == topic]


Mode = TypeVar("Mode", bound=StrEnum)


def _choice(modes: type[Mode], text: str) -> Mode:
    try:
        return modes(text)
    except ValueError:
        raise BadInput(f"{text!r} is none of {', '.join(modes)}") from None
