"""What a broker keeps of messages it processed, until all brokers nearby that they were issued to say they did too."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

from cubecast.ids import NodeId
from cubecast.protocol.brokers.packets import Body, Table, Tables

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

    @property
    def way(self) -> tuple[NodeId, Table]:
        return self.key[0], self.turns


class RecordLog:
    """The records of one broker, and what others nearby have acknowledged."""

    def __init__(self, me: NodeId, near: frozenset[NodeId]) -> None:
        self._me = me
        self._near = near
        self._open: dict[MessageKey, Record] = {}
        self._recent: dict[MessageKey, Record] = {}
        self._gone: set[NodeId] = set()
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
        crash when nobody else has it yet."""
        wanted = target != self._me and target in self._near and target not in self._gone
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
        self._gone.discard(target)

    def forget(self, target: NodeId) -> None:
        """Nothing is kept for it any more."""
        self._gone.add(target)
        for pair in [pair for pair in self._outstanding if pair[0] == target]:
            self._close(*pair, inf)

    def lacks(self, record: Record, target: NodeId) -> bool:
        return target not in self._gone and self.acknowledged(target, self._me) < record.numbers[target]

    def _close(self, target: NodeId, issuer: NodeId, number: float) -> None:
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
