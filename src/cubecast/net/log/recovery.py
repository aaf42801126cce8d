"""Opening a log: what the database holds, compared with what its witnesses say it must hold.

Three things testify to a topic's last offset: the batches themselves, the topic's own row, and the marks of what was
committed since the last checkpoint. What one of them names and the batches lack is entered as damaged, so that its
offsets are never given to other messages and its messages can be asked for elsewhere.
"""

import fcntl
import logging
import os
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.ids import Topic
from cubecast.net.log.ledger import Hole, Ledger
from cubecast.net.log.load import Contents, Held, load, missing_runs
from cubecast.net.log.marks import Mark, Marks, Witness, prepare, read_witness
from cubecast.net.log.record import Damage, Run
from cubecast.net.log.schema import DATABASE, MARKS, identity, open_to_write
from cubecast.net.log.shelf import Shelf

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    ledger: Ledger
    shelves: dict[Topic, Shelf]
    newest_at: float


def open_log(directory: Path) -> Opened:
    """BadInput when it is in use, or is no log."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(directory / MARKS)
    except OSError as error:
        raise BadInput(f"{directory} cannot hold a log: {error.strerror or error}") from None
    database = None
    try:
        witness = read_witness(directory / MARKS)
        check_presence(directory, witness)
        database = open_to_write(directory, secrets.token_hex(16))
        return _open(directory, database, descriptor, witness)
    except BaseException as error:
        if database is not None:
            database.close()
        os.close(descriptor)
        if isinstance(error, sqlite3.DatabaseError):
            raise BadInput(f"{directory / DATABASE} is damaged: {error}") from None
        raise


def _lock(path: Path) -> int:
    descriptor = prepare(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise BadInput(f"{path.parent} is in use: another node writes its log there") from None
    return descriptor


def check_presence(directory: Path, witness: Witness) -> None:
    path = directory / DATABASE
    if witness.identity and not (path.exists() and path.stat().st_size):
        raise BadInput(f"{path} is missing or empty although {MARKS} tells of it; bring it back, or remove both")


def _open(directory: Path, database: sqlite3.Connection, descriptor: int, witness: Witness) -> Opened:
    contents = load(database)
    for complaint in contents.complaints:
        log.error("%s: %s", directory / DATABASE, complaint)
    lost = lost_batches(directory, database, contents, witness)
    ledger = Ledger(
        database,
        Marks(descriptor, identity(database), witness),
        {topic: held.account for topic, held in contents.topics.items()},
    )
    if lost:
        for hole in lost:
            log.error("%s", hole.damage.why)
        ledger.commit(lost)
        contents = load(database)
    ledger.checkpoint()
    (newest_at,) = database.execute("SELECT at FROM batches ORDER BY seq DESC LIMIT 1").fetchone() or (0.0,)
    return Opened(ledger, {topic: _shelf(topic, held) for topic, held in contents.topics.items()}, newest_at)


def _shelf(topic: Topic, held: Held) -> Shelf:
    account, last = held.account, max(held.account.last, held.actual)
    return Shelf(topic, account.first, last, last, account.bytes, held.newest, held.damaged)


def lost_batches(directory: Path, database: sqlite3.Connection, contents: Contents, witness: Witness) -> list[Hole]:
    """What was on the disk once and is not found in the batches."""
    name = identity(database)
    if witness.identity not in ("", name):
        raise BadInput(
            f"{directory / MARKS} belongs to another log than {DATABASE} beside it; one of them was replaced"
        )
    holes = [*_unfound(directory, database, contents, witness.marks)]
    ends = {topic: max(held.actual, 0) for topic, held in contents.topics.items()}
    for hole in holes:
        ends[hole.topic] = max(ends.get(hole.topic, 0), hole.damage.last)
    for topic, held in contents.topics.items():
        first, last = ends[topic] + 1, held.account.last
        if first <= last:
            ids = missing_runs(database, held.account.number, held.newest, first, last)
            why = f"{directory / DATABASE}: topic {topic}, offsets {first} to {last}: the batches end before them"
            holes.append(Hole(topic, Damage(first, last, ids, why)))
    return holes


def _unfound(directory: Path, database: sqlite3.Connection, contents: Contents, marks: Iterable[Mark]) -> list[Hole]:
    """Committed since the last checkpoint and not in the database: its write-ahead log was cut short or damaged."""
    runs: dict[Topic, list[tuple[int, int, list[Run]]]] = {}
    query = "SELECT count(*) FROM batches WHERE topic=? AND offset=? AND count=?"
    for mark in marks:
        held, end = contents.topics.get(mark.topic), mark.offset + mark.many - 1
        known = held is not None and (
            end < held.account.first
            or any(one.first <= mark.offset and end <= one.last for one in held.damaged)
            or database.execute(query, (held.account.number, mark.offset, mark.many)).fetchone()[0]
        )
        if not known:
            found = runs.setdefault(mark.topic, [])
            if found and found[-1][1] + 1 == mark.offset:
                found[-1] = found[-1][0], end, [*found[-1][2], Run(mark.first, mark.many)]
            else:
                found.append((mark.offset, end, [Run(mark.first, mark.many)]))
    where = directory / f"{DATABASE}-wal"
    return [
        Hole(
            topic,
            Damage(
                first,
                last,
                tuple(ids),
                f"{where}: topic {topic}, offsets {first} to {last}: were committed and are not there any more",
            ),
        )
        for topic, found in runs.items()
        for first, last, ids in found
    ]
