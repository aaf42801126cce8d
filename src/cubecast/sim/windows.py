"""The fast way through a run: a window of time at once, node by node.

A packet takes at least `lookahead` from the event that sends it to its arrival, so what happens within a window shorter
than that cannot influence another node within the same window (the conservative windows of parallel simulation). Every
node may therefore go through its share of a window on its own, while its state is in the processor's cache; in order of
time across all nodes, each event would find the state of its node displaced by a thousand others.

The order of events is the same as `World` would keep, (time, order of scheduling), and so is everything counted and
logged: arrivals of a window are sorted by time, stably, before they are dealt to the nodes, and what the nodes sent is
put back into the order of the events that sent it. Events under way are columns of numbers, not objects.
"""

from array import array
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.contract import Deliver, Effects, Machine, Send
from cubecast.wire.codec import encode

if TYPE_CHECKING:
    from cubecast.sim.world import World

REQUEST = -1  # in place of a sender: the arguments of the application's publication, not a packet
_SHARE = 0.99  # of the lookahead, as the width of a window: rounding of times never matters


class Arrivals(NamedTuple):
    """What arrives in one window, as columns."""

    time: NDArray[np.float64]
    node: NDArray[np.uint16]
    sender: NDArray[np.int32]
    packet: NDArray[np.object_]

    def taken(self, order: Any) -> "Arrivals":
        return Arrivals(*(column[order] for column in self))


