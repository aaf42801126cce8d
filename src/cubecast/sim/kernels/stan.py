"""StaN at the scale of the thesis and beyond: overlays of a universe, their rounds, and what they are like."""

from functools import cached_property
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.sim.kernels import stan_kernel as kernel
from cubecast.sim.kernels import stan_members as members_kernel
from cubecast.sim.kernels import stan_metrics as metrics
from cubecast.sim.kernels.stan_kernel import NONE, Rules, World

CONNECTED = 4.6
"""-ln(-ln 0.99): an overlay of random views of ln m + 4.6 is connected with a probability of 0.99."""
MOST_SLOTS = NONE


def view_size(members: int) -> int:
    return min(members - 1, ceil(log(members) + CONNECTED))


def view_sizes(members: NDArray[np.int64]) -> NDArray[np.int64]:
    different, place = np.unique(members, return_inverse=True)
    sizes: NDArray[np.int64] = np.array([view_size(int(one)) for one in different], np.int64)[place]
    return sizes


class Overlays:
    """One overlay per topic. `first` and `members` as in a universe: members ascend within their topic."""

    def __init__(
        self,
        first: NDArray[np.int64],
        members: NDArray[np.int32],
        *,
        seed: int,
        ttl: int = 4,
        repair: bool = True,
        spare: int = 0,
        view: int | None = None,
        offset: int = 0,
    ) -> None:
        """`spare`: places a view has beyond its links, where members come and go; `offset`: see `Rules`.

        `view`: links in every topic, instead of as many as connect it.
        """
        sizes = np.diff(first)
        if not len(sizes) or sizes.min() < 2:
            raise BadInput("an overlay has two members or more; leave smaller topics out of the universe")
        if not 0 <= ttl <= kernel.MOST_TTL:
            raise BadInput(f"a walk makes 0 to {kernel.MOST_TTL} hops after the first, not {ttl}")
        if len(members) >= MOST_SLOTS:
            raise BadInput(f"{len(members)} subscriptions are more than one part can have; divide the topics")
        self.seed, self.ttl, self.repair, self.offset = seed, ttl, repair, offset
        if view is not None and not 1 <= view < sizes.min():
            raise BadInput(f"the smallest topic has {sizes.min()} members: a view of {view} cannot be met")
        self.rounds = 0
        self._k = view_sizes(sizes) if view is None else np.full(len(sizes), view, np.int64)
        self.world = _make_world(first, members, self._k + spare)
        metrics.draw_views(self.world, self._k, seed, offset)

    @property
    def topics(self) -> int:
        return len(self.world.room)

    def round(self, loss: float = 0.0) -> None:
        self.rounds += 1
        rules = Rules(self.ttl, loss, self.repair, self.seed, self.offset)
        kernel.run_round(rules, self.world, self.rounds, 0, self.topics)

    def mend(self) -> None:
        """Pins as the views of now require them; every round begins with it."""
        kernel.repair(self.world, 0, self.topics)

    def view(self, slot: int) -> list[int]:
        """Processes, in the order of the view."""
        return [int(self.world.process[one]) for one in self.slots_of(slot)]

    def slots_of(self, slot: int) -> list[int]:
        """The view, as slots."""
        row = self._row(slot)
        found: list[int] = self.world.links[row : row + int(self.world.size[slot])].tolist()
        return found

    def neighbours(self, slots: NDArray[np.int64]) -> NDArray[np.int32]:
        """Processes in the views of these slots, one view after the other."""
        topic = np.searchsorted(self.world.first, slots, "right") - 1
        row = self.world.base[topic] + (slots - self.world.first[topic]) * self.world.room[topic]
        size = self.world.size[slots].astype(np.int64)
        place = np.repeat(row - (size.cumsum() - size), size) + np.arange(int(size.sum()))
        found: NDArray[np.int32] = self.world.process[self.world.links[place]]
        return found

    def set_view(self, slot: int, view: list[int]) -> None:
        """Slots of other members, at most as many as there is room for."""
        row = self._row(slot)
        self.world.links[row : row + len(view)] = view
        self.world.size[slot] = len(view)

    def _row(self, slot: int) -> int:
        topic = int(np.searchsorted(self.world.first, slot, "right")) - 1
        return int(self.world.base[topic] + (slot - self.world.first[topic]) * self.world.room[topic])

    @cached_property
    def _by_process(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        slots = np.argsort(self.world.process, kind="stable")
        ends = np.arange(int(self.world.process.max()) + 2)
        return np.searchsorted(self.world.process[slots], ends), slots

    def subscriptions(self) -> NDArray[np.int64]:
        """Of each process."""
        return np.diff(self._by_process[0])

    def logical_links(self) -> NDArray[np.int64]:
        """Of each process: the sum of its views (LVS)."""
        return np.bincount(self.world.process, self.world.size).astype(np.int64)

    def physical_links(self) -> NDArray[np.int64]:
        """Of each process: different neighbours over all its views (PVS)."""
        starts, slots = self._by_process
        out = np.zeros(len(starts) - 1, np.int64)
        metrics.count_links(self.world, starts, slots, np.full(len(out), -1, np.int32), out)
        return out

    def unpointed(self) -> int:
        """Slots that are in nobody's view."""
        for topic in range(self.topics):
            low, high = self.world.first[topic : topic + 2]
            kernel.count_incoming(self.world, low, high, self.world.room[topic], self.world.base[topic])
        return int((self.world.incoming == 0).sum())

    def pinned(self) -> int:
        return int((self.world.pinned_at != NONE).sum())

    def reachable(self) -> float:
        """Share of the overlays in which every member has a way to every other, pins included."""
        return float(self.measures(starts=1)[:, 4].mean())

    def weakly_connected(self) -> float:
        """Share of the overlays that hang together where a link may be used both ways; pins do not count."""
        return float(self.measures(starts=1)[:, 3].mean())

    def fitness(self) -> dict[str, float]:
        """Clustering coefficient, mean path length and diameter, each the mean over overlays."""
        means = self.measures().mean(axis=0).tolist()
        return dict(zip(metrics.MEASURES[:3], means, strict=False))

    def measures(self, topics: NDArray[np.int64] | None = None, starts: int = kernel.NONE) -> NDArray[np.float64]:
        """A row of `MEASURES` per topic (all, unless told which); paths begin at so many of its members."""
        chosen = np.arange(self.topics) if topics is None else topics
        out = np.zeros((len(chosen), len(metrics.MEASURES)))
        metrics.measure(self.world, chosen, starts, metrics.make_scratch(self.world), out)
        return out


def _make_world(first: NDArray[np.int64], members: NDArray[np.int32], room: NDArray[np.int64]) -> World:
    sizes, slots = np.diff(first), len(members)
    base = np.zeros(len(room) + 1, np.int64)
    base[1:] = np.cumsum(sizes * room)
    return World(
        first=np.asarray(first, np.int64),
        process=np.asarray(members, np.int32),
        room=room,
        base=base,
        links=np.zeros(int(base[-1]), np.uint32),
        size=np.zeros(slots, np.int32),
        pinned_at=np.full(slots, NONE, np.uint32),
        pins=np.full(slots, NONE, np.uint32),
        next_pin=np.full(slots, NONE, np.uint32),
        incoming=np.zeros(slots, np.int32),
        spare_view=np.zeros(int((sizes * room).max()), np.uint32),
        spare_size=np.zeros(int(sizes.max()), np.int32),
        kept=np.zeros(int(room.max()) + 1, np.uint64),
        path=np.zeros(kernel.MOST_TTL + 2, np.uint32),
    )


# Overlays whose members come and go.

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
