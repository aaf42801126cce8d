"""Questions to the database, in a thread that may wait for the disk. Every batch is checked before it is handed out."""

import sqlite3
import struct
from pathlib import Path
from typing import Any

import msgspec

from cubecast.errors import DamagedLog, Forgotten
from cubecast.ids import MessageId, Topic
from cubecast.net.log.load import missing_runs
from cubecast.net.log.record import RECORD_OVERHEAD, Cut, Record, Run, body_checksum, decode_block, head_checksum
from cubecast.net.log.schema import DATABASE, open_to_read

COLUMNS = "seq, offset, count, at, source, incarnation, counter, head, body, block"
AT_ONCE = 64


class Reader:
    """A connection of its own, which never keeps the writer from moving on."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / DATABASE
        self.database = open_to_read(directory)
        self._numbers: dict[Topic, int] = {}

    def close(self) -> None:
        self.database.close()

    def read(self, topic: Topic, offset: int, last: int, most_bytes: int) -> list[Record]:
        """From this offset to `last` or until the bytes are used up, at least one record.

        What is damaged is never passed over: records before it are returned, and asked for itself it raises.
        """
        records: list[Record] = []
        expected, size = offset, 0
        try:
            while expected <= last and size < most_bytes:
                for row in self._rows(topic, expected, last):
                    record = self._checked(topic, row, expected, last)
                    records.append(record.since(expected))
                    expected = record.last + 1
                    size += len(row[-1]) + RECORD_OVERHEAD
                    if expected > last or size >= most_bytes:
                        break
        except (DamagedLog, Forgotten):
            if not records:
                raise
        return records

    def _rows(self, topic: Topic, offset: int, last: int) -> list[Any]:
        """The one that holds the offset, and some that follow."""
        start = "(SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2)"
        begin = f"FROM batches WHERE topic=?1 AND offset>=coalesce({start}, ?2) ORDER BY offset"
        number, query = self.number(topic), f"SELECT {COLUMNS} {begin} LIMIT ?3"
        try:
            rows = self.ask(query, number, offset, AT_ONCE)
        except DamagedLog:
            try:
                rows = self.ask(query, number, offset, 1)
            except DamagedLog as error:
                raise self._damage(topic, offset, self._readable(topic, offset, last) - 1, str(error)) from None
        if not rows:
            raise self._damage(topic, offset, last, "nothing is there")
        return rows

    def _readable(self, topic: Topic, offset: int, last: int) -> int:
        """The next offset whose batch can be read at all."""
        try:
            query = "SELECT offset FROM batches INDEXED BY by_offset WHERE topic=? AND offset>? ORDER BY offset"
            for (start,) in self.ask(query, self.number(topic), offset):
                try:
                    self.ask("SELECT * FROM batches WHERE topic=? AND offset=?", self.number(topic), start)
                    return int(start)
                except DamagedLog:
                    continue
        except DamagedLog:
            pass
        return last + 1

    def _checked(self, topic: Topic, row: Any, expected: int, last: int) -> Record:
        start = row[1]
        if start > expected:
            raise self._damage(topic, expected, start - 1, "rows before and after it are there, it is not")
        record = checked(topic, row)
        if isinstance(record, Record) and record.last >= expected:
            return record
        after = self.ask("SELECT min(offset) FROM batches WHERE topic=? AND offset>?", self.number(topic), start)
        end = last if after[0][0] is None else min(last, after[0][0] - 1)
        if isinstance(record, Record):
            raise self._damage(topic, record.last + 1, end, f"it is not there, behind row {row[0]} of batches")
        raise self._damage(topic, start, end, f"row {row[0]} of batches: {record}", names(topic, row, end - start + 1))

    def _damage(
        self, topic: Topic, first: int, last: int, why: str, ids: tuple[Run, ...] = ()
    ) -> DamagedLog | Forgotten:
        for (kept,) in self.ask("SELECT first FROM topics WHERE id=?", self.number(topic)):
            if first < kept:  # meanwhile
                return Forgotten(f"{topic}: offset {first} is not kept any more; the first one is {kept}", kept)
        return DamagedLog(f"{self.path}: topic {topic}, offsets {first} to {last}: {why}", first, last, ids)

    def infer(self, topic: Topic, newest: Cut, first: int, last: int) -> tuple[Run, ...]:
        """The names of the messages there, from what is left around them."""
        try:
            return missing_runs(self.database, self.number(topic), newest, first, last)
        except sqlite3.DatabaseError:
            return ()

    def offset_at(self, topic: Topic, time: float, first: int, last: int) -> int:
        """The first offset delivered at that time or later; times never fall, so halving finds it."""
        low, high = first, last + 1
        while low < high:
            middle = (low + high) // 2
            offset, count, at = self._around(topic, middle)
            if at < time:
                low = offset + count
            else:
                high = min(middle, offset)
        return max(low, first)

    def _around(self, topic: Topic, offset: int) -> tuple[int, int, float]:
        query = "SELECT offset, count, at FROM batches WHERE topic=? AND offset<=? ORDER BY offset DESC LIMIT 1"
        for found in self.ask(query, self.number(topic), offset):
            return found[0], max(found[1], offset - found[0] + 1), found[2]
        return offset, 1, float("-inf")

    def offset_after_cut(self, topic: Topic, cut: Cut, newest: Cut, first: int, last: int) -> int:
        """The first offset of a message the cut does not hold."""
        found = last + 1
        for source, position in newest.items():
            known = cut.get(source, (-1, 0))
            if position > known:
                found = min(found, self._after(topic, source, known, found))
        return max(found, first)

    def _after(self, topic: Topic, source: int, known: tuple[int, int], otherwise: int) -> int:
        number = self.number(topic)
        before = (
            "SELECT offset, counter, count FROM batches WHERE topic=? AND source=? AND incarnation=? AND counter<=? "
            "ORDER BY counter DESC LIMIT 1"
        )
        for offset, counter, count in self.ask(before, number, source, *known):
            if counter + count - 1 > known[1]:
                return int(offset + known[1] - counter + 1)
        after = (
            "SELECT offset FROM batches WHERE topic=? AND source=? AND (incarnation, counter) > (?, ?) "
            "ORDER BY incarnation, counter LIMIT 1"
        )
        for (offset,) in self.ask(after, number, source, *known):
            return int(offset)
        return otherwise

    def number(self, topic: Topic) -> int:
        if topic not in self._numbers:
            for (number,) in self.ask("SELECT id FROM topics WHERE name=?", topic):
                self._numbers[topic] = number
        return self._numbers.get(topic, -1)

    def ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self.database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise DamagedLog(f"{self.path}: {error}") from None


def checked(topic: Topic, row: Any) -> Record | str:
    """The record, or what is wrong with the row."""
    _, offset, count, at, *first, head, body, block = row
    message = MessageId(*first)
    try:
        if head != head_checksum(topic, message, count, offset, at):
            return "its names do not match their checksum"
        if body != body_checksum(head, block):
            return "its messages do not match their checksum"
        payloads = decode_block(block)
    except (msgspec.MsgspecError, struct.error, ValueError, TypeError) as error:
        return f"unreadable: {error}"
    return (
        Record(topic, message, payloads, offset, at) if len(payloads) == count else "some of its messages are missing"
    )


def names(topic: Topic, row: Any, many: int) -> tuple[Run, ...]:
    """Of a damaged row's messages, when at least these are as written."""
    _, offset, count, at, *first, head, _, _ = row
    try:
        good = count == many and head == head_checksum(topic, MessageId(*first), count, offset, at)
    except (struct.error, TypeError):
        return ()
    return (Run(MessageId(*first), count),) if good else ()
