"""What an application publishes on one topic, from acceptance to stability, in bounded memory.

Everything published in one turn of the event loop becomes one call of the machine, and while the machine's window is
closed nothing more is handed to it: it piles up here and leaves as few large batches. That is what makes it fast.
"""

import asyncio
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

from cubecast.errors import Closed, CubecastError, OutcomeUnknown
from cubecast.ids import Topic
from cubecast.net.port.chunks import weight
from cubecast.net.settings.fields import FULL_BATCH

HANDFUL: Final = 64
COMPANY: Final = 256
HEAVY: Final = 16 << 10
"""So many messages or bytes are company enough."""


class Outgoing:
    """Counts messages in the order of acceptance: accepted ≥ given ≥ published ≥ stable."""

    __slots__ = (
        *("_marks", "_room", "_unknown", "_waiters", "_why", "accepted", "budget", "base", "bytes", "given"),
        *("is_dirty", "pending", "pending_bytes", "published", "stable", "topic"),
    )

    def __init__(self, topic: Topic, budget: int) -> None:
        self.topic = topic
        self.budget = budget
        self.pending: list[bytes] = []
        self.pending_bytes = 0
        self.is_dirty = False
        """Waiting for the end of the turn."""
        self.accepted = self.given = self.published = self.stable = 0
        self.bytes = 0
        """Accepted and not stable."""
        self.base = 0
        """Published before this incarnation began."""
        self._marks: list[tuple[int, int]] = []
        """Never many: what the machine cannot publish yet is handed to it by the handful. So no deque, which takes half
        a kilobyte when it is empty, of every topic that was ever published on."""
        self._room: list[asyncio.Future[None]] = []
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._unknown = range(0)
        """The last ones of which it is unknown how far they came."""
        self._why: CubecastError | None = None

    def accept(self, payloads: Sequence[bytes]) -> int:
        size = weight(payloads)
        self.pending += payloads
        self.pending_bytes += size
        self.bytes += size
        self.accepted += len(payloads)
        return self.accepted

    def take(self, most: int | None = None) -> list[bytes]:
        """What goes to the machine now: all, or the first so many."""
        if most is None or len(self.pending) <= most:
            payloads, self.pending, size = self.pending, [], self.pending_bytes
        else:
            payloads, self.pending = self.pending[:most], self.pending[most:]
            size = weight(payloads)
        self.given += len(payloads)
        self._marks.append((self.given, size))
        self.pending_bytes -= size
        return payloads

    @property
    def is_worth_a_call(self) -> bool:
        """While the machine has some that cannot leave yet, more are handed to it by the handful, not one by one."""
        waiting = self.given - self.published
        return bool(self.pending) and (not waiting or (len(self.pending) >= HANDFUL and waiting < FULL_BATCH))

    @property
    def is_awaited(self) -> bool:
        """Does a publisher wait for the stability of something?"""
        return bool(self._waiters)

    @property
    def is_urgent(self) -> bool:
        """Has it nothing to gain from waiting for company, or does a publisher wait for it?"""
        much = len(self.pending) >= COMPANY or self.pending_bytes >= HEAVY
        return much or bool(self._waiters) or self.bytes >= self.budget

    @property
    def has_room(self) -> bool:
        return self.bytes < self.budget

    def resize(self, budget: int) -> None:
        self.budget = budget
        self._grant_room()

    def room(self) -> asyncio.Future[None]:
        """Of everybody who waits its own, so that one may be cancelled."""
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room = [*(one for one in self._room if not one.done()), room]
        self._grant_room()
        return room

    def when_stable(self, accepted: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._why is not None and accepted in self._unknown:
            future.set_exception(self._why)
        elif accepted <= self.stable:
            future.set_result(None)
        else:
            heappush(self._waiters, (accepted, id(future), future))
        return future

    def acknowledged(self, counter: int) -> None:
        """Everything up to this counter of the present incarnation is stable."""
        self._settle(self.base + counter, None)

    def restarted(self) -> None:
        """The node lives on as another incarnation: of what was under way it is unknown how far it came."""
        reason = "the node was cut off and came back; whether the publication reached everybody is not known"
        self._settle(self.published, OutcomeUnknown(reason))
        self.base = self.published

    def close(self, error: CubecastError) -> None:
        self._settle(self.published, OutcomeUnknown(f"{error}; the publication may not have reached everybody"))
        self._settle(self.accepted, Closed(f"{error}; it was not published"))
        for room in self._room:
            if not room.done():
                room.set_exception(error)

    def _settle(self, stable: int, error: CubecastError | None) -> None:
        if error is not None and stable > self.stable:
            self._unknown, self._why = range(self.stable + 1, stable + 1), error
        self.stable = stable
        while self._marks and self._marks[0][0] <= stable:
            self.bytes -= self._marks.pop(0)[1]
        while self._waiters and self._waiters[0][0] <= stable:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None) if error is None else future.set_exception(error)
        self._grant_room()

    def _grant_room(self) -> None:
        if self._room and self.has_room:
            rooms, self._room = self._room, []
            for room in rooms:
                if not room.done():
                    room.set_result(None)
