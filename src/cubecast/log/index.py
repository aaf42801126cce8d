"""The one place that changes the index. Each change is one transaction, and what a commit enters one statement.

Each trip into SQLite gives the interpreter lock away several times, and getting it back from a busy event loop costs
more than the trip. So rows of all kinds are inserted into one view, in one go, and triggers put them where they belong.
View and triggers are the connection's own, not the file's: nothing that happens to the file can change what they do.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from cubecast.errors import DamagedLog
from cubecast.headers import attributes_of
from cubecast.ids import MessageId, Topic
from cubecast.log.record import Damage, Entry, Run, messages_in, row_checksum
from cubecast.log.segments import Placed

# What producers that number their messages have in a log: the last number of each, on each topic.
#
# A number travels in a header of its message. The log's writer looks for them in what it writes, so that the numbers
# are in the index when the messages are durable, and any node's log can tell a producer what it need not publish again.

HEADER: Final = "cubecast-producer"
"""Holds the producer's name, a number sign, and the message's number on its topic, from 1."""
_MARK: Final = bytes([0xA0 | len(HEADER)]) + HEADER.encode()
"""How the header looks in a packed message: blocks without it, nearly all, are searched and not opened."""
_ENTER: Final = (
    "INSERT INTO producers VALUES (?, ?, ?, ?) ON CONFLICT (name, topic) DO UPDATE SET number=excluded.number, "
    "checksum=excluded.checksum WHERE excluded.number > number"
)
Numbers: TypeAlias = dict[tuple[str, Topic], int]
"""The last number by producer and topic."""


def stamp(name: str, number: int) -> str:
    return f"{name}#{number}"


def numbers_in(entries: Iterable[Entry]) -> Numbers:
    found: Numbers = {}
    for entry in entries:
        if _MARK in entry.block:
            for sealed in messages_in(entry.block, entry.element):
                if _MARK in sealed:
                    _note_number(found, entry.topic, attributes_of(entry.topic, sealed).get(HEADER))
    return found


def _note_number(found: Numbers, topic: Topic, told: object) -> None:
    name, sign, number = told.rpartition("#") if isinstance(told, str) else ("", "", "")
    if sign and number.isdecimal() and len(number) < 19:
        key = name, topic
        found[key] = max(found.get(key, 0), int(number))


def enter_numbers(database: sqlite3.Connection, numbers: Mapping[tuple[str, Topic], int]) -> None:
    rows = [(name, topic, number, row_checksum(name, topic, number)) for (name, topic), number in numbers.items()]
    database.executemany(_ENTER, rows)


def last_numbers(database: sqlite3.Connection, name: str, topics: Sequence[Topic]) -> dict[Topic, int]:
    """0 for those on which the producer has nothing in the log."""
    found = dict.fromkeys(topics, 0)
    for topic in topics:
        query = "SELECT number, checksum FROM producers WHERE name=? AND topic=?"
        for number, checksum in database.execute(query, (name, topic)).fetchall():
            if checksum != row_checksum(name, topic, number):
                raise DamagedLog(f"the number of producer {name} on {topic} does not match its checksum")
            found[topic] = number
    return found


# The index.

BATCH, INSTEAD, TOPIC, SOURCE, DAMAGE = range(1, 6)
"""Kinds of rows; `INSTEAD` is a batch that counts instead of one at the same offset."""
MOST: Final = 256
SIZES: Final = (*range(4, 64, 4), *range(64, MOST + 1, 16))
"""Rows of one statement: few enough different numbers that SQLite keeps them prepared, as rows to fill up cost too."""
WIDTH: Final = 11

Row = tuple[Any, ...]
"""The kind, then the columns of its table, then nothing up to the full width."""

_columns = [f"c{number}" for number in range(WIDTH)]


def _trigger(kind: int, statement: str, columns: int, ending: str = "") -> str:
    values = ", ".join(f"NEW.{name}" for name in _columns[1 : columns + 1])
    return (
        f"CREATE TEMP TRIGGER IF NOT EXISTS entered_{kind} INSTEAD OF INSERT ON entered WHEN NEW.{_columns[0]}={kind} "
        f"BEGIN {statement.format(values)} {ending}; END;"
    )


_SCRIPT = "PRAGMA temp_store=MEMORY; CREATE TEMP VIEW IF NOT EXISTS entered AS SELECT {}; {}".format(
    ", ".join(f"0 AS {name}" for name in _columns),
    "".join(
        (
            _trigger(BATCH, "INSERT INTO batches VALUES (NULL, {})", 10),
            _trigger(INSTEAD, "INSERT OR REPLACE INTO batches VALUES (NULL, {})", 10),
            _trigger(
                TOPIC,
                "INSERT INTO topics VALUES ({})",
                6,
                "ON CONFLICT (id) DO UPDATE SET first=excluded.first, last=excluded.last, bytes=excluded.bytes, "
                "checksum=excluded.checksum",
            ),
            _trigger(
                SOURCE,
                "INSERT INTO sources VALUES ({})",
                5,
                "ON CONFLICT (topic, source) DO UPDATE SET incarnation=excluded.incarnation, "
                "counter=excluded.counter, checksum=excluded.checksum "
                "WHERE (excluded.incarnation, excluded.counter) > (incarnation, counter)",
            ),
            _trigger(DAMAGE, "INSERT OR REPLACE INTO damage VALUES ({})", 5),
        )
    ),
)
_places = f"({','.join('?' * WIDTH)})"
_statements = {size: f"INSERT INTO entered VALUES {','.join([_places] * size)}" for size in SIZES}
_nothing: Row = (None,) * WIDTH


def row(*values: Any) -> Row:
    return values + _nothing[len(values) :]


def prepare(database: sqlite3.Connection) -> None:
    database.executescript(_SCRIPT)


def enter(database: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """All of them; a transaction of their own when they are few enough for one statement."""
    enter_values(database, [*chain.from_iterable(rows)])


def enter_values(database: sqlite3.Connection, values: Sequence[Any]) -> None:
    """Rows without what holds each together: so many tuples at a time keep the garbage collector busy."""
    for begin in range(0, len(values), MOST * WIDTH):
        some = values[begin : begin + MOST * WIDTH]
        size = next(size for size in SIZES if size * WIDTH >= len(some))
        database.execute(_statements[size], [*some, *repeat(None, size * WIDTH - len(some))])


def fits(values: Sequence[Any]) -> bool:
    """Into one statement."""
    return len(values) <= MOST * WIDTH


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


_Newest = dict[tuple[int, int], tuple[int, int]]


class Index:
    def __init__(self, database: sqlite3.Connection, accounts: dict[Topic, Account]) -> None:
        self.database, self.accounts = database, accounts
        self._numbers = max((account.number for account in accounts.values()), default=0)
        prepare(database)

    def enter(self, entries: Sequence[Placed], holes: Sequence[Hole] = (), numbers: Numbers | None = None) -> None:
        """What comes next, and the last numbers of producers in it."""
        touched: dict[Topic, Account] = {}
        newest: _Newest = {}
        values = self._values(entries, touched, newest) if entries else []
        rows: list[Row] = []
        for topic, damage in holes:
            account = touched.get(topic) or self._touch(touched, topic)
            account.last = max(account.last, damage.last)
            for run in damage.ids:
                _note(newest, account.number, *run)
            rows.append(_damage_row(account, damage))
        values += chain.from_iterable(rows + _kept(touched, newest))
        if fits(values) and not numbers:
            enter_values(self.database, values)
        else:
            with self._transaction():
                enter_numbers(self.database, numbers or {})
                enter_values(self.database, values)
        self.accounts.update(touched)

    def _values(self, entries: Sequence[Placed], touched: dict[Topic, Account], newest: _Newest) -> list[Any]:
        """Their rows, made column by column: with few steps of the interpreter, for which the event loop waits."""
        topics, offsets, many, firsts, times, files, starts, lengths = zip(*entries, strict=True)
        for topic in dict.fromkeys(topics):
            self._touch(touched, topic)
        accounts = [touched[topic] for topic in topics]
        for account, offset, count, length, first in zip(accounts, offsets, many, lengths, firsts, strict=True):
            account.bytes += length
            if account.last < offset + count - 1:
                account.last = offset + count - 1
            _note(newest, account.number, first, count)
        numbers = [account.number for account in accounts]
        names = zip(*firsts, strict=True)
        rows = zip(repeat(BATCH), numbers, offsets, many, times, *names, files, starts, lengths, strict=False)
        return [*chain.from_iterable(rows)]

    def enter_damage(self, topic: Topic, damage: Damage) -> None:
        """Something entered earlier was found to be damaged."""
        enter(self.database, [_damage_row(self.accounts[topic], damage)])

    def replace(self, topic: Topic, damage: Damage, entries: Sequence[Placed]) -> None:
        """These are the messages of the range; nothing is damaged there any more."""
        account = self._touch({}, topic)
        range_ = account.number, damage.first, damage.last
        with self._transaction():
            query = "SELECT coalesce(sum(length), 0) FROM batches WHERE topic=? AND offset BETWEEN ? AND ?"
            (lost,) = self.database.execute(query, range_).fetchone()
            self.database.execute("DELETE FROM batches WHERE topic=? AND offset BETWEEN ? AND ?", range_)
            self.database.execute("DELETE FROM damage WHERE topic=? AND first=? AND last=?", range_)
            account.bytes += sum(entry[-1] for entry in entries) - lost
            rows = [row_of(account.number, entry) for entry in entries]
            enter(self.database, rows + _kept({topic: account}, {}))
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
            enter(self.database, _kept({topic: account}, {}))
        self.accounts[topic] = account

    def move(self, rows: Sequence[int], entries: Sequence[Placed]) -> None:
        """These rows' messages are elsewhere now. They get new numbers: rows are in the order of the segments."""
        with self._transaction():
            self.database.executemany("DELETE FROM batches WHERE seq=?", [(row,) for row in rows])
            enter(self.database, [row_of(self.accounts[entry[0]].number, entry) for entry in entries])

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


def row_of(number: int, entry: Placed, kind: int = BATCH) -> Row:
    _, offset, many, first, at, *place = entry
    return kind, number, offset, many, at, *first, *place


def _damage_row(account: Account, damage: Damage) -> Row:
    return row(DAMAGE, account.number, damage.first, damage.last, encode_runs(damage.ids), damage.why)


def _kept(touched: dict[Topic, Account], newest: _Newest) -> list[Row]:
    """The small tables' rows."""
    topics = [topic_row(topic, account) for topic, account in touched.items()]
    return topics + [source_row(*key, *position) for key, position in newest.items()]


def topic_row(topic: Topic, account: Account) -> Row:
    checksum = topic_checksum(topic, account)
    return row(TOPIC, account.number, topic, account.first, account.last, account.bytes, checksum)


def source_row(topic: int, source: int, incarnation: int, counter: int) -> Row:
    return row(SOURCE, topic, source, incarnation, counter, row_checksum(topic, source, incarnation, counter))


def _note(newest: _Newest, number: int, first: MessageId, count: int) -> None:
    source, incarnation, counter = first
    key, position = (number, source), (incarnation, counter + count - 1)
    known = newest.get(key)
    if known is None or known < position:
        newest[key] = position