class Calendar:
    """Future arrivals by window; those of a window in several parts, in the order of scheduling."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._parts: dict[int, list[Arrivals]] = {}
        self._windows: list[int] = []

    def add(self, arrivals: Arrivals) -> None:
        """Arrivals in ascending order of time, all of them after the window that was opened last."""
        windows = (arrivals.time / self._width).astype(np.int64)
        starts = np.flatnonzero(np.diff(windows, prepend=-1))
        for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(windows)], strict=True):
            window = int(windows[first])
            if window not in self._parts:
                self._parts[window] = []
                heappush(self._windows, window)
            self._parts[window].append(arrivals.taken(slice(first, last)))

    def open(self) -> Arrivals | None:
        """The arrivals of the next window that has any, in order."""
        if not self._windows:
            return None
        parts = self._parts.pop(heappop(self._windows))
        arrivals = Arrivals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return arrivals.taken(np.argsort(arrivals.time, kind="stable"))


class Sent:
    """What nodes send in a window: a row per packet, and for each row its copies in two more columns."""

    def __init__(self) -> None:
        self.cause = array("i")  # the place in the window of the event that sent it
        self.copies = array("i")
        self.packet: list[Any] = []
        self.departure = array("d")
        self.destination = array("H")

    def arrivals(self, nodes: NDArray[np.uint16], propagation: float) -> Arrivals | None:
        """In order of time, then of their causes. `nodes`: where the events of this window happened."""
        if not self.packet:
            return None
        copies = np.frombuffer(self.copies, np.int32)
        rows = np.repeat(np.arange(len(copies)), copies)
        cause = np.frombuffer(self.cause, np.int32)[rows]
        time = np.frombuffer(self.departure) + propagation
        packet = np.empty(len(copies), object)
        packet[:] = self.packet
        order = np.lexsort((cause, time))
        destination = np.frombuffer(self.destination, np.uint16)
        return Arrivals(time[order], destination[order], nodes[cause[order]].astype(np.int32), packet[rows[order]])


class Windows:
    """Drives a world of which `suits` says that it may."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._calendar = Calendar(world.network.lookahead * _SHARE)
        self._sent = Sent()
        self._delivered_at = array("i")  # places in the window
        self._delivered = array("d")  # the publishers

    def run(self, initial: Arrivals) -> None:
        self._calendar.add(initial)
        while (arrivals := self._calendar.open()) is not None:
            self._process(arrivals)
            self._world.now = float(arrivals.time[-1])

    def _process(self, arrivals: Arrivals) -> None:
        self._sent = Sent()
        self._delivered_at, self._delivered = array("i"), array("d")
        order = np.argsort(arrivals.node, kind="stable")
        by_node = arrivals.taken(order)
        starts = np.flatnonzero(np.diff(by_node.node, prepend=by_node.node[:1] + 1))
        nodes = by_node.node[starts].tolist()
        places, times, senders, packets = (
            column.tolist() for column in (order, by_node.time, by_node.sender, by_node.packet)
        )
        ends = [*starts[1:].tolist(), len(order)]
        for node, first, last in zip(nodes, starts.tolist(), ends, strict=True):
            share = slice(first, last)
            self._turn(node, places[share], times[share], senders[share], packets[share])
        self._log(arrivals)
        network = self._world.network
        sent = self._sent.arrivals(arrivals.node, network.propagation.value)
        if sent is not None:
            self._calendar.add(sent)

    def _turn(self, node: NodeId, places: list[int], times: list[float], senders: list[int], packets: list[Any]) -> None:
        world, network, sent = self._world, self._world.network, self._sent
        machine, statistics = world.machines[node], world.statistics
        on_packet, subscribed, received = machine.on_packet, world.subscriptions[node], statistics.reception.append
        processing, transmission = network.processing, network.transmission
        depart, direct, went = sent.departure.append, sent.destination.append, sent.packet.append
        cause, copy = sent.cause.append, sent.copies.append
        delivered_at, delivered = self._delivered_at.append, self._delivered.append
        free, waited = network.free_at[node], network.waited[node]
        volume = messages = queued = deliveries = 0
        for place, time, sender, packet in zip(places, times, senders, packets):
            arrived = None
            if sender == REQUEST:
                effects = self._request(machine, time, packet)
            else:
                effects = on_packet(time, sender, packet)
                if packet.publication:
                    if packet.bundle or packet.topic not in subscribed or packet.message.source == node:
                        world.now = time
                        world._count_unusual(node, packet)
                    else:
                        arrived = packet.message
                        received(time - packet.born)
            for effect in effects:
                if type(effect) is Send:
                    peers, packet_ = effect.peers, effect.packet
                    if packet_.frame is None:
                        packet_.frame = encode(packet_)
                        packet_.born = time
                    ready = time + processing
                    if free < ready:
                        free = ready
                    count = len(peers)
                    if count == 1:
                        waited += free - ready
                        free += transmission
                        depart(free)
                        direct(peers[0])
                    else:
                        w = 0.0
                        for peer in peers:
                            w += free - ready
                            free += transmission
                            depart(free)
                            direct(peer)
                        waited += w
                    cause(place)
                    copy(count)
                    went(packet_)
                    queued += count
                    volume += len(packet_.frame) * count
                    if packet_.publication:
                        messages += len(packet_.payloads) * count
                elif type(effect) is not Deliver:
                    world.now = time
                    world._apply_rare(node, effect)
                else:
                    delivered_at(place)
                    delivered(effect.message.source)
                    deliveries += len(effect.payloads)
                    if effect.message is arrived:
                        arrived = None
                    elif world._held:
                        held = world._held.pop((node, effect.topic, effect.message), None)
                        if held is not None:
                            statistics.holding[held[0]] = time - held[1]
            if arrived is not None:
                world._held.setdefault((node, packet.topic, arrived), (len(statistics.reception) - 1, time))
        network.free_at[node], network.waited[node] = free, waited
        network.queued[node] += queued
        network.bytes += volume
        network.messages += messages
        statistics.deliveries += deliveries

    def _request(self, machine: Machine, time: float, arguments: Any) -> Effects:
        try:
            return machine.publish(time, *arguments)
        except LocalProtocolError:
            self._world.statistics.refused += 1
            return []

    def _log(self, arrivals: Arrivals) -> None:
        """What `World` appends event by event: time and node of a packet, then the publishers of what it released."""
        where = np.frombuffer(self._delivered_at, np.int32) if self._delivered_at else np.empty(0, np.int32)
        packets = arrivals.sender != REQUEST
        self._world.events += int(packets.sum())
        entries = 2 * packets + np.bincount(where, minlength=len(packets))
        ends = np.cumsum(entries)
        begins = ends - entries
        log = np.empty(ends[-1])
        begun = begins[packets]
        log[begun] = arrivals.time[packets]
        log[begun + 1] = arrivals.node[packets]
        mask = np.ones(len(log), bool)
        mask[begun] = mask[begun + 1] = False
        order = np.argsort(where, kind="stable")
        log[mask] = (np.frombuffer(self._delivered) if self._delivered else np.empty(0))[order]
        self._world.statistics.absorb(log)
