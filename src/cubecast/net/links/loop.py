"""The event loop, and which build this is: uvloop where it is installed; modules that every frame passes through may be
compiled, which changes nothing but speed."""

import asyncio
from collections.abc import Coroutine
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
