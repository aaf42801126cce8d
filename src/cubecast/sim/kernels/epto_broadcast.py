"""EpTO at paper scale: what to run, and what came of it, around the compiled kernel."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.protocol.epidemic.epto_parameters import Clock, EptoParameters, Expired, Rule
from cubecast.sim.kernels import epto_kernel as kernel
from cubecast.sim.kernels.epto_kernel import Draws, Floats, Rules, Tables, make_tables

_CLOCKS = {Clock.GLOBAL: kernel.GLOBAL, Clock.LOGICAL: kernel.LOGICAL, Clock.HYBRID: kernel.HYBRID}
_FIRST_POOL = 1 << 20


@dataclass(frozen=True)
class EptoKernel:
    """The protocol. The draws are an argument of `simulate`, so that variants can share them."""

    processes: int
    parameters: EptoParameters

    def __post_init__(self) -> None:
        if Rule.PRINTED in (self.parameters.acceptance, self.parameters.identity):
            raise BadInput("the kernel knows the printed rule for ties only")

    @property
    def fanout(self) -> int:
        return self.parameters.fanout_of(self.processes)

    def simulate(self, draws: Draws) -> "EptoRun":
        n, rounds = draws.periods.shape
        if n != self.processes or draws.peers.shape != (n, rounds, self.fanout):
            raise BadInput(f"the kernel needs draws for {self.processes} processes and {self.fanout} peers per ball")
        if draws.replaced.any() and self.parameters.relays:
            raise BadInput("the kernel replaces processes only where relays are not limited")
        chosen = self.parameters
        rules = Rules(
            clock=_CLOCKS[chosen.clock],
            hops=chosen.ttl_of(n),
            threshold=chosen.threshold_of(n),
            relays=chosen.relays,
            drop=chosen.expired is Expired.DROP,
            printed_ties=chosen.ties is Rule.PRINTED,
            tick=chosen.tick,
            period=chosen.period,
        )
        pooled = _FIRST_POOL
        while True:
            tables = make_tables(draws, pooled)
            if kernel.run(rules, draws, tables):
                return EptoRun(draws, tables)
            pooled *= 2


class EptoRun:
    """A finished run, as arrays over processes and events; events are numbered as they were published."""

    def __init__(self, draws: Draws, tables: Tables) -> None:
        self._tables = tables
        self.events = int(tables.used[kernel.EVENTS])
        self.copies = int(tables.used[kernel.COPIES])
        self.inversions = int(tables.used[kernel.INVERSIONS])
        """Deliveries below the one before them."""
        self.stays: NDArray[np.bool_] = tables.life == 0
        """Per process, whether it was there from beginning to end."""
        self.published_at: Floats = tables.published_at[: self.events]
        self.source: NDArray[np.int32] = tables.source[: self.events]
        self.counter: NDArray[np.int32] = tables.counter[: self.events]
        self.received_at: Floats = tables.received_at[:, : self.events]
        self.delivered_at: Floats = tables.delivered_at[:, : self.events]

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Of each event in the total order."""
        order = np.lexsort((self._tables.tie[: self.events], self._tables.ts[: self.events]))
        rank = np.empty(self.events, np.int64)
        rank[order] = np.arange(self.events)
        return rank

    @cached_property
    def delivered(self) -> NDArray[np.bool_]:
        delivered: NDArray[np.bool_] = np.isfinite(self.delivered_at)
        return delivered

    @cached_property
    def clean(self) -> NDArray[np.bool_]:
        """Per process that stays, whether it delivered all that such a process delivered or published itself."""
        everything = self.delivered[self.stays].any(axis=0) | self.stays[self.source]
        return np.asarray((self.delivered[self.stays] | ~everything).all(axis=1))

    @cached_property
    def delays(self) -> Floats:
        """From publication to delivery, at the processes that stay; NaN where there was none."""
        return self._since_publication(self.delivered_at)

    @cached_property
    def first_receptions(self) -> Floats:
        return self._since_publication(self.received_at)

    def _since_publication(self, times: Floats) -> Floats:
        delays = times[self.stays] - self.published_at
        delays[~np.isfinite(delays)] = np.nan
        return delays

    def sequence(self, process: int) -> list[tuple[int, int]]:
        """(source, counter) of what it delivered, in that order."""
        times = self.delivered_at[process]
        order = np.lexsort((self.rank, times))[: int(self.delivered[process].sum())]
        return [(int(self.source[e]), int(self.counter[e])) for e in order]

    def spontaneous(self, process: int) -> float:
        """The share of all events that are in order where they are delivered as they come in: the longest common
        subsequence with the total order."""
        heard = self._tables.heard[process, : self._tables.heard_count[process]]
        return longest_increasing(self.rank[heard]) / self.events


def longest_increasing(values: NDArray[np.int64]) -> int:
    """Length of the longest increasing subsequence, by patience sorting."""
    ends: list[int] = []
    for value in values.tolist():
        place = bisect_left(ends, value)
        ends[place : place + 1] = [value]
    return len(ends)
