"""StaN, compiled: mirrors `protocol.epidemic.stan` round by round; equal draws give equal views.

A slot is one (topic, process) pair, numbered topic by topic; views hold slot numbers, so that a hop of a walk is one
load. Walks of a round see the views its beginning found (the new ones are built beside them), so slots can be taken in
any order; and no walk leaves its topic, so topics can be computed apart. Every draw is a hash of seed, round, slot and
number of the draw.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled

Ints = NDArray[np.int64]
Slots = NDArray[np.uint32]

NONE = 0xFFFFFFFF
LEAST_VIEW = 5
MOST_TTL = 30
LOSSES = 64
"""Draws from this number on are those of lost messages."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


class World(NamedTuple):
    first: Ints
    """Of each topic, its first slot; and the number of slots."""
    process: NDArray[np.int32]
    """Of each slot."""
    room: Ints
    """Of each topic: places of a view."""
    base: Ints
    """Of each topic: where its views begin."""
    links: Slots
    """Views, one after another: slots of neighbours."""
    size: NDArray[np.int32]
    pinned_at: Slots
    """Of each slot: which one it asked to keep a link to it."""
    pins: Slots
    """Of each slot: the first it keeps a link to because it was asked to;"""
    next_pin: Slots
    """and the next one after that."""
    incoming: NDArray[np.int32]
    spare_view: Slots
    spare_size: NDArray[np.int32]
    """For the new views of one topic."""
    kept: NDArray[np.uint64]
    """Weights of a view in the making."""
    path: Slots


class Rules(NamedTuple):
    ttl: int
    loss: float
    repair: bool
    seed: int
    offset: int
    """Slots of the universe before these, where this is a part of it: what is drawn does not depend on the parts."""


@compiled
def mix(x: np.uint64) -> np.uint64:
    """The finalizer of splitmix64."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@compiled
def own_part(process: int) -> np.uint64:
    """The part of a weight that depends on who weighs."""
    return mix(np.uint64(process) + _GOLDEN)


@compiled
def weight(own: np.uint64, process: int) -> np.uint64:
    return mix(own + (np.uint64(process) + np.uint64(1)) * _GOLDEN)


@compiled
def draw_key(seed: int, number: int, slot: int) -> np.uint64:
    return mix(mix(np.uint64(seed) + np.uint64(number) * _GOLDEN) + np.uint64(slot) * _FIRST)


@compiled
def draw(key: np.uint64, number: int) -> float:
    return np.float64(mix(key + (np.uint64(number) + np.uint64(1)) * _GOLDEN) >> _11) * _UNIT


@compiled
def run_round(rules: Rules, world: World, number: int, first_topic: int, last_topic: int) -> None:
    for topic in range(first_topic, last_topic):
        low, high = world.first[topic], world.first[topic + 1]
        room, base = world.room[topic], world.base[topic]
        if rules.repair:
            _repair(world, low, high, room, base)
        for slot in range(low, high):
            _walk(rules, world, number, slot, low, room, base)
        for slot in range(low, high):
            world.size[slot] = world.spare_size[slot - low]
            for j in range(world.size[slot]):
                world.links[base + (slot - low) * room + j] = world.spare_view[(slot - low) * room + j]


@compiled
def repair(world: World, first_topic: int, last_topic: int) -> None:
    for topic in range(first_topic, last_topic):
        _repair(world, world.first[topic], world.first[topic + 1], world.room[topic], world.base[topic])


@compiled
def _repair(world: World, low: int, high: int, room: int, base: int) -> None:
    """Who is in at most one view asks its lightest neighbour to keep a link to it, until it is in more."""
    count_incoming(world, low, high, room, base)
    for slot in range(low, high):
        world.pins[slot] = NONE
        if world.incoming[slot] > 1 or world.size[slot] == 0:
            world.pinned_at[slot] = NONE
        elif world.pinned_at[slot] == NONE:
            world.pinned_at[slot] = _lightest(world, slot, low, room, base)
    for back in range(low, high):  # from the end, so that lists ascend
        slot = high - 1 - (back - low)
        keeper = world.pinned_at[slot]
        if keeper != NONE:
            world.next_pin[slot] = world.pins[keeper]
            world.pins[keeper] = slot


@compiled
def count_incoming(world: World, low: int, high: int, room: int, base: int) -> None:
    for slot in range(low, high):
        world.incoming[slot] = 0
    for slot in range(low, high):
        row = base + (slot - low) * room
        for j in range(world.size[slot]):
            world.incoming[world.links[row + j]] += 1


@compiled
def _lightest(world: World, slot: int, low: int, room: int, base: int) -> int:
    own, row = own_part(world.process[slot]), base + (slot - low) * room
    found = world.links[row]
    least = weight(own, world.process[found])
    for j in range(1, world.size[slot]):
        other = world.links[row + j]
        its = weight(own, world.process[other])
        if its < least:
            least, found = its, other
    return int(found)


@compiled
def _walk(rules: Rules, world: World, number: int, slot: int, low: int, room: int, base: int) -> None:
    """Rules 1 to 3 for one slot: its walk, and the view it makes of what the walk brings."""
    row, out, size = base + (slot - low) * room, (slot - low) * room, world.size[slot]
    visited = _wander(rules, world, number, slot, low, room, base) if size else -1
    if visited < 0:
        world.spare_size[slot - low] = size
        for j in range(size):
            world.spare_view[out + j] = world.links[row + j]
        return
    most = min(max(size, LEAST_VIEW), room)
    own, kept = own_part(world.process[slot]), 0
    for j in range(size):
        kept = _keep(world, own, world.links[row + j], out, kept, most)
    for step in range(visited):
        there = world.path[step]
        kept = _keep(world, own, there, out, kept, most)
        other = base + (there - low) * room
        for j in range(world.size[there]):
            if world.links[other + j] != slot:
                kept = _keep(world, own, world.links[other + j], out, kept, most)
        pin = world.pins[there]
        while pin != NONE:
            if pin != slot:
                kept = _keep(world, own, pin, out, kept, most)
            pin = world.next_pin[pin]
    world.spare_size[slot - low] = kept


@compiled
def _wander(rules: Rules, world: World, number: int, slot: int, low: int, room: int, base: int) -> int:
    """Slots visited, in `path`; -1 if a message was lost."""
    key = draw_key(rules.seed, number, slot + rules.offset)
    there = world.links[base + (slot - low) * room + int(draw(key, 0) * world.size[slot])]
    world.path[0] = there
    visited = 1
    if rules.loss > 0.0 and draw(key, LOSSES) < rules.loss:
        return -1
    while visited <= rules.ttl:
        there = _next(world, there, slot, draw(key, visited), low, room, base)
        if there == NONE:
            break
        if rules.loss > 0.0 and draw(key, LOSSES + visited) < rules.loss:
            return -1
        world.path[visited] = there
        visited += 1
    if rules.loss > 0.0 and draw(key, LOSSES + visited) < rules.loss:
        return -1
    return visited


@compiled
def _next(world: World, here: int, source: int, drawn: float, low: int, room: int, base: int) -> int:
    """A neighbour or pin of this slot; the one after it where that is the walk's source."""
    degree = world.size[here]
    pin = world.pins[here]
    while pin != NONE:
        degree += 1
        pin = world.next_pin[pin]
    if degree == 0:
        return NONE
    place = int(drawn * degree)
    found = _neighbour(world, here, place, low, room, base)
    if found == source:
        found = _neighbour(world, here, (place + 1) % degree, low, room, base)
    return NONE if found == source else found


