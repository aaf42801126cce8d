"""What waits in a flow of a process: the last messages, for others that lack some, and those that came before something
they follow; all of it bounded.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice, takewhile
from typing import Generic, TypeVar

from cubecast.ids import Counter

# The last messages of a flow, kept for processes that lack some: bounded in messages and in bytes.

Batch = tuple[Counter, tuple[bytes, ...]]
"""The counter of its first message, and the messages."""
SizedBatch = tuple[Counter, tuple[bytes, ...], int]
"""With its bytes."""

MOST_BATCH = 1 << 16
"""Bytes of messages that travel in one packet; one that is larger travels alone."""


def in_pieces(payloads: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
    """The messages in their order, in batches that fit into a packet."""
    start = size = 0
    for place, payload in enumerate(payloads):
        if size and size + len(payload) > MOST_BATCH:
            yield payloads[start:place]
            start, size = place, 0
        size += len(payload)
    yield payloads[start:]


class Buffer:
    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self.messages = 0
        self.bytes = 0
        self._most = most_messages
        self._most_bytes = most_bytes
        self._batches: deque[SizedBatch] = deque()

    def append(self, first: Counter, payloads: tuple[bytes, ...]) -> None:
        size = sum(map(len, payloads))
        self._batches.append((first, payloads, size))
        self.messages += len(payloads)
        self.bytes += size
        while len(self._batches) > 1 and self._has_more_than_needed():
            _, gone, freed = self._batches.popleft()
            self.messages -= len(gone)
            self.bytes -= freed

    def _has_more_than_needed(self) -> bool:
        """Without the oldest batch there is as much as was promised, or there is more than fits."""
        return self.messages - len(self._batches[0][1]) >= self._most or self.bytes > self._most_bytes

    @property
    def first(self) -> Counter:
        """The oldest message that is kept; 0: none is."""
        return self._batches[0][0] if self._batches else 0

    def after(self, have: Counter, most_bytes: float) -> Iterator[Batch]:
        """What follows on `have`, the first of it and no more than so many bytes."""
        sent = 0
        for first, payloads, size in self._from(have + 1):
            if sent and sent + size > most_bytes:
                return
            sent += size
            yield first, payloads

    def covering(self, low: Counter, high: Counter) -> list[SizedBatch]:
        """All of these messages, or nothing."""
        if not self._batches or low < self.first:
            return []
        return list(takewhile(lambda one: one[0] <= high, self._from(low)))

    def _from(self, low: Counter) -> Iterator[SizedBatch]:
        """Beginning with the batch that has this message."""
        start = bisect_left(self._batches, low, key=lambda one: one[0] + len(one[1]) - 1)
        return islice(self._batches, start, None)


# Messages of a flow that came before something they follow, held until it comes; bounded like those kept.

AnyBatch = TypeVar("AnyBatch")


class Early(Generic[AnyBatch]):
    """By the counter of the first message of each batch."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self.messages = self.bytes = 0
        self._most = most_messages
        self._most_bytes = most_bytes
        self._held: dict[Counter, tuple[AnyBatch, int, int]] = {}
        """With how many messages and bytes each has."""
        self._order: list[Counter] = []
        """A heap of what is held, and of some that are held no more."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, first: Counter, batch: AnyBatch, messages: int, size: int) -> None:
        """Unless it does not fit: what comes later is the more likely to be kept by others for longer."""
        self._remove(first)
        if self._held and (self.messages + messages > self._most or self.bytes + size > self._most_bytes):
            return
        self._held[first] = batch, messages, size
        self.messages += messages
        self.bytes += size
        heappush(self._order, first)

    @property
    def first(self) -> Counter | None:
        """The counter of what is held first."""
        order = self._order
        while order and order[0] not in self._held:
            heappop(order)
        return order[0] if order else None

    def pop_upto(self, last: Counter) -> AnyBatch | None:
        """The first batch, if it begins not later than this."""
        first = self.first
        return None if first is None or first > last else self._remove(first)

    def forget(self, goes: Callable[[AnyBatch], bool]) -> None:
        for first in [first for first, (batch, _, _) in self._held.items() if goes(batch)]:
            self._remove(first)
        self._order = list(self._held)
        heapify(self._order)

    def _remove(self, first: Counter) -> AnyBatch | None:
        if first not in self._held:
            return None
        batch, messages, size = self._held.pop(first)
        self.messages -= messages
        self.bytes -= size
        return batch
