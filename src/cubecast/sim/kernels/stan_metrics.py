"""What StaN's overlays are like: links per process, reachability, clustering, distances. Compiled."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled
from cubecast.sim.kernels.stan_kernel import NONE, World, draw, draw_key

START = 1 << 40
"""Number of a round that is none: the draws of the views a world begins with."""

MEASURES = ("clustering", "path", "diameter", "weakly", "strongly")
"""The mean share of pairs of neighbours that are linked, links taken both ways; the mean length of shortest ways, and
the longest of them; whether the overlay hangs together where a link may be used both ways; and as links are."""


class Scratch(NamedTuple):
    """Room for one topic at a time."""

    mark: NDArray[np.bool_]
    distance: NDArray[np.int32]
    queue: NDArray[np.int32]
    stamp: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    others: NDArray[np.int32]
    sums: NDArray[np.int64]


def make_scratch(world: World) -> Scratch:
    members = np.diff(world.first)
    most, links = int(members.max()), int((members * world.room).max())
    return Scratch(
        mark=np.zeros(most, np.bool_),
        distance=np.zeros(most, np.int32),
        queue=np.zeros(most, np.int32),
        stamp=np.zeros(most, np.int32),
        begin=np.zeros(most, np.int64),
        end=np.zeros(most, np.int64),
        others=np.zeros(2 * links, np.int32),
        sums=np.zeros(3, np.int64),
    )


@compiled
def draw_views(world: World, size: NDArray[np.int64], seed: int, offset: int) -> None:
    """Every member begins with so many different others of its topic (Floyd's sampling)."""
    for topic in range(len(world.first) - 1):
        low, members = world.first[topic], world.first[topic + 1] - world.first[topic]
        for me in range(members):
            key, row = draw_key(seed, START, low + me + offset), world.base[topic] + me * world.room[topic]
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
def count_different(
    order: NDArray[np.int64],
    process: NDArray[np.int32],
    begin: NDArray[np.int64],
    size: NDArray[np.int32],
    links: NDArray[np.int32],
    seen: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Different neighbours of each process, in the order of processes, where views come from several parts.

    `order` sorts views by process; those of view i are `size[i]` of `links` from `begin[i]` on; `seen` is all -1.
    """
    place = -1
    for number in range(len(order)):
        view = order[number]
        if number == 0 or process[view] != process[order[number - 1]]:
            place += 1
        for j in range(begin[view], begin[view] + size[view]):
            if seen[links[j]] != place:
                seen[links[j]] = place
                out[place] += 1


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
def neighbours(world: World, topic: int, room: Scratch) -> None:
    """Of each member those it has links to or from, each once: `room.others` from `room.begin` to `room.end`."""
    low, members, width = world.first[topic], world.first[topic + 1] - world.first[topic], world.room[topic]
    for me in range(members):
        room.end[me] = world.size[low + me]
        room.stamp[me] = -1
    for me in range(members):
        row = world.base[topic] + me * width
        for j in range(world.size[low + me]):
            room.end[world.links[row + j] - low] += 1
    total = 0
    for me in range(members):
        room.begin[me] = total
        total += room.end[me]
        room.end[me] = room.begin[me]
    for me in range(members):
        row = world.base[topic] + me * width
        for j in range(world.size[low + me]):
            other = world.links[row + j] - low
            room.others[room.end[me]] = other
            room.end[me] += 1
            room.others[room.end[other]] = me
            room.end[other] += 1
    for me in range(members):
        kept = room.begin[me]
        for place in range(room.begin[me], room.end[me]):
            other = room.others[place]
            if room.stamp[other] != me:
                room.stamp[other] = me
                room.others[kept] = other
                kept += 1
        room.end[me] = kept


@compiled
def clustering(room: Scratch, members: int, starts: int) -> float:
    """Mean over as many members of the share of pairs of their neighbours that are linked."""
    total = 0.0
    for one in range(members):
        room.stamp[one] = -1
    for number in range(starts):
        me = number * members // starts
        for place in range(room.begin[me], room.end[me]):
            room.stamp[room.others[place]] = me
        closed = 0
        for place in range(room.begin[me], room.end[me]):
            one = room.others[place]
            for next_place in range(room.begin[one], room.end[one]):
                closed += room.stamp[room.others[next_place]] == me
        degree = room.end[me] - room.begin[me]
        if degree > 1:
            total += closed / (degree * (degree - 1))
    return float(total / starts)


@compiled
def measure(world: World, topics: NDArray[np.int64], most: int, room: Scratch, out: NDArray[np.float64]) -> None:
    """Of each of these topics what `MEASURES` names; paths and clustering from `most` members, evenly spread."""
    for number in range(len(topics)):
        topic = topics[number]
        members = world.first[topic + 1] - world.first[topic]
        starts = min(most, members)
        neighbours(world, topic, room)
        out[number, 0] = clustering(room, members, starts)
        for place in range(3):
            room.sums[place] = 0
        for start in range(starts):
            distances(world, topic, start * members // starts, room.distance, room.queue, room.sums)
        out[number, 1] = room.sums[0] / max(1, room.sums[1])
        out[number, 2] = room.sums[2]
        out[number, 3] = joined(world, topic, room.mark) == members
        there = reached(world, topic, 0, True, room.mark)
        out[number, 4] = there == members and reached(world, topic, 0, False, room.mark) == members
