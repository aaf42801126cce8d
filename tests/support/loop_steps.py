"""How long the single steps of an event loop take, in time of the processor: a busy machine does not lengthen it."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any


class Steps:
    """Of all callbacks that ran: the longest, and which it was."""

    def __init__(self) -> None:
        self.count = 0
        self.worst = 0.0
        self.culprit = ""

    def __repr__(self) -> str:
        return f"the longest of {self.count} steps took {self.worst * 1000:.1f} ms: {self.culprit}"

    def took(self, seconds: float, handle: Any) -> None:
        self.count += 1
        if seconds > self.worst:
            self.worst, self.culprit = seconds, repr(handle)


@contextmanager
def steps() -> Iterator[Steps]:
    """Of asyncio's own loop, which runs everything through its handles. Searching for garbage is nobody's step, and
    those of the task that asks do not count."""
    found, kept, asking = Steps(), asyncio.events.Handle._run, asyncio.current_task()

    def timed(self: Any) -> None:
        began = thread_time()
        kept(self)
        if getattr(self._callback, "__self__", None) is not asking:
            found.took(thread_time() - began, self)

    gc.collect()
    gc.disable()
    asyncio.events.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        asyncio.events.Handle._run = kept  # type: ignore[method-assign]
        gc.enable()
