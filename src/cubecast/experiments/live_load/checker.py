"""Every delivery of a group chat checked, for a fraction of a microsecond each.

Each message carries its number, what its publisher had delivered when it stamped it, and the time. So publisher order,
causal order, loss and duplication are decided by arithmetic on whole batches.
"""

import time
from collections.abc import Sequence
from operator import gt
from struct import Struct

import numpy as np

from cubecast.errors import BadInput
from cubecast.experiments.live_load.load import Load

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
