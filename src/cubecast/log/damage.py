"""Damage: what was on the disk once and is not there, and which of a peer's records fill the place."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cubecast.ids import MessageId, Topic
from cubecast.log.index import Hole
from cubecast.log.load import Held, LogContents, missing_runs
from cubecast.log.marks import Witness
from cubecast.log.record import Damage, Mark, Record, Run
from cubecast.log.segments import segment_numbers, segment_path


def lost_batches(directory: Path, database: sqlite3.Connection, contents: LogContents, witness: Witness) -> list[Hole]:
    """Testified by the index, by the marks, by the topics' rows, in this order; nothing twice."""
    holes: list[Hole] = []
    for found in (_beyond(directory, database, contents), _unfound(directory, database, contents, witness.marks)):
        holes += _merged([one for one in found if not _is_known(contents, holes, one)])
    for topic, held in contents.topics.items():
        ends = [held.actual, *(hole.damage.last for hole in holes if hole.topic == topic)]
        first, last = max(ends) + 1, held.account.last
        if first <= last:
            ids = missing_runs(database, held.account.number, held.newest, first, last)
            holes.append(_hole(directory, topic, first, last, ids, "nothing testifies to them but their number"))
    return holes


def _hole(where: Path, topic: Topic, first: int, last: int, ids: Iterable[Run], why: str) -> Hole:
    return Hole(topic, Damage(first, last, tuple(ids), f"{where}: topic {topic}, offsets {first} to {last}: {why}"))


def _is_known(contents: LogContents, holes: list[Hole], new: Hole) -> bool:
    held, damage = contents.topics.get(new.topic), new.damage
    if held is not None and damage.last < held.account.first:
        return True
    known = [] if held is None else list(held.damaged)
    known += [hole.damage for hole in holes if hole.topic == new.topic]
    return any(one.first <= damage.first and damage.last <= one.last for one in known)


def _merged(holes: list[Hole]) -> list[Hole]:
    """Neighbours as one."""
    merged: dict[Topic, list[Hole]] = {}
    for hole in sorted(holes, key=lambda one: (one.topic, one.damage.first)):
        before = merged.setdefault(hole.topic, [])
        if before and before[-1].damage.last + 1 == hole.damage.first:
            last, damage = before.pop().damage, hole.damage
            file, _, why = last.why.partition(": topic")
            text = f"{file}: topic {hole.topic}, offsets {last.first} to {damage.last}: {why.partition(': ')[2]}"
            hole = Hole(hole.topic, Damage(last.first, damage.last, last.ids + damage.ids, text))
        before.append(hole)
    return [hole for found in merged.values() for hole in found]


def _beyond(directory: Path, database: sqlite3.Connection, contents: LogContents) -> Iterator[Hole]:
    """What the index knows in places that are not there: files that are shorter, or gone."""
    topics = {held.account.number: topic for topic, held in contents.topics.items()}
    sizes = {number: segment_path(directory, number).stat().st_size for number in segment_numbers(directory)}
    for (file,) in database.execute("SELECT DISTINCT file FROM batches").fetchall():
        query = (
            "SELECT topic, offset, count, source, incarnation, counter, start FROM batches "
            "WHERE file=? AND start + length > ?"
        )
        for number, offset, count, *first, start in database.execute(query, (file, sizes.get(file, 0))).fetchall():
            why = f"they were at {start}, where the file ends" if file in sizes else "the file is gone"
            run = Run(MessageId(*first), count)
            if number in topics:
                yield _hole(segment_path(directory, file), topics[number], offset, offset + count - 1, [run], why)


def _unfound(
    directory: Path, database: sqlite3.Connection, contents: LogContents, marks: Iterable[Mark]
) -> Iterator[Hole]:
    """What was acknowledged and never came into the index, because the end of the segments is gone or damaged."""
    where = segment_path(directory, max(segment_numbers(directory), default=1))
    for mark in marks:
        held = contents.topics.get(mark.topic)
        if held is None or not _holds(database, held, mark):
            run, end = Run(mark.first, mark.many), mark.offset + mark.many - 1
            yield _hole(where, mark.topic, mark.offset, end, [run], "they were on the disk and are not there any more")


def _holds(database: sqlite3.Connection, held: Held, mark: Mark) -> bool:
    """Maybe in other batches, as after a repair."""
    query = "SELECT offset, count FROM batches WHERE topic=? AND offset<=? ORDER BY offset DESC LIMIT 1"
    row: Any = database.execute(query, (held.account.number, mark.offset)).fetchone()
    return row is not None and mark.offset < row[0] + row[1]


def fitting(records: Sequence[Record], damage: Damage, is_meant: bool) -> list[Record]:
    """The records' parts that are the range's messages, at its offsets; nothing unless they fill it exactly.

    Where the range's messages are not known by name the records are taken as they are, if they are meant for it.
    """
    parts = list(_named(records, damage.ids)) if damage.ids else list(records) if is_meant else []
    if sum(len(part.payloads) for part in parts) != damage.last - damage.first + 1:
        return []
    placed, offset = [], damage.first
    for part in parts:
        placed.append(part._replace(offset=offset))
        offset += len(part.payloads)
    return placed


def _named(records: Sequence[Record], runs: Sequence[Run]) -> Iterator[Record]:
    """What of the records the runs name, in the records' order, each message once."""
    missing = {run: set(range(run.first.counter, run.first.counter + run.many)) for run in runs}
    for record in records:
        for run, counters in missing.items():
            if record.first[:2] == run.first[:2]:
                yield from _part(record, counters)


def _part(record: Record, counters: set[int]) -> Iterator[Record]:
    start = record.first.counter
    wanted = [number for number in range(start, start + len(record.payloads)) if number in counters]
    if wanted:
        counters.difference_update(wanted)
        if wanted[-1] - wanted[0] + 1 == len(wanted):
            skipped = wanted[0] - start
            first = record.first._replace(counter=wanted[0])
            yield record._replace(first=first, payloads=record.payloads[skipped : skipped + len(wanted)])
        else:
            for number in wanted:
                yield record._replace(
                    first=record.first._replace(counter=number), payloads=[record.payloads[number - start]]
                )
