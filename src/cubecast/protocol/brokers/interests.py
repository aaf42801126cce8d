"""Whom an event is for: the subscriptions a broker knows, with an index for each side of the tree.

What comes from a neighbour is looked up on the other sides only, and what is behind a neighbour only until it is clear
that all brokers there are to get it: of many events that travel together few are compared with what lies far away.
"""

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from cubecast.ids import NodeId
from cubecast.protocol.brokers.entries import Side, Wanted
from cubecast.protocol.brokers.packets import Event, Run, SubscriptionId
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.filters import Filter, MatchingIndex
from cubecast.protocol.filters.values import Attributes


class _Behind:
    """The subscriptions on one side."""

    __slots__ = ("brokers", "index")

    def __init__(self) -> None:
        self.index: MatchingIndex[SubscriptionId] = MatchingIndex()
        self.brokers: Counter[NodeId] = Counter()
        """How many subscriptions are of each broker."""


class Interests:
    def __init__(self, me: NodeId, tree: BrokerTree, reach: int) -> None:
        """A message is issued to so many brokers on each way."""
        self._me, self._tree, self._reach = me, tree, reach
        self._behind: dict[Side, _Behind] = {side: _Behind() for side in (None, *tree.neighbours[me])}
        self._ways: dict[NodeId, frozenset[NodeId]] = {}

    def add(self, subscription: SubscriptionId, wanted: Filter) -> None:
        behind = self._of(subscription)
        behind.index.add(subscription, wanted)
        behind.brokers[subscription.broker] += 1

    def discard(self, subscription: SubscriptionId) -> None:
        behind = self._of(subscription)
        if subscription in behind.index:
            behind.index.discard(subscription)
            behind.brokers[subscription.broker] -= 1
            if not behind.brokers[subscription.broker]:
                del behind.brokers[subscription.broker]

    def way(self, broker: NodeId) -> frozenset[NodeId]:
        """The next brokers on the path there, as many as a message is issued to."""
        way = self._ways.get(broker)
        if way is None:
            way = self._ways[broker] = frozenset(self._tree.path(self._me, broker)[: self._reach])
        return way

    def matching(self, attributes: Attributes) -> list[SubscriptionId]:
        return [one for behind in self._behind.values() for one in behind.index.matching(attributes)]

    def wanted_here(self, event: Event) -> dict[SubscriptionId, Wanted]:
        """What this broker's clients want of it."""
        found: dict[SubscriptionId, Wanted] = {}
        counter = start = event.last - event.size + 1
        for run in event.runs:
            payloads = run.payloads
            for subscription in self._behind[None].index.matching(run.attributes):
                wanted = found.get(subscription)
                if wanted is None:
                    pieces = [(counter, list(payloads))]
                    found[subscription] = Wanted(event.topic, event.publisher, start, event.last, pieces)
                    continue
                first, before = wanted.pieces[-1]
                if first + len(before) == counter:
                    before += payloads
                else:
                    wanted.pieces.append((counter, list(payloads)))
            counter += len(payloads)
        return found

    def destinations(self, attributes: Attributes) -> frozenset[NodeId]:
        """Other brokers whose clients want it."""
        found: set[NodeId] = set()
        for side, behind in self._behind.items():
            if side is not None:
                behind.index.labels(attributes, _broker, found)
        return frozenset(found)

    def targets(self, runs: Iterable[Run], side: Side) -> set[NodeId]:
        """Whom events that came from there are issued to."""
        targets: set[NodeId] = set()
        for other, behind in self._behind.items():
            if other is not None and other != side and behind.brokers:
                targets |= self._targets_behind(behind, runs)
        return targets

    def _targets_behind(self, behind: _Behind, runs: Iterable[Run]) -> set[NodeId]:
        brokers: set[NodeId] = set()
        for run in runs:
            behind.index.labels(run.attributes, _broker, brokers)
            if len(brokers) == len(behind.brokers):
                break
        return set().union(*map(self.way, brokers))

    def _of(self, subscription: SubscriptionId) -> _Behind:
        return self._behind[self._tree.side(self._me, subscription.broker)]


_broker = attrgetter("broker")
