"""The event queue: a calendar of buckets one unit of time wide, each sorted when its turn comes.

Pushing is a list append and popping an index increment, however many events are outstanding; a binary heap pays a
logarithm of tuple comparisons for each (with a million packets in flight, several times the cost of the protocol).
Events are tuples that open with (time, tie), and `tie` is unique, so comparing never looks further.
"""

from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import chain
from typing import Any, TypeAlias

Event: TypeAlias = tuple[Any, ...]


class Scheduler:
    __slots__ = ("_current", "_current_key", "_index", "_keys", "buckets", "tie")

    def __init__(self) -> None:
        self.buckets: dict[int, list[Event]] = {}
        """Future events by whole units of time; a driver in a hurry appends to a bucket that is there."""
        self.tie = 0  # the last number given to an event
        self._keys: list[int] = []
        self._current: list[Event] = []
        self._current_key = -1
        self._index = 0

    def next_tie(self) -> int:
        self.tie += 1
        return self.tie

    def push(self, event: Event) -> None:
        key = int(event[0])
        bucket = self.buckets.get(key)
        if bucket is not None:
            bucket.append(event)
        elif key == self._current_key:
            insort(self._current, event, lo=self._index)
        else:
            if key < self._current_key:
                self._put_back()
            self.buckets[key] = [event]
            heappush(self._keys, key)

    def outstanding(self) -> list[Event]:
        """Every event that is still to come, in order."""
        return sorted(chain(self._current[self._index :], *self.buckets.values()))

    def drop(self, is_lost: Callable[[Event], bool]) -> None:
        """Events that will not come after all. Looks at all of them: for what happens rarely."""
        self._current = [one for one in self._current[self._index :] if not is_lost(one)]
        self._index = 0
        for bucket in self.buckets.values():
            bucket[:] = [one for one in bucket if not is_lost(one)]

    def clear(self) -> None:
        self.buckets.clear()
        self._keys.clear()
        self._current, self._current_key, self._index = [], -1, 0

    def _put_back(self) -> None:
        """Close the open bucket: its first event was looked at and pushed back, and now something comes before it."""
        if self._index < len(self._current):
            self.buckets[self._current_key] = self._current[self._index :]
            heappush(self._keys, self._current_key)
        self._current, self._current_key, self._index = [], -1, 0

    def pop(self) -> Event | None:
        """The earliest event, or None when there is none."""
        index = self._index
        while index == len(self._current):
            if not self._keys:
                return None
            self._current_key = heappop(self._keys)
            self._current = self.buckets.pop(self._current_key)
            self._current.sort()
            index = 0
        self._index = index + 1
        return self._current[index]
