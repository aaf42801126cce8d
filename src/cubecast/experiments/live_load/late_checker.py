"""The same checks for loads that are measured by their latency: looked at afterwards.

At a rate, processes are woken for single messages and find their caches cold, where a check takes longer than some of
what is measured, and the process that is woken next waits for it. So while messages come in only what cannot be had
later is noted: in which order they came, and when.
"""

import time
from collections.abc import Sequence

from cubecast.experiments.live_load.checker import Checker, stamped_at
from cubecast.experiments.live_load.load import Load


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
