"""CrosspostFlood, compiled: a message of several topics, relayed by each process once to all neighbours it concerns.

With one topic it is SimpleFlood. A process relays what it gets for the first time, to each neighbour (and pin) in the
views of the message's topics it subscribes to, once, and not back.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled
from cubecast.sim.kernels.stan_kernel import NONE, World


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
