"""Coroutines in plain test functions, each with a deadline."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result], deadline: float = 150.0) -> Result:
    """Run to the end; TimeoutError with the stack of what hung when it takes longer."""

    async def bounded() -> Result:
        async with asyncio.timeout(deadline):
            return await coroutine

    return asyncio.run(bounded())


async def until(condition: Callable[[], Any], deadline: float = 60.0) -> None:
    """Give the event loop turns until the condition holds."""
    async with asyncio.timeout(deadline):
        while not condition():
            await asyncio.sleep(0)
