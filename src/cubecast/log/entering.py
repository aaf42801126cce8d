"""Everything that a commit changes in the index, as one statement.

Each trip into SQLite gives the interpreter lock away several times, and getting it back from a busy event loop costs
more than the trip. So rows of all kinds are inserted into one view, in one go, and triggers put them where they belong.
View and triggers are the connection's own, not the file's: nothing that happens to the file can change what they do.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any, Final

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
