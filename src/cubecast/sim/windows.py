"""The fast way through a run: a window of time at once, node by node.

A packet takes at least `lookahead` from the event that sends it to its arrival, so what happens within a window shorter
than that cannot influence another node within the same window (the conservative windows of parallel simulation). Every
node may therefore go through its share of a window on its own, while its state is in the processor's cache; in order of
time across all nodes, each event would find the state of its node displaced by those of a thousand others.

Nobody can tell the difference: arrivals are sorted by time, stably, before they are dealt to the nodes, and what the
nodes sent is put back into the order of the events that sent it, so events keep the order `World` gives them, (time,
order of scheduling), and the digest of the run is the same. Events under way are columns of numbers, not objects.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.contract import Deliver, Effects, Machine, Send
from cubecast.protocol.vcube.fault_free import FaultFree

if TYPE_CHECKING:
    from cubecast.sim.world import World

REQUEST = -1  # in place of a sender: the application publishes, and what follows are the arguments
_SHARE = 0.99  # of the lookahead is the width of a window, so that the rounding of times cannot matter

Integers: TypeAlias = NDArray[np.integer[Any]]


class Arrivals(NamedTuple):
    """What arrives where and when, as columns, in the order of scheduling."""

    time: NDArray[np.float64]
    node: NDArray[np.uint16]
    sender: NDArray[np.int32]
    packet: NDArray[np.object_]

    def taken(self, order: Any) -> "Arrivals":
        return Arrivals(*(column[order] for column in self))


def _stable(keys: Integers) -> Integers:
    """What argsort(kind="stable") gives; with unequal keys, numpy's vectorised sort does it in a third of the time."""
    return np.argsort(keys.astype(np.int64) * len(keys) + np.arange(len(keys)))


def _by_time(times: NDArray[np.float64]) -> Integers:
    """The same for floats: sort, then put those with equal times back into order."""
    order = np.argsort(times)
    changes = np.diff(times[order], prepend=-1.0) > 0
    return order[np.argsort(np.cumsum(changes) * len(order) + order)]


class Calendar:
    """Future arrivals by window; those of a window in several parts, in the order of scheduling."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._parts: dict[int, list[Arrivals]] = {}
        self._windows: list[int] = []

    def add(self, arrivals: Arrivals) -> None:
        """All of them come after the window that was opened last."""
        windows = (arrivals.time / self._width).astype(np.int64)
        for window in np.unique(windows).tolist():
            if window not in self._parts:
                self._parts[window] = []
                heappush(self._windows, window)
            self._parts[window].append(arrivals.taken(np.flatnonzero(windows == window)))

    def open(self) -> Arrivals | None:
        """The arrivals of the next window that has any, by time."""
        if not self._windows:
            return None
        parts = self._parts.pop(heappop(self._windows))
        arrivals = Arrivals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return arrivals.taken(_by_time(arrivals.time))


class Doings:
    """What nodes do in a window; an event's `place` is its number in the order of the window."""

    def __init__(self) -> None:
        self.sent_at: list[int] = []  # places
        self.packets: list[Any] = []
        self.peers: list[tuple[NodeId, ...]] = []
        self.departures: list[float] = []  # of one copy after the other
        self.delivered_at: list[int] = []
        self.deliveries: list[Deliver] = []
        self.latencies: list[float] = []  # of what was delivered as it arrived

    def arrivals(self, nodes: NDArray[np.uint16], propagation: float) -> Arrivals:
        """Where all this sending leads, in order of place. `nodes`: where the events of the window were."""
        copies = np.fromiter(map(len, self.peers), np.intp, len(self.peers))
        place = np.repeat(np.fromiter(self.sent_at, np.int32, len(copies)), copies)
        packets = np.repeat(np.fromiter(self.packets, object, len(copies)), copies)
        time = np.fromiter(self.departures, float, len(place)) + propagation
        destination = np.fromiter(chain.from_iterable(self.peers), np.uint16, len(place))
        return Arrivals(time, destination, nodes[place].astype(np.int32), packets).taken(_stable(place))

    def log(self, arrivals: Arrivals) -> NDArray[np.float64]:
        """What `World` notes event by event: time and node of a packet, then the publishers of what it released."""
        packets = arrivals.sender != REQUEST
        place = np.fromiter(self.delivered_at, np.intp, len(self.delivered_at))
        released = np.bincount(place, minlength=len(packets))
        ends = np.cumsum(2 * packets + released)
        times = (ends - released)[packets] - 2
        log = np.empty(ends[-1])
        log[times] = arrivals.time[packets]
        log[times + 1] = arrivals.node[packets]
        rest = np.ones(len(log), bool)
        rest[times] = rest[times + 1] = False
        publishers = np.fromiter((one.message.source for one in self.deliveries), float, len(place))
        log[rest] = publishers[_stable(place)]
        return log


