"""What the members of a benchmark are asked to do; how they do it, whatever carries their messages, and check every
delivery.
"""

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from operator import gt
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from cubecast.errors import BadInput
from cubecast.net.settings.security import TlsSettings


@dataclass(frozen=True)
class Load:
    """What every member does."""

    members: int
    size: int = 64
    publish: str = "batch"
    """`batch`: lists of messages · `single`: one call per turn of the event loop · `rate`: at `rate` a second."""
    read: str = "callback"
    """`callback`: a function per batch · `iterate`: one `async for` step per message."""
    rate: float = 0.0
    batch: int = 256
    messages: int | None = None
    """How many each member publishes; as many as it can when None."""
    journal: Path | None = None
    tls: TlsSettings | None = None
    observe: bool = False
    data: Path | None = None
    """Where members keep a log of everything, when they do."""
    loggers: int | None = None
    """How many of them do; all when None."""


# Every delivery of a group chat checked, for a fraction of a microsecond each.
#
# Each message carries its number, what its publisher had delivered when it stamped it, and the time. So publisher
# order, causal order, loss and duplication are decided by arithmetic on whole batches.

FEW = 8
"""Up to so many messages plain Python is faster than numpy."""
MUCH = 256
"""Of larger messages only the part that is looked at is copied."""


_TIME = Struct("<d")


def smallest_payload(members: int) -> int:
    return 16 + 4 * members


class Checker:
    """What one member has seen of everybody, and whether it came in order."""

    def __init__(self, members: int, size: int) -> None:
        padding = size - smallest_payload(members)
        if padding < 0:
            raise BadInput(f"{members} members need messages of {smallest_payload(members)} bytes at least")
        known, rest = (np.int32, (members,)), (np.uint8, (padding,))
        self._head = np.dtype([("number", np.int64), ("time", np.float64), ("known", *known)])
        self._layout = np.dtype([("number", np.int64), ("time", np.float64), ("known", *known), ("padding", *rest)])
        self._stamp = Struct(f"<qd{members}i{padding}x")
        self._known = Struct(f"<{members}i")
        self._end = smallest_payload(members)
        self._last_stamp = [b""] * members
        self._size = size
        self.delivered = [0] * members
        """Per member, how many of its messages were delivered here."""
        self.violations = 0

    def sample(self) -> None:
        """Latencies count from now on, where anybody takes them."""

    def conclude(self) -> list[float]:
        """Nothing follows; the latencies, where they were taken."""
        return []

    def stamp(self, first: int, count: int) -> list[bytes]:
        """The next messages of this member."""
        if count <= FEW:
            now = time.monotonic()
            return [self._stamp.pack(number, now, *self.delivered) for number in range(first, first + count)]
        rows = np.zeros(count, self._layout)
        rows["number"] = np.arange(first, first + count)
        rows["time"] = time.monotonic()
        rows["known"] = self.delivered
        block, size = rows.tobytes(), self._size
        return [block[start : start + size] for start in range(0, count * size, size)]

    def check(self, source: int, payloads: Sequence[bytes]) -> None:
        """Messages that follow one another in this member's deliveries, all of one source."""
        if len(payloads) <= FEW:
            for payload in payloads:
                self._check_one(source, payload)
            return
        if self._size > MUCH:
            end = self._end
            rows = np.frombuffer(b"".join([payload[:end] for payload in payloads]), self._head)
        else:
            rows = np.frombuffer(b"".join(payloads), self._layout)
        first = self.delivered[source] + 1
        if not np.array_equal(rows["number"], np.arange(first, first + len(rows))):
            self.violations += 1
        known = rows["known"].max(axis=0)
        known[source] = 0
        if (known > self.delivered).any():
            self.violations += 1
        self.delivered[source] += len(rows)

    def _check_one(self, source: int, payload: bytes) -> None:
        delivered, stamp = self.delivered, payload[16 : self._end]
        delivered[source] += 1
        in_order = int.from_bytes(payload[:8], "little") == delivered[source]
        if stamp != self._last_stamp[source]:  # one that was satisfied before still is
            self._last_stamp[source] = stamp
            known = list(self._known.unpack(stamp))
            known[source] = 0
            in_order = in_order and not any(map(gt, known, delivered))
        if not in_order:
            self.violations += 1


