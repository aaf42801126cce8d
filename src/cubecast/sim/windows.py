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

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cubecast.protocol.contract import Outcomes
from cubecast.sim.window_columns import (
    NO_TOPIC,
    REQUEST,
    SEVERAL,
    Floats,
    Integers,
    Window,
    WindowTopics,
    integers,
    stable,
)

if TYPE_CHECKING:
    from cubecast.sim.world import World
from collections.abc import Iterable
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cubecast.errors import LocalProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.contract import Bulk, Machine
from cubecast.protocol.inputs import Publish
from cubecast.sim.window_columns import (
    Arrivals,
    OutputQueues,
    WindowCalendar,
    distinct,
    load,
)

if TYPE_CHECKING:
    from cubecast.sim.world import World


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
