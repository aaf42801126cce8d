"""Overlays whose members come and go."""

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels import stan_members as members_kernel
from cubecast.sim.kernels.stan import Overlays, view_size

SPARE = 24
"""Places of a view beyond those it begins with: who adds newcomers has more and more neighbours."""


class ChangingOverlays(Overlays):
    """All processes that will ever come have their slots from the start; `there` says who does, by process."""

    def __init__(
        self,
        first: NDArray[np.int64],
        members: NDArray[np.int32],
        there: NDArray[np.bool_],
        *,
        seed: int,
        ttl: int = 4,
        repair: bool = True,
    ) -> None:
        super().__init__(first, members, seed=seed, ttl=ttl, repair=repair, spare=SPARE)
        most = int(np.diff(first).max())
        self._wanted = np.array([0, 0, *(view_size(count) for count in range(2, most + 2))], np.int64)
        self._found = np.zeros(most + int(self._wanted.max()), np.int64)
        self.there = np.ascontiguousarray(there[self.world.process])
        """By slot."""
        self.world.size[:] = 0
        members_kernel.draw_views_of(self.world, self.there, self._wanted, self._found, seed)

    def go(self, leaving: NDArray[np.bool_]) -> None:
        """These processes crash, and everybody knows."""
        self.there &= ~leaving[self.world.process]
        members_kernel.forget(self.world, self.there)

    def come(self, newcomers: NDArray[np.bool_]) -> None:
        """These processes subscribe to all their topics, one after another."""
        self._enter(newcomers[self.world.process] & ~self.there)

    def round(self, loss: float = 0.0) -> None:
        alone = self.there & (self.world.size == 0)
        super().round(loss)
        self._enter(alone)

    def empty_views(self) -> int:
        """Slots that are there without a neighbour."""
        return int((self.there & (self.world.size == 0)).sum())

    def isolated(self) -> int:
        """Processes that are there without a neighbour in any of their topics."""
        linked = np.bincount(self.world.process, self.there * self.world.size) > 0
        here = np.bincount(self.world.process, self.there) > 0
        return int((here & ~linked).sum())

    def _enter(self, coming: NDArray[np.bool_]) -> None:
        members_kernel.enter_all(self.world, self.there, coming, self._wanted, self._found, self.seed, self.rounds)
