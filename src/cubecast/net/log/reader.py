"""Questions to the database, in a thread that may wait for the disk. Every batch is checked before it is handed out."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from cubecast.errors import DamagedLog
from cubecast.ids import MessageId, Topic
from cubecast.net.log.record import RECORD_OVERHEAD, Cut, Record, body_checksum, decode_block, head_checksum
from cubecast.net.log.schema import DATABASE, open_to_read

COLUMNS = "seq, offset, count, at, source, incarnation, counter, head, body, block"
AT_ONCE = 64


class Reader:
    """A connection of its own, which never keeps the writer from moving on."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / DATABASE
        self._database = open_to_read(directory)
        self._numbers: dict[Topic, int] = {}

    def close(self) -> None:
        self._database.close()

    def read(self, topic: Topic, offset: int, last: int, most_bytes: int) -> list[Record]:
        """From this offset to `last` or until the bytes are used up, at least one record.

        What is damaged is never passed over: records before it are returned, and asked for itself it raises.
        """
        records: list[Record] = []
        expected, size = offset, 0
        while expected <= last and size < most_bytes:
            rows = self._rows(topic, expected)
            if not rows:
                return self._stop(records, topic, expected, last, "nothing is there")
            for row in rows:
                start, block = row[1], row[-1]
                if start > expected:
                    return self._stop(records, topic, expected, start - 1, "the index leads past it")
                record = _checked(topic, row)
                if isinstance(record, str):
                    end = start + max(1, row[2]) - 1
                    return self._stop(records, topic, expected, end, f"row {row[0]} of batches: {record}")
                records.append(record.since(expected))
                expected = record.last + 1
                size += len(block) + RECORD_OVERHEAD
                if expected > last or size >= most_bytes:
                    break
        return records

    def _rows(self, topic: Topic, offset: int) -> list[Any]:
        """Those that hold the offset and what follows."""
        number = self.number(topic)
        start = "(SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2)"
        query = (
            f"SELECT {COLUMNS} FROM batches WHERE topic=?1 AND offset>=coalesce({start}, ?2) ORDER BY offset LIMIT ?3"
        )
        return self._ask(query, number, offset, AT_ONCE)

    def _stop(self, records: list[Record], topic: Topic, first: int, last: int, why: str) -> list[Record]:
        if not records:
            raise DamagedLog(f"{self.path}: topic {topic}, offsets {first} to {last}: {why}", first, last)
        return records

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
        return low

    def _around(self, topic: Topic, offset: int) -> tuple[int, int, float]:
        query = "SELECT offset, count, at FROM batches WHERE topic=? AND offset<=? ORDER BY offset DESC LIMIT 1"
        for found in self._ask(query, self.number(topic), offset):
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
        for offset, counter, count in self._ask(before, number, source, *known):
            if counter + count - 1 > known[1]:
                return int(offset + known[1] - counter + 1)
        after = (
            "SELECT offset FROM batches WHERE topic=? AND source=? AND (incarnation, counter) > (?, ?) "
            "ORDER BY incarnation, counter LIMIT 1"
        )
        for (offset,) in self._ask(after, number, source, *known):
            return int(offset)
        return otherwise

    def number(self, topic: Topic) -> int:
        if topic not in self._numbers:
            for (number,) in self._ask("SELECT id FROM topics WHERE name=?", topic):
                self._numbers[topic] = number
        return self._numbers.get(topic, -1)

    def _ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise DamagedLog(f"{self.path}: {error}") from None


def _checked(topic: Topic, row: Any) -> Record | str:
    """The record, or what is wrong with the row."""
    _, offset, count, at, *first, head, body, block = row
    message = MessageId(*first)
    try:
        if head != head_checksum(topic, message, count, offset, at):
            return "its names do not match their checksum"
        if body != body_checksum(head, block):
            return "its messages do not match their checksum"
        payloads = decode_block(block)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, ArithmeticError) as error:
        return f"unreadable: {error}"
    return (
        Record(topic, message, payloads, offset, at) if len(payloads) == count else "it has another number of messages"
    )
