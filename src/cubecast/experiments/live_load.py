"""Group chat as fast as it goes, or at a given rate: every member publishes and subscribes one topic, all is checked.

Each message carries its number, what its publisher had delivered when it published it, and the time. So every delivery
is checked for publisher order, causal order, loss and duplication by arithmetic on whole batches.
"""

import time
from dataclasses import dataclass, field

import numpy as np

STAMP = 16
"""Bytes before the vector: the message's number and its time."""


def smallest_payload(members: int) -> int:
    return STAMP + 4 * members


@dataclass
class Checker:
    """What one member has seen of everybody, and whether it came in order."""

    members: int
    size: int
    delivered: "np.ndarray" = field(init=False)
    violations: int = 0
    latencies: list[float] = field(default_factory=list)
    sample_latency: bool = False

    def __post_init__(self) -> None:
        self.delivered = np.zeros(self.members, np.int32)

    def stamp(self, me: int, first: int, count: int) -> list[bytes]:
        """The next messages of this member."""
        rows = np.zeros((count, self.size), np.uint8)
        head = rows[:, : STAMP + 4 * self.members]
        head[:, :8] = np.arange(first, first + count, dtype=np.int64).view(np.uint8).reshape(count, 8)
        head[:, 8:16] = np.frombuffer(np.float64(time.monotonic()).tobytes(), np.uint8)
        head[:, 16:] = self.delivered.view(np.uint8)
        block, size = rows.tobytes(), self.size
        return [block[start : start + size] for start in range(0, count * size, size)]

    def check(self, source: int, payloads: "list[bytes] | tuple[bytes, ...]") -> None:
        count, members = len(payloads), self.members
        rows = np.frombuffer(b"".join(payloads), np.uint8).reshape(count, self.size)
        numbers = rows[:, :8].copy().view(np.int64)[:, 0]
        first = int(self.delivered[source]) + 1
        if numbers[0] != first or (count > 1 and not (np.diff(numbers) == 1).all()):
            self.violations += 1
        known = rows[:, 16 : 16 + 4 * members].copy().view(np.int32).max(axis=0)
        known[source] = 0
        if (known > self.delivered).any():
            self.violations += 1
        self.delivered[source] += count
        if self.sample_latency:
            sent = rows[:, 8:16].copy().view(np.float64)[:, 0]
            self.latencies.extend((time.monotonic() - sent).tolist())
