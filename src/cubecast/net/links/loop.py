"""The event loop: uvloop where it is installed; which build this is; work that others bring, done a little in each
pass, so that nothing else has to wait for all of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar

from cubecast.net.links import turn

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


IS_COMPILED = not turn.__file__.endswith(".py")


# Work that others bring, a little in each pass of the event loop, so that nothing else has to wait for all of it.
#
# What is begun goes on at once while the pass has time left for it; the rest waits for later passes and takes turns
# with the work of others. One client, or many at the same moment, cannot keep a node from its rounds. Follows
# decision 0043.

ALLOWANCE = 0.01
"""Seconds of each pass; a step that is begun is ended."""

Step = Callable[[], bool]
"""Does a little; True when there is more to do."""


class Slices:
    def __init__(self, allowance: float = ALLOWANCE) -> None:
        self._allowance = allowance
        self._waiting: deque[Step] = deque()
        self._until = 0.0
        """When this pass has had enough."""
        self._is_counting = False

    def begin(self, step: Step) -> None:
        """Repeat the step until it says that nothing is left."""
        if self._waiting:
            self._waiting.append(step)
            return
        self._count()
        while monotonic() < self._until:
            if not step():
                return
        self._waiting.append(step)

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            self._until = monotonic() + self._allowance
            asyncio.get_running_loop().call_soon(self._next_pass)

    def _next_pass(self) -> None:
        self._is_counting = False
        if not self._waiting:
            return
        self._count()
        while self._waiting:
            step = self._waiting.popleft()
            if step():
                self._waiting.append(step)
            if monotonic() >= self._until:
                return

    async def turn(self) -> None:
        """Between two steps of a task: go on at once while the pass has time left."""
        self._count()
        if monotonic() >= self._until:
            await asyncio.sleep(0)

    @property
    def is_behind(self) -> bool:
        return bool(self._waiting)
