"""Callers that have not said, and proved, who they are: few at a time, not for long, and a crowd hurts only itself."""

import asyncio
from collections.abc import Callable

from cubecast.net.links.handshake import Challenge, ClientGreeting
from cubecast.net.settings.security import Limits


class Stranger:
    """One of them; `abort` hangs up, whatever stage its connection is at."""

    __slots__ = ("abort", "address", "asked", "channel", "timer")

    def __init__(self, address: str, abort: Callable[[str], None]) -> None:
        self.address, self.abort = address, abort
        self.timer: asyncio.TimerHandle | None = None
        self.channel = b""
        """The digest of the certificate it was shown."""
        self.asked: tuple[ClientGreeting, Challenge] | None = None
        """What it greeted with, and was asked to sign."""


class Strangers:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._by_address: dict[str, dict[Stranger, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def arrive(self, address: str, abort: Callable[[str], None]) -> Stranger:
        """With too many of them, the address that has most loses the one that has been silent for longest: who means to
        greet does it at once, and a crowd from one address does not push anybody else out."""
        stranger = Stranger(address, abort)
        loop, limits = asyncio.get_running_loop(), self.limits
        stranger.timer = loop.call_later(limits.greeting_time, self._hurry, stranger)
        self._by_address.setdefault(address, {})[stranger] = None
        self._count += 1
        if self._count > limits.strangers:
            crowd = max(self._by_address.values(), key=len)
            silent = next(iter(crowd))
            self.leave(silent)
            silent.abort("too many callers that do not say who they are")
        return stranger

    def leave(self, stranger: Stranger) -> bool:
        """It is known now, or gone; False when it was no stranger any more."""
        here = self._by_address.get(stranger.address, {})
        if stranger not in here:
            return False
        del here[stranger]
        if not here:
            del self._by_address[stranger.address]
        self._count -= 1
        if stranger.timer is not None:
            stranger.timer.cancel()
        return True

    def abort_all(self, reason: str) -> None:
        for here in list(self._by_address.values()):
            for stranger in list(here):
                stranger.abort(reason)

    def _hurry(self, stranger: Stranger) -> None:
        stranger.abort("it did not greet in time")
