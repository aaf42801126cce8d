"""Reading a subscription: one by one, by the batch, or with a function that is called.

Iterators take from the subscription only what they hand out: leaving a loop, or being cancelled in it, loses nothing,
and the next reader goes on where the last one stopped. No future is made per message; the loop is entered when
nothing is left.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from cubecast.api.callbacks import CallbackSink
from cubecast.api.inbox import Inbox
from cubecast.api.lifecycle import Lifecycle
from cubecast.api.message import Batch, Gap, Message
from cubecast.errors import BadInput, Closed

Event = TypeVar("Event", bound=Message | Gap, covariant=True)
"""What iteration gives: `Message | Gap`, or only `Message` where gaps are raised or ignored."""


class Subscription(Generic[Event]):
    """Open until `close`, until the end of `async with`, or until nobody refers to it any more."""

    def __init__(self, life: Lifecycle, sink: Inbox | CallbackSink) -> None:
        self._loop = asyncio.get_running_loop()
        self._life, self._sink = life, sink

    @property
    def pattern(self) -> str:
        return self._life.pattern

    @property
    def closed(self) -> bool:
        return self._life.ended

    @property
    def held(self) -> int:
        """Bytes that have arrived and wait to be read."""
        return self._sink.held if isinstance(self._sink, Inbox) else 0

    async def ready(self) -> None:
        """Done when whatever is published from now on, anywhere, arrives here."""
        await self._life.ready()

    async def live(self) -> None:
        """Done when a subscription with `since` has caught up: what was logged before has arrived, read or not yet."""
        await self._life.live()

    async def ended(self) -> None:
        """Done when nothing comes any more; raises the error that ended it, if one did."""
        await self._life.over()

    async def __aiter__(self) -> AsyncIterator[Event]:
        inbox = self._inbox()
        while True:
            current: Iterator[Any] = inbox.current
            for event in current:
                yield event
            if not await inbox.advance():
                return

    async def batches(self) -> AsyncIterator[Batch | Gap]:
        """The same events, with the messages in the batches they came in."""
        inbox = self._inbox()
        while (batch := await inbox.batch()) is not None:
            yield batch

    async def next(self, timeout: float | None = None) -> Event:
        """The next event; `TimeoutError` when none comes in time, `Closed` when none will come."""
        return (await self.take(1, timeout))[0]

    async def take(self, most: int, timeout: float | None = None) -> list[Event]:
        """What has arrived, at most so many events and at least one, which is waited for."""
        inbox = self._inbox()
        if most < 1:
            raise BadInput(f"at least one event is taken, not {most}")
        taken = list(islice(inbox.current, most))
        if not taken:
            try:
                async with asyncio.timeout(timeout):
                    if not await inbox.advance():
                        raise Closed(f"the subscription to {self.pattern} is closed")
            except TimeoutError:
                raise TimeoutError(f"nothing came on {self.pattern} for {timeout} s") from None
            taken = list(islice(inbox.current, most))
        return cast(list[Event], taken)

    def close(self) -> None:
        """Unsubscribe. What has arrived and was not read is gone."""
        self._sink.close()

    async def __aenter__(self) -> Self:
        await self.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Nobody can read it any more: left open, it would fill up and hold back everybody who publishes.
        if isinstance(self._sink, Inbox) and not self._life.ended and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._sink.close)

    def __repr__(self) -> str:
        if self._life.ended:
            why = "" if self._life.error is None else f": {self._life.error}"
            return f"<Subscription to {self.pattern!r}, ended{why}>"
        since = "" if self._life.since is None else f" since {self._life.since}"
        where = "" if self._life.where is None else f" where {self._life.where}"
        waiting = f", {self.held} bytes to read" if isinstance(self._sink, Inbox) else ", calls a function"
        return f"<Subscription to {self.pattern!r}{where}{since}{waiting}>"

    def _inbox(self) -> Inbox:
        if isinstance(self._sink, Inbox):
            return self._sink
        raise BadInput(f"the subscription to {self.pattern} calls a function; there is nothing to iterate over")
