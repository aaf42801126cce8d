"""What StaN's overlays are like: links per process, reachability, clustering, distances. Compiled."""

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled
from cubecast.sim.kernels.stan_kernel import NONE, World, draw, draw_key

START = 1 << 40
"""Number of a round that is none: the draws of the views a world begins with."""


@compiled
def draw_views(world: World, size: NDArray[np.int64], seed: int) -> None:
    """Every member begins with so many different others of its topic (Floyd's sampling)."""
    for topic in range(len(world.first) - 1):
        low, members = world.first[topic], world.first[topic + 1] - world.first[topic]
        for me in range(members):
            key, row = draw_key(seed, START, low + me), world.base[topic] + me * world.room[topic]
            for taken in range(size[topic]):
                last = members - 1 - size[topic] + taken
                other = int(draw(key, taken) * (last + 1))
                for j in range(taken):
                    if world.links[row + j] == low + other + (other >= me):
                        other = last
                world.links[row + taken] = low + other + (other >= me)
            world.size[low + me] = size[topic]


@compiled
def count_links(
    world: World,
    by_process: NDArray[np.int64],
    slots: NDArray[np.int64],
    seen: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Different neighbours of each process over all its views; `slots` are sorted by process, `seen` all -1."""
    for process in range(len(by_process) - 1):
        for i in range(by_process[process], by_process[process + 1]):
            slot = slots[i]
            topic = np.searchsorted(world.first, slot, "right") - 1
            row = world.base[topic] + (slot - world.first[topic]) * world.room[topic]
            for j in range(world.size[slot]):
                other = world.process[world.links[row + j]]
                if seen[other] != process:
                    seen[other] = process
                    out[process] += 1


@compiled
def reached(world: World, topic: int, start: int, forward: bool, mark: NDArray[np.bool_]) -> int:
    """How many members have a way from the start-th member (forward) or to it."""
    low, members, room = world.first[topic], world.first[topic + 1] - world.first[topic], world.room[topic]
    for me in range(members):
        mark[me] = me == start
    count, before = 1, 0
    while count > before:
        before = count
        for me in range(members):
            if mark[me] != forward:
                continue
            row = world.base[topic] + me * room
            for j in range(world.size[low + me]):
                count += _spread(mark, me, world.links[row + j] - low, forward)
            pin = world.pins[low + me]
            while pin != NONE:
                count += _spread(mark, me, pin - low, forward)
                pin = world.next_pin[pin]
    return count


@compiled
def _spread(mark: NDArray[np.bool_], me: int, other: int, forward: bool) -> int:
    """A link from one to the other."""
    if forward:
        if not mark[other]:
            mark[other] = True
            return 1
    elif mark[other] and not mark[me]:
        mark[me] = True
        return 1
    return 0


@compiled
def joined(world: World, topic: int, mark: NDArray[np.bool_]) -> int:
    """How many members hang together with the first, whatever the direction of links."""
    low, members, room = world.first[topic], world.first[topic + 1] - world.first[topic], world.room[topic]
    for me in range(members):
        mark[me] = me == 0
    count, before = 1, 0
    while count > before:
        before = count
        for me in range(members):
            row = world.base[topic] + me * room
            for j in range(world.size[low + me]):
                other = world.links[row + j] - low
                if mark[me] != mark[other]:
                    mark[me] = mark[other] = True
                    count += 1
    return count


@compiled
def distances(
    world: World, topic: int, start: int, distance: NDArray[np.int32], queue: NDArray[np.int32], sums: NDArray[np.int64]
) -> None:
    """Adds to `sums`: lengths of the shortest ways from this member, their number; and their maximum."""
    low, members, room = world.first[topic], world.first[topic + 1] - world.first[topic], world.room[topic]
    for me in range(members):
        distance[me] = -1
    distance[start] = 0
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        me = queue[head]
        head += 1
        row = world.base[topic] + me * room
        for j in range(world.size[low + me]):
            tail = _step(distance, queue, sums, me, world.links[row + j] - low, tail)
        pin = world.pins[low + me]
        while pin != NONE:
            tail = _step(distance, queue, sums, me, pin - low, tail)
            pin = world.next_pin[pin]


@compiled
def _step(
    distance: NDArray[np.int32], queue: NDArray[np.int32], sums: NDArray[np.int64], me: int, other: int, tail: int
) -> int:
    if distance[other] >= 0:
        return tail
    distance[other] = distance[me] + 1
    queue[tail] = other
    sums[0] += distance[other]
    sums[1] += 1
    sums[2] = max(sums[2], distance[other])
    return tail + 1


@compiled
def clustering(world: World, topic: int, linked: NDArray[np.bool_]) -> float:
    """Mean over members of the share of pairs of their neighbours, links taken both ways, that are linked."""
    low, members, room = world.first[topic], world.first[topic + 1] - world.first[topic], world.room[topic]
    for me in range(members):
        for other in range(members):
            linked[me, other] = False
    for me in range(members):
        row = world.base[topic] + me * room
        for j in range(world.size[low + me]):
            other = world.links[row + j] - low
            linked[me, other] = linked[other, me] = True
    total = 0.0
    for me in range(members):
        degree, closed = 0, 0
        for one in range(members):
            if linked[me, one]:
                degree += 1
                for other in range(one):
                    if linked[me, other] and linked[one, other]:
                        closed += 1
        if degree > 1:
            total += 2.0 * closed / (degree * (degree - 1))
    return float(total / members)