def stamped_at(payload: bytes) -> float:
    """When its publisher made it."""
    time: float = _TIME.unpack_from(payload, 8)[0]
    return time


# The same checks for loads that are measured by their latency: looked at afterwards.
#
# At a rate, processes are woken for single messages and find their caches cold, where a check takes longer than some
# of what is measured, and the process that is woken next waits for it. So while messages come in only what cannot be
# had later is noted: in which order they came, and when.


def checker_for(load: Load) -> Checker:
    return LateChecker(load.members, load.size) if load.rate else Checker(load.members, load.size)


class LateChecker(Checker):
    def __init__(self, members: int, size: int) -> None:
        super().__init__(members, size)
        self._judge = Checker(members, size)
        self._noted: list[tuple[float, int, Sequence[bytes]]] = []
        self._first_sample = 0

    def sample(self) -> None:
        """From now on latencies count."""
        self._first_sample = len(self._noted)

    def check(self, source: int, payloads: Sequence[bytes]) -> None:
        self._noted.append((time.monotonic(), source, tuple(payloads)))
        self.delivered[source] += len(payloads)

    def conclude(self) -> list[float]:
        """Look at everything; the latencies that count, in seconds."""
        for _, source, payloads in self._noted:
            self._judge.check(source, payloads)
        self.violations = self._judge.violations
        sampled = self._noted[self._first_sample :]
        return [at - stamped_at(payload) for at, _, payloads in sampled for payload in payloads]


# What every member process does, whatever carries its messages: obey the orders of its pipe, publish, count, check.

MOST_AT_ONCE = 256


class Talker:
    """One member. Neighbours of one publisher are checked together, which is as strict as one by one."""

    def __init__(self, load: Load, number: int, pipe: Connection) -> None:
        self.load, self.number, self.pipe = load, number, pipe
        self.checker = checker_for(load)
        self.publishing = False
        self.published = 0
        self.delivered = 0
        self.run: list[bytes] = []
        self.run_source = -1
        self._orders: asyncio.Queue[Any] = asyncio.Queue()

    async def introduce(self, address: str) -> list[str]:
        """Say where this member is; where everybody is, once all have said so."""
        asyncio.get_running_loop().add_reader(self.pipe.fileno(), lambda: self._orders.put_nowait(self.pipe.recv()))
        self.pipe.send(address)
        addresses: list[str] = await self._orders.get()
        return addresses

    async def obey(self, write: Callable[[], Awaitable[None]]) -> None:
        """Until it is told to end; `write` publishes as long as `publishing` says."""
        self.pipe.send("ready")
        writer: asyncio.Future[None] | None = None
        gc.collect()
        gc.freeze()
        while (order := await self._orders.get()) != "end":
            match order:
                case "publish":
                    self.publishing = True
                    writer = asyncio.ensure_future(write())
                case "pause":
                    self.publishing = False
                    if writer is not None:
                        await writer
                case "sample":
                    self.checker.sample()
            self.pipe.send(self._report())
        asyncio.get_running_loop().remove_reader(self.pipe.fileno())
        os.set_blocking(self.pipe.fileno(), True)  # the event loop needed it otherwise, and the last report is long

    def say_goodbye(self) -> None:
        self.check_run()
        latencies = self.checker.conclude()
        self.pipe.send(self._report() | {"latencies": latencies})

    def _report(self) -> dict[str, Any]:
        self.check_run()
        return {
            "time": time.monotonic(),
            "cpu": time.process_time(),
            "published": self.published,
            "delivered": self.delivered,
            "violations": self.checker.violations,
        }

    def check_run(self) -> None:
        if self.run:
            self.delivered += len(self.run)
            self.checker.check(self.run_source, self.run)
            self.run.clear()

    def stamped(self, count: int) -> list[bytes]:
        """The next messages."""
        messages = self.checker.stamp(self.published + 1, count)
        self.published += count
        return messages

    async def at_rate(self, publish: Callable[[], Awaitable[None]]) -> None:
        """One message after the other, each when it is due, while `publishing` says so."""
        loop, pause = asyncio.get_running_loop(), 1.0 / self.load.rate
        due = loop.time() + pause * self.number / self.load.members
        while self.goes_on:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await publish()
            due += pause

    @property
    def goes_on(self) -> bool:
        return self.publishing and (self.load.messages is None or self.published < self.load.messages)
