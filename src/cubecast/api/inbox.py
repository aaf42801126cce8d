"""The bounded queue between the network and an application that reads at its own pace; and gaps, what the node reports
and what a slow reader lost, both in bounded space.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import length_hint

from cubecast.api.lifecycle import Lifecycle
from cubecast.api.message import Batch, Gap, Message, Missing, Replier, origin_of
from cubecast.errors import BadInput, CubecastError, Missed, SlowConsumer
from cubecast.ids import Counter, MessageId, Topic
from cubecast.net.port.chunks import MESSAGE_OVERHEAD, weight
from cubecast.net.port.port import GapNotice, Logged, PublisherCut

MAX_RUNS = 1024
"""More runs than this are counted and not named."""


def named_gap(notice: GapNotice) -> Gap:
    named = tuple(Missing(notice.topic, *message, message.counter) for message in notice.missing)
    runs = tuple(Missing(notice.topic, *run) for run in notice.runs)
    return Gap(notice.topic, notice.reason, named + runs, len(named) + notice.count, notice.offsets)


class Dropped:
    """A gap in the making: consecutive losses of one publisher are one run."""

    __slots__ = ("_count", "_is_any", "_latest", "_pattern", "_runs")

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._runs: list[Missing] = []
        self._latest: dict[tuple[Topic, int, int], int] = {}
        self._count = 0
        self._is_any = False

    def add(self, event: Batch | Gap) -> None:
        self._is_any = True
        if isinstance(event, Batch):
            self._count += len(event)
            self._add_run(event.topic, event.source, event.incarnation, event.counter, event.counter + len(event) - 1)
        else:
            self._count += event.count
            for run in event.missing:
                self._add_run(*run)

    def _add_run(self, topic: Topic, source: int, incarnation: int, first: Counter, last: Counter) -> None:
        publisher = topic, source, incarnation
        place = self._latest.get(publisher)
        if place is not None and self._runs[place].last == first - 1:
            self._runs[place] = self._runs[place]._replace(last=last)
        elif len(self._runs) < MAX_RUNS:
            self._latest[publisher] = len(self._runs)
            self._runs.append(Missing(*publisher, first, last))

    def __bool__(self) -> bool:
        """Was anything dropped, be it the news that nobody knows what is missing?"""
        return self._is_any

    def gap(self, reason: str) -> Gap:
        return Gap(self._pattern, reason, tuple(self._runs), self._count)


# The bounded queue between the network and an application that reads at its own pace.
#
# What has arrived and not been read is charged against a byte budget. A batch is charged until its last message is
# read. When the budget is used up, the policy decides: ask the node to wait, end the subscription, or drop and say so.

DEFAULT_BUDGET = 8 << 20
DEFAULT_PATIENCE = 5.0


class WhenSlow(StrEnum):
    """What happens when a subscription's budget is used up."""

    BLOCK = "block"
    """The node stops sending and publishers of the topic wait; when nothing is read for the time of the subscription's
    patience, it ends with `SlowConsumer`."""
    DISCONNECT = "disconnect"
    """The subscription ends with `SlowConsumer` after what has arrived."""
    DROP_OLDEST = "drop-oldest"
    DROP_NEWEST = "drop-newest"
    """Messages are dropped; a `Gap` in their place names them."""


class Gaps(StrEnum):
    """How a reader learns of a gap."""

    YIELD = "yield"
    RAISE = "raise"
    IGNORE = "ignore"


