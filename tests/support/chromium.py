"""One headless Chromium for all tests that need a browser, in an event loop of its own thread.

The loop runs the browser's side and whatever the pages talk to; tests hand it coroutines and wait, with a deadline.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any, TypeVar

from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright

Result = TypeVar("Result")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # All pages in one process: starting one costs more than most tests.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
)
PATIENCE = 60_000
"""Milliseconds for whatever a page is waited for."""


def installed() -> str:
    """Where it is; `scripts/browser` says how to get one."""
    named = os.environ.get("CHROMIUM")
    found = next(filter(None, map(shutil.which, (named,) if named else NAMES)), None)
    assert found, "no Chromium here; run scripts/browser"
    return found


class Chromium:
    """Make it, then `run` coroutines that use `page`, then `stop` it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._playwright: Playwright
        self._browser: Browser
        self._contexts: dict[str, BrowserContext] = {}
        self.run(self._start())

    def run(self, coroutine: Coroutine[Any, Any, Result], deadline: float = 180.0) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(deadline):
                return await coroutine

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop).result(deadline + 10)

    async def _start(self) -> None:
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=installed(), args=FLAGS, timeout=2 * PATIENCE
        )

    @asynccontextmanager
    async def page(self, url: str, *, calm: bool = True, **options: Any) -> AsyncIterator[Page]:
        """A page of its own; when it is left, nothing may have gone wrong in it.

        Pages with the same options share a context, which costs a while to make. What they keep is kept per origin, and
        every node of every test has one of its own.
        """
        context = await self._context(**options)
        page = await context.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        try:
            await page.goto(url)
            yield page
        finally:
            await page.close()
        assert not (calm and troubles), troubles

    async def _context(self, **options: Any) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in self._contexts:
            context = self._contexts[key] = await self._browser.new_context(**options)
            context.set_default_timeout(PATIENCE)
            await context.new_page()  # keeps its process alive
        return self._contexts[key]

    def stop(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        await self._browser.close()
        await self._playwright.stop()
