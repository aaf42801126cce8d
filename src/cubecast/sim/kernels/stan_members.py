"""StaN's members come and go, compiled: mirrors joining and forgetting of `protocol.epidemic.stan`; equal draws give
equal views.

A newcomer takes over one link of each of k random members, who point to it instead, and one member adds it. Who is gone
leaves every view, and the views get smaller. A slot whose view is empty after a round enters anew.
"""

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled
from cubecast.sim.kernels.stan_kernel import NONE, World, draw, draw_key
from cubecast.sim.kernels.stan_metrics import START

Mask = NDArray[np.bool_]

ENTERING = 1 << 41
"""Added to the number of a round: the draws of those who enter after it."""
PICK, PLACES = 100, 101
"""Draws of a newcomer: from 0 on the members that give up a link, then who adds it, then which link each gives."""


@compiled
def draw_views_of(world: World, there: Mask, wanted: NDArray[np.int64], found: NDArray[np.int64], seed: int) -> None:
    """Those who are there from the start begin with random others of them; `wanted` links by the number of members."""
    for topic in range(len(world.first) - 1):
        members = _members(world, there, topic, -1, found)
        for place in range(members):
            slot = found[place]
            key, row = draw_key(seed, START, slot), _row(world, topic, slot)
            for taken in range(wanted[members]):
                last = members - 1 - wanted[members] + taken
                other = int(draw(key, taken) * (last + 1))
                for j in range(taken):
                    if world.links[row + j] == found[other + (other >= place)]:
                        other = last
                world.links[row + taken] = found[other + (other >= place)]
            world.size[slot] = wanted[members]


@compiled
def forget(world: World, there: Mask) -> None:
    """Slots that are not there leave the views of others, and lose their own."""
    for topic in range(len(world.first) - 1):
        for slot in range(world.first[topic], world.first[topic + 1]):
            row, kept = _row(world, topic, slot), 0
            for j in range(world.size[slot] if there[slot] else 0):
                other = world.links[row + j]
                if there[other]:
                    world.links[row + kept] = other
                    kept += 1
            world.size[slot] = kept
            keeper = world.pinned_at[slot]
            if keeper != NONE and not (there[slot] and there[keeper]):
                world.pinned_at[slot] = NONE


@compiled
def enter(
    world: World,
    there: Mask,
    topic: int,
    slot: int,
    wanted: NDArray[np.int64],
    found: NDArray[np.int64],
    seed: int,
    number: int,
) -> None:
    """One slot, whose view is empty, becomes a member or does so again."""
    members = _members(world, there, topic, slot, found)
    there[slot] = True
    key, row = draw_key(seed, ENTERING + number, slot), _row(world, topic, slot)
    most = wanted[members + 1]
    end = len(found) - 1  # from there backwards: those that are chosen
    for taken in range(most):  # Floyd's sampling
        last = members - most + taken
        place = int(draw(key, taken) * (last + 1))
        for before in range(taken):
            if found[end - before] == found[place]:
                place = last
        found[end - taken] = found[place]
    for taken in range(most):
        member = found[end - taken]
        given = _give(world, topic, member, slot, draw(key, PLACES + taken))
        if not _has(world, row, world.size[slot], given):
            _append(world, topic, slot, given)
        elif not _has(world, row, world.size[slot], member):
            _append(world, topic, slot, member)
    if members:
        member = found[int(draw(key, PICK) * members)]
        if not _has(world, _row(world, topic, member), world.size[member], slot):
            _append(world, topic, member, slot)


@compiled
def enter_all(
    world: World,
    there: Mask,
    coming: Mask,
    wanted: NDArray[np.int64],
    found: NDArray[np.int64],
    seed: int,
    number: int,
) -> None:
    """Those that come, one after another."""
    for topic in range(len(world.first) - 1):
        for slot in range(world.first[topic], world.first[topic + 1]):
            if coming[slot]:
                enter(world, there, topic, slot, wanted, found, seed, number)


@compiled
def _members(world: World, there: Mask, topic: int, but: int, found: NDArray[np.int64]) -> int:
    count = 0
    for slot in range(world.first[topic], world.first[topic + 1]):
        if there[slot] and slot != but:
            found[count] = slot
            count += 1
    return count


@compiled
def _row(world: World, topic: int, slot: int) -> int:
    return int(world.base[topic] + (slot - world.first[topic]) * world.room[topic])


@compiled
def _give(world: World, topic: int, member: int, slot: int, drawn: float) -> int:
    """The member points to the slot from now on, instead of the one that is returned; where it had none, itself is."""
    row, size = _row(world, topic, member), world.size[member]
    if _has(world, row, size, slot):
        return member
    if size == 0:
        _append(world, topic, member, slot)
        return member
    place = row + int(drawn * size)
    given = int(world.links[place])
    world.links[place] = slot
    return given


@compiled
def _has(world: World, row: int, size: int, slot: int) -> bool:
    place = 0
    while place < size and world.links[row + place] != slot:
        place += 1
    return place < size


@compiled
def _append(world: World, topic: int, slot: int, other: int) -> None:
    """Where the view has room; a machine's always has."""
    if world.size[slot] < world.room[topic]:
        world.links[_row(world, topic, slot) + world.size[slot]] = other
        world.size[slot] += 1
