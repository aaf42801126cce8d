"""The one place that changes the index. Each change is one transaction.

Rows go in many at a time, because each trip into SQLite gives the interpreter lock away, and getting it back from a
busy event loop takes longer than the trip.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from cubecast.ids import MessageId, Topic
from cubecast.net.log.record import Damage, Entry, Mark, Run, row_checksum
from cubecast.net.log.segments import Place

AT_ONCE = (256, 64, 16, 4, 1)
"""Rows of one statement; few different numbers, so that SQLite keeps them prepared."""
INTO_BATCHES, PLACES = "INSERT INTO batches VALUES", "(NULL,?,?,?,?,?,?,?,?,?,?)"

encode_runs = msgspec.msgpack.Encoder().encode
decode_runs = msgspec.msgpack.Decoder(tuple[Run, ...]).decode


class Hole(NamedTuple):
    """Messages that could not be written, or are gone: only their names are left."""

    topic: Topic
    damage: Damage


@dataclass(slots=True)
class Account:
    """A topic as the index has it."""

    number: int
    first: int = 1
    last: int = 0
    bytes: int = 0


Placed = tuple[Entry | Mark, Place]
_Newest = dict[tuple[int, int], tuple[int, int]]


class Index:
    def __init__(self, database: sqlite3.Connection, accounts: dict[Topic, Account]) -> None:
        self.database, self.accounts = database, accounts
        self._numbers = max((account.number for account in accounts.values()), default=0)

    def enter(self, entries: Sequence[Placed], holes: Sequence[Hole] = ()) -> None:
        """What comes next."""
        rows: list[tuple[Any, ...]] = []
        touched: dict[Topic, Account] = {}
        newest: _Newest = {}
        for entry, place in entries:
            account = touched.get(entry.topic) or self._touch(touched, entry.topic)
            rows.append(row_of(account.number, entry, place))
            account.bytes += place.length
            account.last = max(account.last, entry.last)
            _note(newest, account.number, entry.first, entry.many)
        for topic, damage in holes:
            account = touched.get(topic) or self._touch(touched, topic)
            account.last = max(account.last, damage.last)
            for run in damage.ids:
                _note(newest, account.number, *run)
        with self._transaction():
            insert(self.database, INTO_BATCHES, PLACES, rows)
            for topic, damage in holes:
                self._enter_damage(touched[topic], damage)
            self._keep(touched, newest)
        self.accounts.update(touched)

    def enter_damage(self, topic: Topic, damage: Damage) -> None:
        """Something entered earlier was found to be damaged."""
        with self._transaction():
            self._enter_damage(self.accounts[topic], damage)

    def _enter_damage(self, account: Account, damage: Damage) -> None:
        row = account.number, damage.first, damage.last, encode_runs(damage.ids), damage.why
        self.database.execute("INSERT OR REPLACE INTO damage VALUES (?,?,?,?,?)", row)

    def replace(self, topic: Topic, damage: Damage, entries: Sequence[Placed]) -> None:
        """These are the messages of the range; nothing is damaged there any more."""
        account = self._touch({}, topic)
        range_ = account.number, damage.first, damage.last
        with self._transaction():
            query = "SELECT coalesce(sum(length), 0) FROM batches WHERE topic=? AND offset BETWEEN ? AND ?"
            (lost,) = self.database.execute(query, range_).fetchone()
            self.database.execute("DELETE FROM batches WHERE topic=? AND offset BETWEEN ? AND ?", range_)
            self.database.execute("DELETE FROM damage WHERE topic=? AND first=? AND last=?", range_)
            insert(self.database, INTO_BATCHES, PLACES, [row_of(account.number, *one) for one in entries])
            account.bytes += sum(place.length for _, place in entries) - lost
            self._keep({topic: account}, {})
        self.accounts[topic] = account

    def time_before(self, topic: Topic, offset: int) -> float:
        """When what precedes it was delivered."""
        query = "SELECT at FROM batches WHERE topic=? AND offset<? ORDER BY offset DESC LIMIT 1"
        (at,) = self.database.execute(query, (self.accounts[topic].number, offset)).fetchone() or (0.0,)
        return float(at)

    def forget(self, topic: Topic, first: int, freed: int) -> None:
        """Everything before this offset."""
        account = self._touch({}, topic)
        account.first, account.bytes = first, account.bytes - freed
        with self._transaction():
            self.database.execute("DELETE FROM batches WHERE topic=? AND offset<?", (account.number, first))
            self.database.execute("DELETE FROM damage WHERE topic=? AND last<?", (account.number, first))
            self._keep({topic: account}, {})
        self.accounts[topic] = account

    def move(self, rows: Sequence[int], entries: Sequence[Placed]) -> None:
        """These rows' messages are elsewhere now. They get new numbers: rows are in the order of the segments."""
        with self._transaction():
            self.database.executemany("DELETE FROM batches WHERE seq=?", [(row,) for row in rows])
            numbered = [row_of(self.accounts[entry.topic].number, entry, place) for entry, place in entries]
            insert(self.database, INTO_BATCHES, PLACES, numbered)

    def shrink(self, pages: int) -> None:
        """Give room back to the file system, when there is more than new entries will soon need."""
        (free,) = self.database.execute("PRAGMA freelist_count").fetchone()
        (total,) = self.database.execute("PRAGMA page_count").fetchone()
        if free > pages and free > total // 4:
            self.database.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()

    def sync(self) -> bool:
        """Move what is in its write-ahead log into the index itself, on the disk; with somebody reading, some waits."""
        _, pages, moved = self.database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return bool(pages == moved)

    # Inside

    def _touch(self, touched: dict[Topic, Account], topic: Topic) -> Account:
        """A copy: when the transaction fails nothing has happened."""
        known = self.accounts.get(topic)
        if known is None:
            self._numbers += 1
            account = Account(self._numbers)
        else:
            account = Account(known.number, known.first, known.last, known.bytes)
        touched[topic] = account
        return account

    def _keep(self, touched: dict[Topic, Account], newest: _Newest) -> None:
        topics = [topic_row(topic, account) for topic, account in touched.items()]
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

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise


def topic_checksum(topic: Topic, account: Account) -> int:
    return row_checksum(account.number, topic, account.first, account.last, account.bytes)


def topic_row(topic: Topic, account: Account) -> tuple[Any, ...]:
    return account.number, topic, account.first, account.last, account.bytes, topic_checksum(topic, account)


def row_of(number: int, entry: Entry | Mark, place: Place) -> tuple[Any, ...]:
    return number, entry.offset, entry.many, entry.at, *entry.first, *place


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


def _note(newest: _Newest, number: int, first: MessageId, count: int) -> None:
    key, position = (number, first.source), (first.incarnation, first.counter + count - 1)
    if newest.get(key, (-1, 0)) < position:
        newest[key] = position
