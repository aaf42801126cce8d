"""Reading a whole log and saying what is wrong with it, beside its node or without one. Nothing is changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput, DamagedLog
from cubecast.ids import Topic
from cubecast.log.damage import lost_batches
from cubecast.log.load import Held, LogContents, load
from cubecast.log.marks import Witness, read_witness
from cubecast.log.reader import Reader
from cubecast.log.record import Record
from cubecast.log.recovery import check_presence, look_behind
from cubecast.log.schema import DATABASE, MARKS, UNREADABLE
from cubecast.log.segments import segment_numbers

AT_ONCE = 4 << 20
"""Bytes read at a time."""


@dataclass
class TopicReport:
    topic: Topic
    first: int
    last: int
    bytes: int
    since: float | None
    """When the first message kept was delivered."""
    until: float | None
    damage: list[str] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return self.last - self.first + 1


@dataclass
class Report:
    path: Path
    topics: list[TopicReport]
    problems: list[str]
    """Each names file and place."""

    def to_json(self) -> dict[str, Any]:
        topics = [asdict(one) | {"messages": one.messages} for one in self.topics]
        return {"path": str(self.path), "topics": topics, "problems": self.problems}


@contextmanager
def still(directory: Path) -> Iterator[Reader]:
    """The log as it is at this moment, whatever its node goes on writing."""
    reader = Reader(directory)
    try:
        reader.database.execute("BEGIN")
        yield reader
    finally:
        reader.close()


def list_topics(directory: Path) -> Report:
    """What the log holds, without reading the messages."""
    with still(directory) as reader:
        try:
            contents = load(reader.database)
            topics = [_topic(reader.database, topic, held) for topic, held in sorted(contents.topics.items())]
        except UNREADABLE as error:
            raise BadInput(f"{reader.path} is damaged: {error}; see `cubecast log check {directory}`") from None
        return Report(reader.path, topics, [f"{reader.path}: {complaint}" for complaint in contents.complaints])


def _topic(database: sqlite3.Connection, topic: Topic, held: Held) -> TopicReport:
    def at(order: str) -> float | None:
        query = f"SELECT at FROM batches WHERE topic=? ORDER BY offset {order} LIMIT 1"
        row = database.execute(query, (held.account.number,)).fetchone()
        return None if row is None else float(row[0])

    account, damage = held.account, [one.why for one in held.damaged]
    return TopicReport(
        topic, account.first, max(account.last, held.actual), account.bytes, at("ASC"), at("DESC"), damage
    )


def check_log(directory: Path) -> Report:
    """Every checksum, every offset, the database's own structure, and what the marks say must be there."""
    witness = read_witness(directory / MARKS)
    try:
        if not (directory / DATABASE).exists():
            check_presence(directory, witness)
        return _check(directory, witness)
    except BadInput as error:
        if not witness.end and not segment_numbers(directory):
            raise  # nothing says that there ever was a log
        return Report(directory / DATABASE, [], [str(error)])


def _check(directory: Path, witness: Witness) -> Report:
    with still(directory) as reader:
        problems = _structure(reader)
        report = Report(reader.path, [], problems)
        try:
            contents = load(reader.database)
            problems += [f"{reader.path}: {complaint}" for complaint in contents.complaints]
            problems += _lost(directory, reader.database, contents, witness)
            problems += _strangers(reader, contents)
            for topic, held in sorted(contents.topics.items()):
                found = _topic(reader.database, topic, held)
                found.damage = _check_topic(reader, topic, held)
                report.topics.append(found)
                problems += found.damage
        except (*UNREADABLE, DamagedLog) as error:
            problems.append(str(error) if isinstance(error, DamagedLog) else f"{reader.path}: {error}")
        report.problems = list(dict.fromkeys(problems))
        return report


def _structure(reader: Reader) -> list[str]:
    try:
        found = [row[0] for row in reader.database.execute("PRAGMA integrity_check").fetchall()]
    except UNREADABLE as error:
        found = [str(error)]
    return [f"{reader.path}: {problem}" for problem in found if problem != "ok"]


def _lost(directory: Path, database: sqlite3.Connection, contents: LogContents, witness: Witness) -> list[str]:
    """What is in the segments and not in the index yet is not lost: opening the log enters it."""
    tail = look_behind(directory, database, {topic: held.account for topic, held in contents.topics.items()})
    behind = {(topic, one) for topic, offset, many, *_ in tail.found for one in range(offset, offset + many)}
    holes = lost_batches(directory, database, contents, witness)
    lost = [
        hole.damage.why
        for hole in holes
        if not all((hole.topic, offset) in behind for offset in range(hole.damage.first, hole.damage.last + 1))
    ]
    return lost if tail.is_clean else lost + tail.notes


def _strangers(reader: Reader, contents: LogContents) -> list[str]:
    known = {held.account.number for held in contents.topics.values()}
    rows = reader.ask("SELECT topic, count(*) FROM batches GROUP BY topic")
    return [
        f"{reader.path}: {many} rows of batches belong to topic {number}, of which nothing is known"
        for number, many in rows
        if number not in known
    ]


def _check_topic(reader: Reader, topic: Topic, held: Held) -> list[str]:
    problems = [one.why for one in held.damaged]
    known = {one.first: one.last for one in held.damaged}
    found = (piece for piece in read_all(reader, topic, held) if isinstance(piece, DamagedLog))
    return problems + [str(piece.args[0]) for piece in found if known.get(piece.args[1]) != piece.args[2]]


def read_all(reader: Reader, topic: Topic, held: Held) -> Iterator[Record | DamagedLog]:
    """Every record kept, and in their places the ranges that are damaged: `args` are text, first and last offset."""
    offset, last = held.account.first, max(held.actual, held.account.last)
    damaged = {one.first: one for one in held.damaged}
    while offset <= last:
        entry = damaged.get(offset)
        end = min((first - 1 for first in damaged if first > offset), default=last)
        piece: Any = DamagedLog(entry.why, entry.first, entry.last) if entry is not None else None
        if piece is None:
            try:
                records = reader.read(topic, offset, end, AT_ONCE)
                yield from records
                offset = records[-1].last + 1
                continue
            except DamagedLog as error:
                piece = error if len(error.args) > 2 else DamagedLog(str(error), offset, end)
        yield piece
        offset = max(offset, piece.args[2]) + 1
