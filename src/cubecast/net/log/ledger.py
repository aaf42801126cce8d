"""The one place that changes the database. Used in the writer's thread only; each change is one transaction.

Rows go in many at a time, because each trip into SQLite gives the interpreter lock away, and getting it back from a
busy event loop takes longer than the trip.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from cubecast.ids import Topic
from cubecast.net.log.marks import Mark, Marks
from cubecast.net.log.record import (
    RECORD_OVERHEAD,
    Damage,
    Record,
    Run,
    body_checksum,
    encode_block,
    head_checksum,
    row_checksum,
)

CHECKPOINT_BYTES = 8 << 20
AT_ONCE = (256, 64, 16, 4, 1)
"""Rows of one statement; few different numbers, so that SQLite keeps them prepared."""

encode_runs = msgspec.msgpack.Encoder().encode
decode_runs = msgspec.msgpack.Decoder(tuple[Run, ...]).decode


class Hole(NamedTuple):
    """Messages that could not be written: only their names are left."""

    topic: Topic
    damage: Damage


@dataclass(slots=True)
class Account:
    """A topic as the database has it."""

    number: int
    first: int = 1
    last: int = 0
    bytes: int = 0


class Ledger:
    def __init__(self, database: sqlite3.Connection, marks: Marks, accounts: dict[Topic, Account]) -> None:
        self.database, self.accounts = database, accounts
        self._marks = marks
        self._numbers = max((account.number for account in accounts.values()), default=0)
        self._uncheckpointed = 0

    # What is delivered

    def commit(self, items: Sequence[Record | Hole]) -> None:
        """All of it is on the disk when this returns, nothing of it when it raises."""
        rows: list[tuple[Any, ...]] = []
        marks: list[Mark] = []
        touched: dict[Topic, Account] = {}
        newest: dict[tuple[int, int], tuple[int, int]] = {}
        for item in items:
            account = touched.get(item.topic) or self._touch(touched, item.topic)
            if isinstance(item, Record):
                row = _row(account.number, item)
                rows.append(row)
                marks.append(Mark(item.topic, item.offset, len(item.payloads), item.first, item.at))
                account.bytes += len(row[-1]) + RECORD_OVERHEAD
                account.last = item.last
                _note(newest, account.number, item.first, len(item.payloads))
            else:
                account.last = item.damage.last
                for run in item.damage.ids:
                    _note(newest, account.number, *run)
        with self.transaction():
            insert(self.database, "INSERT INTO batches VALUES", "(NULL,?,?,?,?,?,?,?,?,?,?)", rows)
            for item in items:
                if isinstance(item, Hole):
                    self._damaged(touched[item.topic], item.damage)
            self._keep(touched, newest)
        self.accounts.update(touched)
        self._marks.add(marks)
        self._uncheckpointed += sum(len(row[-1]) + RECORD_OVERHEAD for row in rows)
        if self._uncheckpointed > CHECKPOINT_BYTES or self._marks.is_full:
            self.checkpoint()

    def _touch(self, touched: dict[Topic, Account], topic: Topic) -> Account:
        """A copy: when the commit fails nothing has happened."""
        known = self.accounts.get(topic)
        if known is None:
            self._numbers += 1
            account = Account(self._numbers)
        else:
            account = Account(known.number, known.first, known.last, known.bytes)
        touched[topic] = account
        return account

    def _keep(self, touched: dict[Topic, Account], newest: dict[tuple[int, int], tuple[int, int]]) -> None:
        topics = [
            (one.number, topic, one.first, one.last, one.bytes, topic_checksum(topic, one))
            for topic, one in touched.items()
        ]
        update = (
            "ON CONFLICT (id) DO UPDATE SET first=excluded.first, last=excluded.last, bytes=excluded.bytes, "
            "checksum=excluded.checksum"
        )
        insert(self.database, "INSERT INTO topics VALUES", "(?,?,?,?,?,?)", topics, update)
        sources = [(*key, *position, row_checksum(*key, *position)) for key, position in newest.items()]
        update = (
            "ON CONFLICT (topic, source) DO UPDATE SET incarnation=excluded.incarnation, counter=excluded.counter, "
            "checksum=excluded.checksum WHERE (excluded.incarnation, excluded.counter) > (incarnation, counter)"
        )
        insert(self.database, "INSERT INTO sources VALUES", "(?,?,?,?,?)", sources, update)

    # Damage

    def _damaged(self, account: Account, damage: Damage) -> None:
        row = account.number, damage.first, damage.last, encode_runs(damage.ids), damage.why
        self.database.execute("INSERT OR REPLACE INTO damage VALUES (?,?,?,?,?)", row)

    # The rest

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log into the database; with somebody reading, some may have to wait."""
        _, pages, moved = self.database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages == moved:
            self._marks.begin_anew()
        self._uncheckpointed = 0

    def close(self) -> None:
        self.checkpoint()
        self.database.close()
        self._marks.close()


def topic_checksum(topic: Topic, account: Account) -> int:
    return row_checksum(account.number, topic, account.first, account.last, account.bytes)


def insert(
    database: sqlite3.Connection, statement: str, places: str, rows: Sequence[tuple[Any, ...]], ending: str = ""
) -> None:
    """Many rows in few trips."""
    done = 0
    for size in AT_ONCE:
        while len(rows) - done >= size:
            values = [value for row in rows[done : done + size] for value in row]
            database.execute(f"{statement} {','.join([places] * size)} {ending}", values)
            done += size


def _row(number: int, record: Record) -> tuple[Any, ...]:
    topic, first, payloads, offset, at = record
    count, block = len(payloads), encode_block(payloads)
    head = head_checksum(topic, first, count, offset, at)
    return number, offset, count, at, *first, head, body_checksum(head, block), block


def _note(newest: dict[tuple[int, int], tuple[int, int]], number: int, first: Any, count: int) -> None:
    key, position = (number, first.source), (first.incarnation, first.counter + count - 1)
    if newest.get(key, (-1, 0)) < position:
        newest[key] = position