@compiled
def _neighbour(world: World, here: int, place: int, low: int, room: int, base: int) -> int:
    if place < world.size[here]:
        return int(world.links[base + (here - low) * room + place])
    pin = world.pins[here]
    for _ in range(place - world.size[here]):
        pin = world.next_pin[pin]
    return int(pin)


@compiled
def _keep(world: World, own: np.uint64, slot: int, out: int, kept: int, most: int) -> int:
    """Sort it in if it is among the lightest; equal weights are the same process."""
    its = weight(own, world.process[slot])
    if kept == most and its >= world.kept[kept - 1]:
        return kept
    place = kept
    while place > 0 and world.kept[place - 1] > its:
        place -= 1
    if place > 0 and world.kept[place - 1] == its:
        return kept
    last = min(kept, most - 1)
    for j in range(last, place, -1):
        world.kept[j] = world.kept[j - 1]
        world.spare_view[out + j] = world.spare_view[out + j - 1]
    world.kept[place] = its
    world.spare_view[out + place] = slot
    return last + 1


# CrosspostFlood, compiled: a message of several topics, relayed by each process once to all neighbours it concerns.
#
# With one topic it is SimpleFlood. A process relays what it gets for the first time, to each neighbour (and pin) in the
# views of the message's topics it subscribes to, once, and not back.


class Flood(NamedTuple):
    """Room for floods over all processes; `slot` of each topic of the message and process, -1 where there is none."""

    slot: NDArray[np.int64]
    hop: NDArray[np.int32]
    sender: NDArray[np.int32]
    queue: NDArray[np.int32]
    stamp: NDArray[np.int32]
    sent: NDArray[np.int64]
    """By process, over all floods."""
    sums: NDArray[np.int64]
    """Deliveries, and their hops."""


def make_flood(processes: int, topics: int) -> Flood:
    return Flood(
        slot=np.full((topics, processes), -1, np.int64),
        hop=np.zeros(processes, np.int32),
        sender=np.zeros(processes, np.int32),
        queue=np.zeros(processes, np.int32),
        stamp=np.zeros(processes, np.int32),
        sent=np.zeros(processes, np.int64),
        sums=np.zeros(2, np.int64),
    )


@compiled
def flood(world: World, topics: NDArray[np.int64], source: int, state: Flood) -> None:
    _find_slots(world, topics, state)
    for process in range(len(state.hop)):
        state.hop[process] = -1
        state.stamp[process] = -1
    state.hop[source] = 0
    state.sender[source] = source
    state.queue[0] = source
    head, tail = 0, 1
    while head < tail:
        here = state.queue[head]
        head += 1
        for which in range(len(topics)):
            slot = state.slot[which, here]
            if slot < 0:
                continue
            state.sums[0] += 1
            state.sums[1] += state.hop[here]
            low, room = world.first[topics[which]], world.room[topics[which]]
            row = world.base[topics[which]] + (slot - low) * room
            for j in range(world.size[slot]):
                tail = _send(world.process[world.links[row + j]], here, state, tail)
            pin = world.pins[slot]
            while pin != NONE:
                tail = _send(world.process[pin], here, state, tail)
                pin = world.next_pin[pin]


@compiled
def _find_slots(world: World, topics: NDArray[np.int64], state: Flood) -> None:
    for which in range(len(topics)):
        for process in range(len(state.hop)):
            state.slot[which, process] = -1
        for slot in range(world.first[topics[which]], world.first[topics[which] + 1]):
            state.slot[which, world.process[slot]] = slot


@compiled
def _send(other: int, here: int, state: Flood, tail: int) -> int:
    """Once to each, and not back."""
    if state.stamp[other] == here or other == state.sender[here]:
        return tail
    state.stamp[other] = here
    state.sent[here] += 1
    if state.hop[other] < 0:
        state.hop[other] = state.hop[here] + 1
        state.sender[other] = here
        state.queue[tail] = other
        tail += 1
    return tail