class Inbox:
    """A `net.port.port.Sink` that keeps what arrives until it is read."""

    def __init__(
        self,
        life: Lifecycle,
        client: Replier | None,
        *,
        gaps: Gaps = Gaps.YIELD,
        when_slow: WhenSlow = WhenSlow.BLOCK,
        budget: int = DEFAULT_BUDGET,
        patience: float | None = DEFAULT_PATIENCE,
        is_behind: bool = False,
    ) -> None:
        """Without `patience` nobody waits for the reader. Who `is_behind` reads a log, where nothing is dropped."""
        if budget < 1 or (patience is not None and patience <= 0):
            raise BadInput(f"budget and patience of a subscription are more than nothing, not {budget} and {patience}")
        self._life, self._client = life, client
        self._gaps, self._when_slow, self._budget, self._patience = gaps, when_slow, budget, patience
        self._loop = asyncio.get_running_loop()
        self._is_behind = is_behind
        self._last_read = 0.0
        self._is_watched = False
        """A look at whether it reads is due."""
        self._queue: deque[tuple[Batch | Gap | Dropped, int]] = deque()
        self._arrival = life.changed
        self._messages: list[Message | Gap] = []
        self._charged = 0
        self.held = 0
        """Bytes that arrived and are not read."""
        self.current: Iterator[Message | Gap] = iter(self._messages)
        """The rest of the batch that is being read. It belongs to all readers, so none loses what another left."""

    # -- the network's side

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        if not self._life.ended:
            origin = origin_of(topic, first, self._client, *(logged or ()))
            self._admit(Batch(origin, first.counter, payloads), weight(payloads))

    def on_gap(self, gap: GapNotice) -> None:
        if not self._life.ended and self._gaps is not Gaps.IGNORE:
            self._admit(named_gap(gap), MESSAGE_OVERHEAD * (1 + len(gap.missing)))

    def on_ready(self) -> None:
        self._life.become_ready()

    def on_live(self, known: PublisherCut) -> None:
        self._is_behind = False
        self._life.become_live()

    def on_end(self, error: CubecastError | None) -> None:
        self._life.end(error)

    def _admit(self, event: Batch | Gap, size: int) -> None:
        if self._when_slow is WhenSlow.BLOCK or self._is_behind or self._life.is_paused:
            self._append(event, size)
            if self.held >= self._budget and not self._life.is_paused:
                self._pause()
        elif self.held + size <= self._budget or not self.held:
            self._append(event, size)
        else:
            self._overflow(event, size)
        self._arrival.wake()

    def _pause(self) -> None:
        self._life.pause()
        self._last_read = self._loop.time()
        if not self._is_watched and self._patience is not None:
            self._is_watched = True
            self._loop.call_later(self._patience, self._check_progress, self._patience)

    def _check_progress(self, patience: float) -> None:
        """Others wait for this reader, but not for one that has stopped."""
        self._is_watched = self._life.is_paused and not self._life.ended
        if self._is_watched:
            left = self._last_read + patience - self._loop.time()
            if left > 0:
                self._loop.call_later(left, self._check_progress, patience)
            else:
                self._cut_off(f"nothing was read for {patience} s while others waited")

    def _cut_off(self, reason: str) -> None:
        self._life.leave(SlowConsumer(f"{self._life.pattern}: {reason}"))

    def _append(self, event: Batch | Gap, size: int) -> None:
        self._queue.append((event, size))
        self.held += size

    def _overflow(self, event: Batch | Gap, size: int) -> None:
        if self._when_slow is WhenSlow.DISCONNECT:
            self._cut_off(f"{self.held} bytes were waiting to be read, the budget is {self._budget}")
        elif self._when_slow is WhenSlow.DROP_NEWEST:
            last = self._queue[-1][0] if self._queue else None
            if not isinstance(last, Dropped):
                last = Dropped(self._life.pattern)
                self._queue.append((last, 0))
            last.add(event)
        else:
            self._drop_oldest(size)
            self._append(event, size)

    def _drop_oldest(self, size: int) -> None:
        dropped = Dropped(self._life.pattern)
        while self._queue and self.held + size > self._budget:
            oldest, freed = self._queue.popleft()
            self.held -= freed
            dropped.add(oldest.gap("") if isinstance(oldest, Dropped) else oldest)
        if dropped:
            self._queue.appendleft((dropped, 0))

    # -- the readers' side

    async def advance(self) -> bool:
        """Make what arrived next the current batch; False when nothing comes any more, an error when it should have."""
        while not length_hint(self.current):
            self._release()
            if self._queue:
                event = self._next()
                self._messages = [] if event is None else [event] if isinstance(event, Gap) else list(event)
                self.current = iter(self._messages)
            elif self._over():
                return False
            else:
                await self._arrival.wait()
        return True

    async def batch(self) -> Batch | Gap | None:
        """Like `advance`, handing out the batch, or what other readers left of the current one, in one piece."""
        while not length_hint(self.current):
            self._release()
            if self._queue:
                event = self._next()
                if event is not None:
                    return event
            elif self._over():
                return None
            else:
                await self._arrival.wait()
        rest = list(self.current)
        first = rest[0]
        if isinstance(first, Gap):
            return first
        return Batch(first.origin, first.counter, [one.sealed for one in rest if isinstance(one, Message)])

    def _over(self) -> bool:
        if self._life.error is not None:
            raise self._life.error
        return self._life.ended

    def _next(self) -> Batch | Gap | None:
        event, self._charged = self._queue.popleft()
        if isinstance(event, Batch):
            return event
        gap = event.gap("the reader was too slow") if isinstance(event, Dropped) else event
        if self._gaps is Gaps.RAISE:
            raise Missed(gap.reason, gap)
        return gap if self._gaps is Gaps.YIELD else None

    def _release(self) -> None:
        self.held -= self._charged
        self._charged = 0
        if self._life.is_paused:
            self._last_read = self._loop.time()
            if self.held <= self._budget // 2:
                self._life.resume()

    def close(self) -> None:
        """Nothing more is wanted, not even what has arrived."""
        self._life.leave()
        self._queue.clear()
        self._messages.clear()
        self.held = self._charged = 0
        self._life.error = None
