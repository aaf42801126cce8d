"""What a broker keeps of messages it processed, until all brokers nearby that they were issued to say they did too;
whom a message may go to, who is owed it there, and what a copy says.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from cubecast.ids import NodeId
from cubecast.protocol.brokers.packets import COPIES, Body, Copy, Header, Table, Tables
from cubecast.protocol.brokers.received import first_of, life_of
from cubecast.protocol.brokers.tree import BrokerTree

MessageKey: TypeAlias = tuple[NodeId, int]
"""The broker a message began at, and which of its turns that was."""

RECENT = 1024
"""Records that everybody acknowledged and that are kept a while, for copies that come late."""


@dataclass(slots=True)
class Record:
    """A message this broker processed, with its own turn and numbers among those of others."""

    key: MessageKey
    body: Body
    turns: Table
    stamps: Tables
    labels: Tables
    past: Tables
    numbers: Table
    sent: set[NodeId] = field(default_factory=set)
    held: set[NodeId] = field(default_factory=set)
    open: int = 0
    """Numbers in it, given by this broker or others, that their targets nearby have not acknowledged."""

    def number(self, broker: NodeId, target: NodeId) -> int:
        """That the broker gave it for the target, in time or late; 0: none."""
        return max(self.stamps.get(broker, {}).get(target, 0), self.labels.get(broker, {}).get(target, 0))

    def lacks(self, broker: NodeId, header: Header) -> Table:
        """The broker's numbers in another copy that are not in this one."""
        named = {**header.labels.get(broker, {}), **header.stamps.get(broker, {})}
        return {target: number for target, number in named.items() if number > self.number(broker, target)}


class RecordLog:
    """The records of one broker, and what others nearby have acknowledged."""

    def __init__(self, me: NodeId, near: frozenset[NodeId], lives: Callable[[NodeId], int]) -> None:
        """`lives` tells in which life a broker is, this one included."""
        self._me = me
        self._near = near
        self._lives = lives
        self._open: dict[MessageKey, Record] = {}
        self._recent: dict[MessageKey, Record] = {}
        self._gone: Table = {}
        """Brokers that were removed, and the life that was their last so far."""
        self.closed: list[Record] = []
        """Those that everybody nearby has since the machine last looked."""
        self._acked: Tables = {}
        self._outstanding: dict[tuple[NodeId, NodeId], list[tuple[int, MessageKey]]] = {}
        """By target and issuer: numbers the target has not acknowledged, as a heap, with the message each is of."""

    def records(self) -> list[Record]:
        """In the order they were processed in."""
        return list(self._open.values())

    def find(self, key: MessageKey) -> Record | None:
        return self._open.get(key) or self._recent.get(key)

    def keep(self, record: Record, issuer: NodeId, target: NodeId, number: int) -> None:
        """Until its target says that it processed it, and not only for those this broker issued it to: its issuer may
        crash when no other broker has it yet."""
        wanted = target != self._me and target in self._near and not self._is_lost(target, issuer, number)
        if wanted and number > self.acknowledged(target, issuer):
            heappush(self._outstanding.setdefault((target, issuer), []), (number, record.key))
            record.open += 1
            self._open[record.key] = record
            self._recent.pop(record.key, None)

    def acknowledged(self, target: NodeId, issuer: NodeId) -> int:
        return self._acked.get(target, {}).get(issuer, 0)

    def acknowledge(self, target: NodeId, issuer: NodeId, number: int) -> None:
        acked = self._acked.setdefault(target, {})
        acked[issuer] = max(number, acked.get(issuer, 0))
        self._close(target, issuer, number)

    def readmit(self, target: NodeId) -> None:
        """It was taken back: what is issued to it from now on is kept."""
        self._gone.pop(target, None)

    def forget(self, target: NodeId) -> None:
        """Nothing is kept any more for this life of it; others may have issued something to its next one already."""
        life = self._gone[target] = self._lives(target)
        for _, issuer in [pair for pair in self._outstanding if pair[0] == target]:
            self._close(target, issuer, first_of(life + self._lives(issuer) + 1) - 1)

    def _is_lost(self, target: NodeId, issuer: NodeId, number: int) -> bool:
        """Was it issued to a life of the target that is over?"""
        life = self._gone.get(target)
        return life is not None and life_of(number) <= life + self._lives(issuer)

    def lacks(self, record: Record, target: NodeId) -> bool:
        number = record.numbers[target]
        return self.acknowledged(target, self._me) < number and not self._is_lost(target, self._me, number)

    def _close(self, target: NodeId, issuer: NodeId, number: int) -> None:
        heap = self._outstanding.get((target, issuer), [])
        while heap and heap[0][0] <= number:
            record = self._open[heappop(heap)[1]]
            record.open -= 1
            if not record.open:
                del self._open[record.key]
                self.closed.append(record)
                self._recent[record.key] = record
                if len(self._recent) > RECENT:
                    del self._recent[next(iter(self._recent))]
        if not heap:
            self._outstanding.pop((target, issuer), None)


class Ways:
    def __init__(self, me: NodeId, tree: BrokerTree, faults: int) -> None:
        self._me, self._tree = me, tree
        self._reach = 2 * faults + 1
        self._near = tree.within(me, self._reach)

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