class Windows:
    """Drives a world through all that is going to happen in it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._calendar = Calendar(world.network.lookahead * _SHARE)

    def run(self, initial: Arrivals) -> None:
        """`initial` in the order of time, then of scheduling."""
        self._calendar.add(initial)
        while (arrivals := self._calendar.open()) is not None:
            doings = self._deal(arrivals)
            self._count(arrivals, doings)
            if doings.packets:
                self._calendar.add(doings.arrivals(arrivals.node, self._world.network.constant))

    def _deal(self, arrivals: Arrivals) -> Doings:
        """To each node its share of the window."""
        doings = Doings()
        order = np.argsort(arrivals.node, kind="stable")
        shares = arrivals.taken(order)
        nodes, sizes = np.unique(shares.node, return_counts=True)
        columns = (order, shares.time, shares.sender, shares.packet)
        events = zip(*(column.tolist() for column in columns), strict=True)
        for node, size in zip(nodes.tolist(), sizes.tolist(), strict=True):
            self._turn(node, islice(events, size), doings)
        return doings

    def _turn(self, node: NodeId, share: Iterable[tuple[int, float, NodeId, Any]], doings: Doings) -> None:
        """A node's share of a window. The hot loop; what is rare is elsewhere, and so are the sums."""
        world, network, statistics = self._world, self._world.network, self._world.statistics
        machine, subscribed, held = world.machines[node], world.subscriptions[node], statistics.held
        sent_at, packets, peers, departures = doings.sent_at, doings.packets, doings.peers, doings.departures
        deliveries, delivered_at, latencies = doings.deliveries, doings.delivered_at, doings.latencies
        on_packet, processing, transmission = machine.on_packet, network.processing, network.transmission
        free, waited, before = network.free_at[node], network.waited[node], len(departures)
        for place, time, sender, packet in share:
            arrived = None
            if sender == REQUEST:
                effects = self._request(machine, time, packet)
            else:
                effects = on_packet(time, sender, packet)
                if packet.publication:
                    if packet.bundle or packet.topic not in subscribed:
                        statistics.count_unusual(node, packet, time, subscribed=packet.topic in subscribed)
                    else:
                        arrived = packet.message
            for effect in effects:
                if type(effect) is Send:
                    sent, copies, ready = effect.packet, len(effect.peers), time + processing
                    if sent.frame is None:
                        world.frame(sent, time)
                    sent_at.append(place)
                    packets.append(sent)
                    peers.append(effect.peers)
                    if free < ready:
                        free = ready
                    while copies:
                        waited += free - ready
                        free += transmission
                        departures.append(free)
                        copies -= 1
                elif type(effect) is Deliver:
                    deliveries.append(effect)
                    delivered_at.append(place)
                    if effect.message is arrived:
                        arrived = None
                        latencies.append(time - packet.born)
                    elif held:
                        statistics.release(node, effect.topic, effect.message, time)
                else:
                    world.now = time
                    world.interpret(node, effect)
            if arrived is not None:
                self._keep(node, packet, time)
        network.free_at[node], network.waited[node] = free, waited
        network.queued[node] += len(departures) - before

    def _keep(self, node: NodeId, packet: Any, time: float) -> None:
        """A publication was not delivered as it arrived."""
        statistics = self._world.statistics
        if packet.message.source == node:
            statistics.count_unusual(node, packet, time, subscribed=True)
        else:
            statistics.reception.append(time - packet.born)
            statistics.hold(node, packet.topic, packet.message, time)

    def _request(self, machine: Machine, time: float, arguments: Any) -> Effects:
        try:
            return machine.publish(time, *arguments)
        except LocalProtocolError:
            self._world.statistics.refused += 1
            return []

    def _count(self, arrivals: Arrivals, doings: Doings) -> None:
        world, statistics = self._world, self._world.statistics
        world.now = float(arrivals.time[-1])
        world.events += int(np.count_nonzero(arrivals.sender != REQUEST))
        world.network.count(doings.packets, map(len, doings.peers))
        statistics.reception.frombytes(np.fromiter(doings.latencies, float, len(doings.latencies)).tobytes())
        statistics.deliveries += sum(len(delivery.payloads) for delivery in doings.deliveries)
        statistics.absorb(doings.log(arrivals))


def _sets_timers(machine: Any) -> bool:
    return type(machine).on_timer is not FaultFree.on_timer


def outstanding(world: "World") -> Arrivals | None:
    """All that is going to happen, taken off the world's agenda; None if the world needs event after event.

    It does when somebody listens, when the network has moods, when a machine sets timers, which may ring at once, and
    when something else than publications is on the agenda.
    """
    scheduler, machines = world.network.scheduler, world.machines.values()
    if any(map(_sets_timers, machines)) or not world.silent or not world.network.lookahead:
        return None
    rows = list[tuple[float, NodeId, int, Any]]()
    for time, _, node, sender, packet in scheduler.outstanding():
        if node >= 0:
            rows.append((time, node, sender, packet))
        elif sender == world.publish:
            rows.append((time, packet[0], REQUEST, packet[1:]))
        else:
            return None
    if not rows:
        return None
    scheduler.clear()
    times, nodes, senders, packets = zip(*rows, strict=True)
    column = np.fromiter(packets, object, len(packets))
    return Arrivals(np.array(times), np.array(nodes, np.uint16), np.array(senders, np.int32), column)
