"""The fast way through a run: a window of time at once, node by node.

A packet takes at least `lookahead` from the event that sends it to its arrival, so what happens within a window shorter
than that cannot influence another node within the same window (the conservative windows of parallel simulation). Every
node may therefore go through its share of a window on its own, while its state is in the processor's cache; in order of
time across all nodes, each event would find the state of its node displaced by those of a thousand others.

Nobody can tell the difference: arrivals are sorted by time, stably, before they are dealt to the nodes, and what the
nodes sent is put back into the order of the events that sent it, so events keep the order `World` gives them, (time,
order of scheduling), and the digest of the run is the same. Events under way are columns of numbers, not objects.
Follows decision 0018.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.contract import Bulk, Machine, Outcomes, messages_in
from cubecast.protocol.inputs import Publish
from cubecast.sim.network import Network

if TYPE_CHECKING:
    from cubecast.sim.world import World


# Packets under way as columns of numbers, instead of an object per event. Follows decision 0028.

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


# The windows.

# What a window adds to the statistics of a run: the same as `World` counts event by event.


class WindowStatistics:
    def __init__(self, world: "World", topics: WindowTopics) -> None:
        self._world = world
        self._topics = topics
        self._members = np.zeros((0, 0), bool)  # by node and topic; nobody comes or goes while nobody watches

    def count(self, window: Window, outcomes: Outcomes) -> None:
        statistics, freight, deliveries = self._world.statistics, window.freight, outcomes.deliveries
        time, _, _, row = window.arrivals
        passed = integers(outcomes.passed, len(outcomes.passed))
        by = integers(outcomes.delivered_by, len(deliveries))
        statistics.deliveries += int(freight.payloads[row[passed]].sum())
        statistics.deliveries += sum(len(delivery.payloads) for delivery in deliveries)
        messages = [delivery.message for delivery in deliveries]
        usual = self._usual(window)
        own = usual[by] & (freight.message[row[by]] == integers(map(id, messages), len(by)))
        at_once = np.concatenate([passed[usual[passed]], by[own]])
        statistics.reception.frombytes((time[at_once] - freight.born[row[at_once]]).tobytes())
        kept = (freight.topic != NO_TOPIC)[row]
        kept[at_once] = False
        self._keep_and_release(window, outcomes, usual, np.flatnonzero(kept), np.flatnonzero(~own))
        publishers = [freight.source[row[passed]], integers((message.source for message in messages), len(by))]
        statistics.absorb(_log(window, np.concatenate([passed, by]), np.concatenate(publishers)))

    def _usual(self, window: Window) -> NDArray[np.bool_]:
        """Which arrivals are a single publication of another node, of a topic their node is subscribed to."""
        _, node, _, row = window.arrivals
        if self._members.shape[1] <= len(self._topics):
            subscriptions = self._world.subscriptions
            self._members = np.zeros((self._world.network.size, len(self._topics) + 1), bool)  # the last is NO_TOPIC
            for topic, number in self._topics.items():
                self._members[list(subscriptions), number] = [topic in some for some in subscriptions.values()]
        single: NDArray[np.bool_] = (window.freight.message != SEVERAL)[row]
        foreign: NDArray[np.bool_] = window.freight.source[row] != node
        wanted: NDArray[np.bool_] = self._members[node, window.freight.topic[row]]
        return single & foreign & wanted

    def _keep_and_release(
        self, window: Window, outcomes: Outcomes, usual: NDArray[np.bool_], kept: Integers, released: Integers
    ) -> None:
        """What was not delivered as it arrived, and what was delivered but had not just arrived, in order."""
        world, statistics, (time, node, _, row) = self._world, self._world.statistics, window.arrivals
        number = np.concatenate([kept, integers(outcomes.delivered_by, len(outcomes.deliveries))[released]])
        delivery = np.concatenate([np.full(len(kept), -1), released])
        order = stable(number)
        number = number[order]
        columns = (delivery[order], time[number], node[number], usual[number], window.freight.packet[row[number]])
        for which, now, where, as_usual, packet in zip(*(column.tolist() for column in columns), strict=True):
            if which >= 0:
                effect = outcomes.deliveries[which]
                statistics.release(where, effect.topic, effect.message, now)
            elif as_usual:
                statistics.reception.append(now - packet.born)
                statistics.hold(where, packet.topic, packet.message, now)
            else:
                statistics.count_unusual(where, packet, now, world.subscriptions[where])


def _log(window: Window, delivered_by: Integers, publishers: Integers) -> Floats:
    """What `World` notes event by event: time and node of a packet, then the publishers of what it released."""
    (time, node, sender, _), place = window.arrivals, window.place
    packets = np.flatnonzero(sender != REQUEST)
    delivered_at = place[delivered_by]
    released = np.bincount(delivered_at, minlength=len(place))
    length = released.copy()
    length[place[packets]] += 2
    ends = np.cumsum(length)
    first = (ends - length)[place[packets]]
    log, is_publisher = np.empty(ends[-1]), np.ones(ends[-1], bool)
    log[first], log[first + 1] = time[packets], node[packets]
    is_publisher[first] = is_publisher[first + 1] = False
    log[is_publisher] = publishers[stable(delivered_at)]
    return log


_SHARE = 0.99  # of the lookahead is the width of a window, so that the rounding of times cannot matter

Series: TypeAlias = Iterable[tuple[int, float, NodeId, Any]]
"""Number, time, sender and packet of some events of a node."""


class Windows:
    """Drives a world through all that is going to happen in it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._topics = WindowTopics()
        self._calendar = WindowCalendar(world.network.lookahead * _SHARE)
        self._queues = OutputQueues(world.network)
        self._statistics = WindowStatistics(world, self._topics)

    def run(self, initial: Arrivals, packets: list[Any]) -> None:
        """`initial` in the order of time, then of scheduling; its rows are those of the packets."""
        self._calendar.add(initial, load(packets, self._topics))
        while (opened := self._calendar.open()) is not None:
            arrivals, freight = opened
            place = np.argsort(arrivals.node, kind="stable")
            window = Window(arrivals.taken(place), freight, place)
            outcomes = self._deal(window)
            self._world.now = float(arrivals.time[-1])
            self._world.events += int(np.count_nonzero(arrivals.sender != REQUEST))
            self._statistics.count(window, outcomes)
            if outcomes.packets:
                self._send(window, outcomes)
        self._queues.close()

    def _deal(self, window: Window) -> Outcomes:
        """To each node its share of the window, requests and packets in turn."""
        outcomes, world, (time, node, sender, row) = Outcomes(), self._world, window.arrivals
        columns = (time.tolist(), sender.tolist(), window.freight.packet[row].tolist())
        events = zip(range(len(time)), *columns, strict=True)
        turns = node.astype(np.int64) * 2 + (sender == REQUEST)
        starts = np.flatnonzero(np.diff(turns, prepend=-1))
        sizes = np.diff(starts, append=len(turns))
        for turn, size in zip(turns[starts].tolist(), sizes.tolist(), strict=True):
            machine, series = world.machines[turn >> 1], islice(events, size)
            if turn & 1:
                self._request(machine, series, outcomes)
            elif hasattr(type(machine), "on_packets"):  # not that of a machine inside: a wrapper sees every packet
                cast(Bulk, machine).on_packets(series, outcomes)
            else:
                for number, moment, peer, packet in series:
                    outcomes.add(number, machine.on_packet(moment, peer, packet))
        for number, effect in outcomes.others:
            world.now = float(time[number])
            world.interpret(int(node[number]), effect)
        return outcomes

    def _request(self, machine: Machine, series: Series, outcomes: Outcomes) -> None:
        for number, time, _, arguments in series:
            try:
                outcomes.add(number, machine.handle(time, Publish(*arguments)))
            except LocalProtocolError:
                self._world.statistics.refused += 1

    def _send(self, window: Window, outcomes: Outcomes) -> None:
        """Where all the sending of a window leads."""
        network, packets, (time, node, _, _) = self._world.network, outcomes.packets, window.arrivals
        firsts, rows = distinct(packets)
        for first in firsts.tolist():
            if packets[first].frame is None:
                self._world.frame(packets[first], float(time[outcomes.sent_by[first]]))
        freight = load([packets[first] for first in firsts.tolist()], self._topics)
        copies = integers(map(len, outcomes.peers), len(packets))
        network.bytes += int(freight.bytes[rows] @ copies)
        network.messages += int(freight.payloads[rows] @ copies)
        by = np.repeat(integers(outcomes.sent_by, len(packets)), copies)
        arrival = self._queues.depart(node[by], time[by]) + network.constant
        destination = np.fromiter(chain.from_iterable(outcomes.peers), np.uint16, len(by))
        sent = Arrivals(arrival, destination, node[by].astype(np.int32), np.repeat(rows, copies))
        self._calendar.add(sent.taken(stable(window.place[by])), freight)


def sets_timers(machine: Any) -> bool:
    said: bool = getattr(type(machine), "sets_timers", True)
    return said


def outstanding(world: "World") -> tuple[Arrivals, list[Any]] | None:
    """All that is going to happen, and the packets, taken off the world's agenda; None if it needs event after event.

    It does when a listener is there, when the network has moods, when a machine sets timers, which may ring at once,
    and when something else than publications is on the agenda.
    """
    scheduler, machines = world.network.scheduler, world.machines.values()
    if any(map(sets_timers, machines)) or not world.silent or not world.network.lookahead:
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
    columns = (np.array(times), np.array(nodes, np.uint16), np.array(senders, np.int32), np.arange(len(rows)))
    return Arrivals(*columns), list(packets)
