"""Packets under way as columns of numbers: what `windows.py` keeps instead of an object per event.

Follows decision 0028.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cubecast.protocol.contract import messages_in
from cubecast.sim.network import Network

Integers: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.float64]

REQUEST = -1  # in place of a sender: the application publishes, and the packet are the arguments
NO_TOPIC = -1  # of what carries no publication
SEVERAL = 0  # in place of the message of what does not carry exactly one


def integers(values: Iterable[int], size: int) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64, size)


def stable(keys: Integers) -> Integers:
    """What argsort(kind="stable") gives; with unequal keys, numpy's vectorised sort does it in a third of the time."""
    return np.argsort(keys.astype(np.int64) * len(keys) + np.arange(len(keys)))


def by_time(times: Floats) -> Integers:
    """The same for floats: sort, then put those with equal times back into order."""
    order = np.argsort(times)
    changes = np.diff(times[order], prepend=-1.0) > 0
    return order[np.argsort(np.cumsum(changes) * len(order) + order)]


class WindowTopics(dict[str, int]):
    """Topics by number, in order of appearance."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class Freight(NamedTuple):
    """Packets, each once, and what is asked about them at every arrival."""

    packet: NDArray[np.object_]
    bytes: NDArray[np.int64]
    payloads: NDArray[np.int64]
    topic: NDArray[np.int64]
    source: NDArray[np.int64]
    message: NDArray[np.int64]
    """The identity of the object that names the publication: the same at every hop, and in its delivery."""
    born: Floats


_TYPES = (object, *[np.int64] * 5, np.float64)


def _row(packet: Any, topics: WindowTopics) -> tuple[Any, ...]:
    if isinstance(packet, tuple):
        return packet, 0, 0, NO_TOPIC, 0, SEVERAL, 0.0  # the arguments of a request
    if not packet.publication:
        return packet, len(packet.frame), 0, NO_TOPIC, 0, SEVERAL, 0.0
    size = len(packet.frame)
    if packet.bundle:
        name, first, *_ = packet.carried()[0]
        return packet, size, messages_in(packet), topics[name], first.source, SEVERAL, packet.born
    first = packet.message
    return packet, size, len(packet.payloads), topics[packet.topic], first.source, id(first), packet.born


def distinct(packets: list[Any]) -> tuple[Integers, Integers]:
    """Where each of the different packets appears first, and which of these each is: nodes send on what they got."""
    identities, rows = np.unique(integers(map(id, packets), len(packets)), return_inverse=True)
    firsts = np.empty(len(identities), np.int64)
    firsts[rows[::-1]] = np.arange(len(packets))[::-1]
    return firsts, rows


def load(packets: list[Any], topics: WindowTopics) -> Freight:
    columns = zip(*(_row(packet, topics) for packet in packets), strict=True)
    return Freight(*(np.fromiter(column, kind, len(packets)) for column, kind in zip(columns, _TYPES, strict=True)))


class Arrivals(NamedTuple):
    """What arrives where and when."""

    time: Floats
    node: NDArray[np.uint16]
    sender: NDArray[np.int32]
    row: Integers
    """Of the freight."""

    def taken(self, order: Any) -> "Arrivals":
        return Arrivals(*(column[order] for column in self))


class Window(NamedTuple):
    """The events of a window, node after node; an event goes by its number in this order."""

    arrivals: Arrivals
    freight: Freight
    place: Integers
    """Of each event in the order of time."""


class WindowCalendar:
    """Future arrivals by window; those of a window in several parts, in the order of scheduling."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._parts: dict[int, list[tuple[Arrivals, Freight]]] = {}
        self._windows: list[int] = []

    def add(self, arrivals: Arrivals, freight: Freight) -> None:
        """All of them come after the window that was opened last."""
        windows = (arrivals.time / self._width).astype(np.int64)
        for window in np.unique(windows).tolist():
            if window not in self._parts:
                self._parts[window] = []
                heappush(self._windows, window)
            self._parts[window].append((arrivals.taken(np.flatnonzero(windows == window)), freight))

    def open(self) -> tuple[Arrivals, Freight] | None:
        """The arrivals of the next window that has any, by time."""
        if not self._windows:
            return None
        parts, rows = [], 0
        for part, freight in self._parts[self._windows[0]]:
            parts.append(part._replace(row=part.row + rows))
            rows += len(freight.packet)
        freights = [freight for _, freight in self._parts.pop(heappop(self._windows))]
        arrivals = Arrivals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        freight = Freight(*(np.concatenate(columns) for columns in zip(*freights, strict=True)))
        return arrivals.taken(by_time(arrivals.time)), freight


# The output queues of all nodes at once, for `windows.py`: the same sums as `Network.carry`, in the same order.
#
# When a packet leaves depends on the one before it, and rounding on the order of additions, so a queue can only be
# gone through packet by packet. But the queues of different nodes have nothing to do with each other: the first
# packets of all of them are one operation on columns, then the second ones, and so on.
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
