"""The output queues of all nodes at once, for `windows.py`: the same sums as `Network.carry`, in the same order.

When a packet leaves depends on the one before it, and rounding on the order of additions, so a queue can only be gone
through packet by packet. But the queues of different nodes have nothing to do with each other: the first packets of all
of them are one operation on columns, then the second ones, and so on.
"""

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.network import Network

Floats = NDArray[np.float64]

_FEW = 8  # queues that are quicker one by one


class OutputQueues:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._free_at = np.array(network.free_at)
        self._waited = np.array(network.waited)
        self._queued = np.array(network.queued)

    def depart(self, nodes: NDArray[np.uint16], handed_over: Floats) -> Floats:
        """When packets leave that were handed over then; those of a node are together and in order."""
        ready = handed_over + self._network.processing
        users, firsts, lengths = np.unique(nodes, return_index=True, return_counts=True)
        self._queued[users] += lengths
        longest = np.argsort(-lengths, kind="stable")
        users, firsts, lengths = users[longest], firsts[longest], lengths[longest]
        free, waited, left = self._free_at[users], self._waited[users], np.empty(len(ready))
        step, active = 0, len(users)
        while active > _FEW:
            rows = firsts[:active] + step
            wanted = ready[rows]
            start = np.maximum(free[:active], wanted)
            waited[:active] += start - wanted
            start += self._network.transmission
            left[rows] = free[:active] = start
            step += 1
            while active and lengths[active - 1] == step:
                active -= 1
        for queue in range(active):
            rest = slice(firsts[queue] + step, firsts[queue] + lengths[queue])
            left[rest], free[queue], waited[queue] = self._one(ready[rest].tolist(), free[queue], waited[queue])
        self._free_at[users], self._waited[users] = free, waited
        return left

    def _one(self, ready: list[float], free: float, waited: float) -> tuple[list[float], float, float]:
        transmission, left = self._network.transmission, []
        for wanted in ready:
            free = max(free, wanted)
            waited += free - wanted
            free += transmission
            left.append(free)
        return left, free, waited

    def close(self) -> None:
        """Leave the network's own figures as they would be."""
        self._network.free_at = self._free_at.tolist()
        self._network.waited = self._waited.tolist()
        self._network.queued = self._queued.tolist()
