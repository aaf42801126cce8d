"""Answers that take long to make are given again for a while: looking at a node must not be what keeps it busy.

With ten thousand topics a list of them takes a fifth of a second, in which the node does nothing else, and an open page
asks for it every second.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

QUICK = 0.02
"""Seconds an answer may take to be made anew every time."""
SHARE = 20
"""Otherwise it is made once in so many times as long as it took."""


class Sparing(Generic[Answer]):
    def __init__(self, make: Callable[[], Answer], clock: Callable[[], float] = perf_counter) -> None:
        self._make, self._clock = make, clock
        self._kept: tuple[float, Answer] | None = None
        """Until when, and what."""

    def __call__(self) -> Answer:
        began = self._clock()
        if self._kept is not None and began < self._kept[0]:
            return self._kept[1]
        answer = self._make()
        ended = self._clock()
        took = ended - began
        self._kept = None if took < QUICK else (ended + SHARE * took, answer)
        return answer
