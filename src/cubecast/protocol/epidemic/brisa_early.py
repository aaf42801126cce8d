"""Messages of a flow that came before something they follow, held until it comes; bounded like those kept."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from cubecast.ids import Counter

Batch = TypeVar("Batch")


class Early(Generic[Batch]):
    """By the counter of the first message of each batch."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self.messages = self.bytes = 0
        self._most = most_messages
        self._most_bytes = most_bytes
        self._held: dict[Counter, tuple[Batch, int, int]] = {}
        """With how many messages and bytes each has."""
        self._order: list[Counter] = []
        """A heap of what is held, and of some that are held no more."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, first: Counter, batch: Batch, messages: int, size: int) -> None:
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

    def pop_upto(self, last: Counter) -> Batch | None:
        """The first batch, if it begins not later than this."""
        first = self.first
        return None if first is None or first > last else self._remove(first)

    def forget(self, goes: Callable[[Batch], bool]) -> None:
        for first in [first for first, (batch, _, _) in self._held.items() if goes(batch)]:
            self._remove(first)
        self._order = list(self._held)
        heapify(self._order)

    def _remove(self, first: Counter) -> Batch | None:
        if first not in self._held:
            return None
        batch, messages, size = self._held.pop(first)
        self.messages -= messages
        self.bytes -= size
        return batch
