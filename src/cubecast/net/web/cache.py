"""Answers that take long to make are given again for a while: looking at a node must not be what keeps it busy.

What an answer costs is the processor time of the event loop's thread. The time of day would count what other processes
and threads did meanwhile, too: on a busy machine a cheap answer would seem dear, and grow old just when people look.
"""

from collections.abc import Callable
from time import monotonic, thread_time
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

QUICK = 0.02
"""Seconds of work an answer may take to be made anew every time."""
SHARE = 20
"""Otherwise it is made once in so many times as long as it took: at most this part of a core goes into it."""


class AnswerCache(Generic[Answer]):
    def __init__(
        self,
        make: Callable[[], Answer],
        clock: Callable[[], float] = monotonic,
        worked: Callable[[], float] = thread_time,
    ) -> None:
        self._make, self._clock, self._worked = make, clock, worked
        self._kept: tuple[float, Answer] | None = None
        """Until when, and what."""

    def __call__(self) -> Answer:
        if self._kept is not None and self._clock() < self._kept[0]:
            return self._kept[1]
        before = self._worked()
        answer = self._make()
        took = self._worked() - before
        self._kept = None if took < QUICK else (self._clock() + SHARE * took, answer)
        return answer
