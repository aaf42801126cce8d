"""What a window adds to the statistics of a run: the same as `World` counts event by event."""

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
