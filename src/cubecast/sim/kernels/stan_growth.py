"""Overlays that grow: members that are there from the start, and newcomers, who take over links."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cubecast.sim.kernels.stan import Overlays, view_size


class GrowingOverlays(Overlays):
    """All who will ever come have their slots from the start; the views of those to come are empty."""

    def __init__(
        self,
        first: NDArray[np.int64],
        members: NDArray[np.int32],
        there: NDArray[np.bool_],
        *,
        seed: int,
        rng: Generator,
    ) -> None:
        super().__init__(first, members, seed=seed)
        self._rng = rng
        self.there = np.zeros(len(members), np.bool_)
        self.world.size[:] = 0
        for topic in range(self.topics):
            slots = first[topic] + np.flatnonzero(there[members[first[topic] : first[topic + 1]]])
            self.there[slots] = True
            for slot in slots.tolist() if len(slots) > 1 else ():
                others = slots[slots != slot]
                self.set_view(slot, rng.choice(others, view_size(len(slots)), replace=False).tolist())

    def join(self, newcomers: NDArray[np.bool_]) -> None:
        """These processes subscribe to all their topics, one after another: each takes over a link of each of k random
        members, who point to it instead, and one member that has room adds it."""
        for slot in np.flatnonzero(newcomers[self.world.process] & ~self.there).tolist():
            topic = int(np.searchsorted(self.world.first, slot, "right")) - 1
            low, high = self.world.first[topic : topic + 2]
            members = low + np.flatnonzero(self.there[low:high])
            self.there[slot] = True
            if len(members):
                self._enter(slot, members, int(self.world.room[topic]))

    def _enter(self, slot: int, members: NDArray[np.int64], room: int) -> None:
        view: list[int] = []
        for member in self._rng.choice(members, view_size(len(members) + 1), replace=False).tolist():
            links = self.slots_of(member)
            given = member
            if links:
                place = int(self._rng.integers(len(links)))
                given, links[place] = links[place], slot
            else:
                links = [slot]
            self.set_view(member, links)
            for one in (given, member):
                if one not in view:
                    view.append(one)
                    break
        self.set_view(slot, view)
        for member in self._rng.permutation(members).tolist():
            links = self.slots_of(member)
            if len(links) < room and slot not in links:
                self.set_view(member, [*links, slot])
                return
