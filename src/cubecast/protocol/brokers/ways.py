"""Whom a message may go to from one broker, who is owed it there, and what a copy says."""

from collections.abc import Iterable

from cubecast.ids import NodeId
from cubecast.protocol.brokers.packets import COPIES, Copy, Header, Table, Tables
from cubecast.protocol.brokers.records import Record
from cubecast.protocol.brokers.tree import BrokerTree


class Ways:
    def __init__(self, me: NodeId, tree: BrokerTree, faults: int) -> None:
        self._me, self._tree, self._faults = me, tree, faults
        self._reach = 2 * faults + 1
        self._near = tree.within(me, self._reach)

    def allowed(self, origin: NodeId, turns: Table, target: NodeId) -> bool:
        """Enough of the last brokers before the target processed it, so that any two ways share one that did."""
        path = (origin, *self._tree.path(origin, target))[:-1]
        return sum(broker not in turns for broker in path[-self._reach :]) <= self._faults

    def owed(self, tables: Iterable[Tables]) -> set[NodeId]:
        """Whom brokers before this one promised the message, and who can only get it through this one; and those
        between, whom the others may have given up and this one has not."""
        me, tree = self._me, self._tree
        owed: set[NodeId] = set()
        for stamps in tables:
            for broker, numbers in stamps.items():
                for target in numbers.keys() - owed:
                    if me not in (target, broker) and target in self._near and tree.between(broker, me, target):
                        owed.update(tree.path(me, target))
        return owed

    def copy(self, record: Record, target: NodeId) -> Copy:
        """With what matters near the target only."""
        near = self._tree.within(target, self._reach)
        origin, turn = record.key
        header = Header(
            origin,
            turn,
            self._me,
            target,
            {broker: number for broker, number in record.turns.items() if broker in near or broker == origin},
            _near(record.stamps, near),
            _near(record.labels, near),
            {one: table for one, table in record.past.items() if one in near or one == target},
        )
        return COPIES[type(record.body)](header, record.body)


def _near(tables: Tables, near: frozenset[NodeId]) -> Tables:
    return {broker: numbers for broker, numbers in tables.items() if broker in near}
