"""Every delivery of a group chat checked, for a fraction of a microsecond each.

Each message carries its number, what its publisher had delivered when it stamped it, and the time. So publisher order,
causal order, loss and duplication are decided by arithmetic on whole batches.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cubecast.errors import BadInput


@dataclass
class Checker:
    """What one member has seen of everybody, and whether it came in order."""

    members: int
    size: int
    delivered: Any = field(init=False)
    """Per member, how many of its messages were delivered here."""
    violations: int = 0
    latencies: list[float] = field(default_factory=list)
    sample_latency: bool = False

    def __post_init__(self) -> None:
        self.delivered = np.zeros(self.members, np.int32)
        stamp = [("number", np.int64), ("time", np.float64), ("known", np.int32, (self.members,))]
        self._layout = np.dtype({**_fields(stamp), "itemsize": max(self.size, np.dtype(stamp).itemsize)})
        if self._layout.itemsize > self.size:
            raise BadInput(f"{self.members} members need messages of {self._layout.itemsize} bytes at least")

    def stamp(self, first: int, count: int) -> list[bytes]:
        """The next messages of this member."""
        rows = np.zeros(count, self._layout)
        rows["number"] = np.arange(first, first + count)
        rows["time"] = time.monotonic()
        rows["known"] = self.delivered
        block, size = rows.tobytes(), self.size
        return [block[start : start + size] for start in range(0, count * size, size)]

    def check(self, source: int, payloads: Sequence[bytes]) -> None:
        """Messages that follow one another in this member's deliveries, all of one source."""
        rows = np.frombuffer(b"".join(payloads), self._layout)
        first = int(self.delivered[source]) + 1
        if not np.array_equal(rows["number"], np.arange(first, first + len(rows))):
            self.violations += 1
        known = rows["known"].max(axis=0)
        known[source] = 0
        if (known > self.delivered).any():
            self.violations += 1
        self.delivered[source] += len(rows)
        if self.sample_latency:
            self.latencies += (time.monotonic() - rows["time"]).tolist()


def _fields(stamp: list[Any]) -> dict[str, Any]:
    packed = np.dtype(stamp)
    names = packed.names or ()
    return {
        "names": names,
        "formats": [packed[name] for name in names],
        "offsets": [packed.fields[name][1] for name in names],  # type: ignore[index]
    }
