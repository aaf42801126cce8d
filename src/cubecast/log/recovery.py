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
from dataclasses import dataclass
from pathlib import Path

from cubecast.errors import BadInput, DamagedLog
from cubecast.ids import Topic
from cubecast.log.adoption import Tail, look_behind, numbers_behind, rebuild
from cubecast.log.damage import lost_batches
from cubecast.log.index import Hole, Index
from cubecast.log.ledger import Ledger
from cubecast.log.load import Held, LoggedTopic, load
from cubecast.log.marks import Marks, Witness, prepare, read_witness
from cubecast.log.schema import DATABASE, MARKS, UNREADABLE, open_to_write, set_aside
from cubecast.log.segments import Segments, segment_numbers, segment_path, sync_directory

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
    descriptor = prepare(path)
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
