"""Opening a log: what is there, compared with what its witnesses say must be there.

The segments are the truth. The index is brought up to date with what they hold behind its last entry, and made again
from them when it is useless. Then the index, the topics' own rows and the marks of what was committed testify to what
the segments must hold. What one of them names and no segment holds is entered as damaged, so that its offsets are never
given to other messages and its messages can be asked for elsewhere.
"""

import fcntl
import logging
import os
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cubecast.errors import BadInput, DamagedLog
from cubecast.ids import Topic
from cubecast.log.damage import lost_batches
from cubecast.log.index import (
    INSTEAD,
    Account,
    Hole,
    Index,
    Numbers,
    Row,
    enter,
    enter_numbers,
    numbers_in,
    prepare,
    row_of,
    source_row,
    topic_row,
)
from cubecast.log.load import Held, LoggedTopic, load, newest_of
from cubecast.log.marks import Marks, Witness, read_witness
from cubecast.log.marks import prepare as prepare_marks
from cubecast.log.record import decode_entry
from cubecast.log.schema import DATABASE, MARKS, UNREADABLE, open_to_write, set_aside
from cubecast.log.segments import (
    Junk,
    Placed,
    SegmentReader,
    Segments,
    scan,
    segment_numbers,
    segment_path,
    sync_directory,
)
from cubecast.log.writer import Ledger

# Telling the index what the segments hold: behind its last entry, or all of it.

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


# What the witnesses say.

IDENTITY = "log.id"
_name = re.compile(r"[0-9a-f]{32}\n")


def log_identity(directory: Path) -> str:
    """The one there is, or a new one, on the disk before anybody hears of it."""
    path = directory / IDENTITY
    text = path.read_text("ascii", "replace") if path.exists() else ""
    if not _name.fullmatch(text):  # new, older than this file, or torn: nobody's offsets count here
        text = f"{secrets.token_hex(16)}\n"
        draft = path.with_suffix(".id.new")
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(directory)
    return text.strip()


log = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    ledger: Ledger
    states: dict[Topic, LoggedTopic]
    newest_at: float
    identity: str


def open_log(directory: Path) -> Opened:
    """BadInput when it is in use, or is no log."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(directory / MARKS)
    except OSError as error:
        raise BadInput(f"{directory} cannot hold a log: {error.strerror or error}") from None
    try:
        witness = read_witness(directory / MARKS)
        return _open(directory, descriptor, witness)
    except BaseException:
        os.close(descriptor)
        raise


def _lock(path: Path) -> int:
    descriptor = prepare_marks(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise BadInput(f"{path.parent} is in use: another node writes its log there") from None
    return descriptor


def check_presence(directory: Path, witness: Witness) -> None:
    """Segments that are gone are damage as long as the index knows what they held; without it nobody does."""
    if (witness.end or witness.file > 1) and not segment_numbers(directory):
        path = segment_path(directory, witness.file)
        raise BadInput(
            f"{path} is missing although {MARKS} tells of it, and no index says what it held; bring it back, or remove "
            "all of the log"
        )


def _open(directory: Path, descriptor: int, witness: Witness) -> Opened:
    database = None
    try:
        is_new = not (directory / DATABASE).exists()
        database = open_to_write(directory)
        if is_new:
            check_presence(directory, witness)
            rebuild(directory, database)
        return _recover(directory, database, descriptor, witness)
    except (DamagedLog, *UNREADABLE) as error:
        if database is not None:
            database.close()
        aside = set_aside(directory)
        log.error("%s: %s; it is made again from the segments, and kept as %s", directory / DATABASE, error, aside.name)
    database = open_to_write(directory)
    try:
        check_presence(directory, witness)
        rebuild(directory, database)
        return _recover(directory, database, descriptor, witness)
    except BaseException:
        database.close()
        raise


def _recover(directory: Path, database: sqlite3.Connection, descriptor: int, witness: Witness) -> Opened:
    contents = load(database)
    for complaint in contents.complaints:
        log.error("%s: %s", directory / DATABASE, complaint)
    accounts = {topic: held.account for topic, held in contents.topics.items()}
    index = Index(database, accounts)
    for topic, held in contents.topics.items():
        accounts[topic].last = max(held.account.last, held.actual)
    tail = look_behind(directory, database, accounts)
    index.enter(tail.found, (), numbers_behind(directory, tail.found))
    for note in tail.notes:
        log.warning("%s", note)
    contents = load(database)
    lost = lost_batches(directory, database, contents, witness)
    (newest_file,) = database.execute("SELECT coalesce(max(file), 0) FROM batches").fetchone()
    segments = _segments(directory, tail, lost, max(newest_file, witness.file))
    ledger = Ledger(index, segments, Marks(descriptor, witness))
    if lost:
        for hole in lost:
            log.error("%s", hole.damage.why)
        index.enter([], lost)
        contents = load(database)
    ledger.sync()
    (newest_at,) = database.execute("SELECT at FROM batches ORDER BY seq DESC LIMIT 1").fetchone() or (0.0,)
    states = {topic: _state(topic, held) for topic, held in contents.topics.items()}
    return Opened(ledger, states, newest_at, log_identity(directory))


def _segments(directory: Path, tail: Tail, lost: list[Hole], newest: int) -> Segments:
    """Go on behind the last frame; after damage in a new file, so that what is left of it can be looked at. It is
    newer than any that was heard of, so that what is gone is not looked for in it."""
    if tail.is_clean and not lost:
        return Segments(directory, tail.file, tail.end)
    return Segments(directory, 1 + max([newest, *segment_numbers(directory)]), 0)


def _state(topic: Topic, held: Held) -> LoggedTopic:
    account, last = held.account, max(held.account.last, held.actual)
    return LoggedTopic(topic, account.first, last, last, held.newest, held.damaged)
