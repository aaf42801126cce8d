"""Telling the index what the segments hold: behind its last entry, or all of it."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cubecast.ids import Topic
from cubecast.log.index import INSTEAD, Account, Row, enter, prepare, row_of, source_row, topic_row
from cubecast.log.load import newest_of
from cubecast.log.numbered import Numbers, enter_numbers, numbers_in
from cubecast.log.record import decode_entry
from cubecast.log.segments import Junk, Placed, SegmentReader, scan, segment_numbers, segment_path

AT_ONCE = 1000
"""Frames entered in one transaction."""


@dataclass
class Tail:
    """How the segments end."""

    file: int
    end: int
    is_clean: bool
    """Nothing but whole frames, and at most one at the end that was not finished."""
    found: list[Placed] = field(default_factory=list)
    """Frames the index does not know."""
    notes: list[str] = field(default_factory=list)


def look_behind(directory: Path, database: sqlite3.Connection, accounts: Mapping[Topic, Account]) -> Tail:
    """What was synced and not entered. An unfinished frame at the very end was never acknowledged."""
    numbers = segment_numbers(directory)
    query = "SELECT file, start + length FROM batches ORDER BY seq DESC LIMIT 1"
    file, end = database.execute(query).fetchone() or (min(numbers, default=1), 0)
    is_there = segment_path(directory, file).stat().st_size >= end if file in numbers else not end and not numbers
    tail = Tail(file, end, is_there)
    for number in [one for one in numbers if one >= file]:
        junk = None
        for piece in scan(directory, number, end if number == file else 0):
            tail.is_clean = tail.is_clean and junk is None
            junk = piece if isinstance(piece, Junk) else None
            if not isinstance(piece, Junk):
                topic, offset, *_, start, length = piece
                tail.file, tail.end = number, start + length
                account = accounts.get(topic)
                if account is None or offset > account.last:
                    tail.found.append(piece)
        if junk is not None:
            where = segment_path(directory, number)
            tail.notes.append(f"{where}: {junk.length} bytes from {junk.start} on are not whole frames: {junk.why}")
            tail.is_clean = tail.is_clean and number == numbers[-1]
    return tail


def numbers_behind(directory: Path, found: Sequence[Placed]) -> Numbers:
    """What producers have in these frames."""
    reader = SegmentReader(directory)
    try:
        return numbers_in(decode_entry(reader.read(*place)) for *_, place in ((one[:5], one[5:]) for one in found))
    finally:
        reader.close()


def rebuild(directory: Path, database: sqlite3.Connection) -> None:
    """The whole index. Where the same offset was written twice, as by a repair, the later one counts."""
    topics: dict[str, int] = {}
    rows: list[Row] = []
    placed: list[Placed] = []
    prepare(database)
    for number in segment_numbers(directory):
        for piece in scan(directory, number):
            if not isinstance(piece, Junk):
                rows.append(row_of(topics.setdefault(piece[0], len(topics) + 1), piece, INSTEAD))
                placed.append(piece)
                if len(rows) >= AT_ONCE:
                    _insert(database, rows, numbers_behind(directory, placed))
                    placed.clear()
    _insert(database, rows, numbers_behind(directory, placed))
    database.execute("BEGIN IMMEDIATE")
    for topic, number in topics.items():
        _drop_covered(database, number)
        query = "SELECT min(offset), max(offset + count - 1), sum(length) FROM batches WHERE topic=?"
        account = Account(number, *database.execute(query, (number,)).fetchone())
        enter(database, [topic_row(topic, account)])
        for (source,) in database.execute("SELECT DISTINCT source FROM batches WHERE topic=?", (number,)).fetchall():
            position = newest_of(database, number, source) or (-1, 0)
            enter(database, [source_row(number, source, *position)])
    database.execute("COMMIT")


def _insert(database: sqlite3.Connection, rows: list[Row], numbers: Numbers) -> None:
    database.execute("BEGIN IMMEDIATE")
    enter_numbers(database, numbers)
    enter(database, rows)
    database.execute("COMMIT")
    rows.clear()


def _drop_covered(database: sqlite3.Connection, number: int) -> None:
    """What a repair replaced with a longer batch."""
    end = 0
    query = "SELECT seq, offset, count FROM batches WHERE topic=? ORDER BY offset"
    for seq, offset, count in database.execute(query, (number,)).fetchall():
        if offset + count <= end:
            database.execute("DELETE FROM batches WHERE seq=?", (seq,))
        end = max(end, offset + count)
