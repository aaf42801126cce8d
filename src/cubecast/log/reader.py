"""Questions to a log, in a thread that may wait for the disk. Every batch is checked before it is handed out."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from cubecast.errors import DamagedLog, Forgotten
from cubecast.ids import MessageId, Topic
from cubecast.log.index import last_numbers
from cubecast.log.load import missing_runs
from cubecast.log.record import Broken, Cut, Entry, Mark, Record, Run, decode_entry, decode_frame
from cubecast.log.schema import DATABASE, UNREADABLE, open_to_read
from cubecast.log.segments import SegmentReader, segment_path

# Cuts at offsets of a log, each found from the nearest one before it that is remembered.
#
# Looking for each publisher's last message before an offset would go back through the whole index for one that has
# been silent since. A stream that reads a topic from one place to the next asks for neighbouring cuts and pays for the
# rows between.

MOST = 32
"""Cuts of a topic that are remembered; half of them go when there are more."""
NOTHING = (-1, 0)
BETWEEN = """
SELECT source, incarnation, counter, count, max(offset) FROM batches
WHERE topic=?1 AND offset<=?3
AND offset>=coalesce((SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2), ?2) GROUP BY source
"""
EARLIEST = "SELECT source, incarnation, counter, min(offset) FROM batches WHERE topic=? GROUP BY source"
_offset = itemgetter(0)


class Cuts:
    def __init__(self, ask: Callable[..., list[Any]]) -> None:
        self._ask = ask
        self._known: dict[int, list[tuple[int, Cut]]] = {}
        """By topic, in the order of their offsets. What was logged up to an offset does not change any more."""

    def at(self, topic: int, newest: Cut, first: int, offset: int) -> Cut:
        """Of the rows up to this offset, whether or not they are still kept."""
        known = self._known.setdefault(topic, [])
        place = bisect_right(known, offset, key=_offset)
        begin, before = known[place - 1] if place else (first - 1, self._forgotten(topic, newest, first))
        cut = dict(before)
        if begin < offset:
            for source, incarnation, counter, count, start in self._ask(BETWEEN, topic, begin, offset):
                position = incarnation, counter + min(count, offset - start + 1) - 1
                cut[source] = max(cut.get(source, NOTHING), position)
            insort(known, (offset, dict(cut)), key=_offset)
            if len(known) > MOST:
                del known[1::2]
        return cut

    def _forgotten(self, topic: int, newest: Cut, first: int) -> Cut:
        """Up to what is kept: the first message that is kept of a publisher tells what came before it."""
        if first == 1:
            return {}
        kept = {source: (incarnation, counter - 1) for source, incarnation, counter, _ in self._ask(EARLIEST, topic)}
        return {source: kept.get(source, position) for source, position in newest.items()}


COLUMNS = "offset, count, source, incarnation, counter, file, start, length"
Read = TypeVar("Read", Record, Entry)
AT_ONCE = 256
"""Rows of one question."""
MOST_NAMES = 4096
"""Batches of one question without their messages."""
PIECE = 1 << 20
"""Bytes read at a time to see how far damage reaches."""


class Reader:
    """Connections of its own, which never keep the writer from moving on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / DATABASE
        self.database = open_to_read(directory)
        self._segments = SegmentReader(directory)
        self._numbers: dict[Topic, int] = {}
        self._cuts = Cuts(self.ask)

    def close(self) -> None:
        self.database.close()
        self._segments.close()

    def read(self, topic: Topic, offset: int, last: int, most_bytes: int) -> list[Record]:
        """From this offset to `last` or until the bytes are used up, at least one record.

        What is damaged is never passed over: records before it are returned, and asked for itself it raises.
        """
        return [record.since(offset) for record in self._read(topic, offset, last, most_bytes, decode_frame)]

    def entries(self, topic: Topic, offset: int, last: int, most_bytes: int) -> list[Entry]:
        """The same with the messages packed; the first one is whole, even if it begins before the offset."""
        return self._read(topic, offset, last, most_bytes, decode_entry)

    def _read(
        self, topic: Topic, offset: int, last: int, most_bytes: int, decode: Callable[[bytes], Read]
    ) -> list[Read]:
        found: list[Read] = []
        expected, size = offset, 0
        try:
            while expected <= last and size < most_bytes:
                rows = self._rows(topic, expected, last)
                for row, frame in zip(rows, self._frames(rows, most_bytes - size), strict=False):
                    found.append(self._checked(topic, row, frame, expected, last, decode))
                    expected = found[-1].last + 1
                    size += len(frame)
                    if expected > last or size >= most_bytes:
                        break
        except (DamagedLog, Forgotten):
            if not found:
                raise
        return found

    def names(self, topic: Topic, offset: int, last: int) -> list[Entry]:
        """Which messages these are, without them: the segments are not looked at."""
        columns = "offset, count, source, incarnation, counter, at"
        start = "(SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2)"
        query = f"SELECT {columns} FROM batches WHERE topic=?1 AND offset BETWEEN coalesce({start}, ?2) AND ?3 "
        found: list[Entry] = []
        expected = offset
        for at_, count, *first, at in self.ask(
            f"{query} ORDER BY offset LIMIT {MOST_NAMES}", self.number(topic), offset, last
        ):
            if at_ > expected or at_ + count <= expected:
                break
            found.append(Entry(topic, at_, count, MessageId(*first), at, b"", 0, 0))
            expected = at_ + count
        if not found:
            raise self._damage(self.path, topic, offset, last, "the index knows nothing of them")
        return found

    def _rows(self, topic: Topic, offset: int, last: int) -> list[Any]:
        """Where the batch is that holds the offset, and some that follow."""
        start = "(SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2)"
        query = (
            f"SELECT {COLUMNS} FROM batches WHERE topic=?1 AND offset>=coalesce({start}, ?2) ORDER BY offset LIMIT ?3"
        )
        number = self.number(topic)
        try:
            rows = self.ask(query, number, offset, AT_ONCE)
        except DamagedLog:
            try:
                rows = self.ask(query, number, offset, 1)
            except DamagedLog as error:
                raise self._damage(self.path, topic, offset, last, str(error)) from None
        rows = list(takewhile(lambda row: all(type(one) is int for one in row), rows))
        if not rows:
            raise self._damage(self.path, topic, offset, last, "the index knows nothing of them")
        return rows

    def _frames(self, rows: list[Any], most_bytes: int) -> list[bytes]:
        """The bytes of the first few rows; neighbours are read together."""
        frames: list[bytes] = []
        total = 0
        while len(frames) < len(rows) and total < most_bytes:
            group = _neighbours(rows[len(frames) :], most_bytes - total)
            file, begin = group[0][5], group[0][6]
            data = self._segments.read(file, begin, sum(row[7] for row in group))
            total += len(data)
            frames += [data[row[6] - begin : row[6] - begin + row[7]] for row in group]
            if not data:
                break
        return frames or [b""]

    def _checked(
        self, topic: Topic, row: Any, frame: bytes, expected: int, last: int, decode: Callable[[bytes], Read]
    ) -> Read:
        start, count, *first, file, place, _ = row
        if start > expected:
            raise self._damage(self.path, topic, expected, start - 1, "the index has what is around them, not them")
        try:
            record = decode(frame)
        except Broken as error:
            end = self._before_next_good(topic, start, last)
            ids = _names(error, topic, start, end)
            why = f"the frame at {place}: {error.args[0]}"
            raise self._damage(segment_path(self._directory, file), topic, start, end, why, ids) from None
        if (record.topic, record.offset, record.many, record.first) != (topic, start, count, tuple(first)):
            end = self._before_next_good(topic, start, last)
            why = f"the frame at {place} is another one than the index says"
            raise self._damage(segment_path(self._directory, file), topic, start, end, why)
        if record.last < expected:
            end = self._before_next(topic, start, last)
            raise self._damage(self.path, topic, record.last + 1, end, "the index has what is before them, not them")
        return record

    def _before_next(self, topic: Topic, start: int, last: int) -> int:
        """How far a damaged batch reaches at most."""
        ((after,),) = self.ask("SELECT min(offset) FROM batches WHERE topic=? AND offset>?", self.number(topic), start)
        return last if after is None else min(last, int(after) - 1)

    def _before_next_good(self, topic: Topic, start: int, last: int) -> int:
        """How far damage reaches at most: where something was inserted or is gone, all that follows is elsewhere."""
        end = self._before_next(topic, start, last)
        try:
            while end < last:
                rows = self._rows(topic, end + 1, last)
                for row, frame in zip(rows, self._frames(rows, PIECE), strict=False):
                    if row[0] != end + 1 or _is_as_entered(frame, topic, row):
                        return end
                    end = self._before_next(topic, row[0], last)
        except (DamagedLog, Forgotten):
            pass  # of another kind, and told when it is read
        return end

    def _damage(
        self, where: Path, topic: Topic, first: int, last: int, why: str, ids: tuple[Run, ...] = ()
    ) -> DamagedLog | Forgotten:
        for (kept,) in self.ask("SELECT first FROM topics WHERE id=?", self.number(topic)):
            if first < kept:  # meanwhile
                return Forgotten(f"{topic}: offset {first} is not kept any more; the first one is {kept}", kept)
        return DamagedLog(f"{where}: topic {topic}, offsets {first} to {last}: {why}", first, last, ids)

    def infer(self, topic: Topic, newest: Cut, first: int, last: int) -> tuple[Run, ...]:
        """The names of the messages there, from what is left around them."""
        try:
            return missing_runs(self.database, self.number(topic), newest, first, last)
        except UNREADABLE:
            return ()

    # Finding one's place

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
        number, found = self.number(topic), last + 1
        query = (
            "SELECT offset, incarnation, counter FROM batches WHERE topic=?1 AND source=?2 AND offset<?3 "
            "AND (incarnation>?4 OR (incarnation=?4 AND counter+count-1>?5)) ORDER BY offset LIMIT 1"
        )
        for source, position in newest.items():
            known = cut.get(source, (-1, 0))
            if position > known:
                for offset, incarnation, counter in self.ask(query, number, source, found, *known):
                    skipped = known[1] - counter + 1 if incarnation == known[0] else 0
                    found = offset + max(0, skipped)
        return max(found, first)

    def offset_before_cut(self, topic: Topic, cut: Cut) -> int:
        """The last offset of a message the cut holds; 0 when there is none."""
        number, found = self.number(topic), 0
        query = (
            "SELECT offset, count, incarnation, counter FROM batches WHERE topic=?1 AND source=?2 AND offset>=?3 "
            "AND (incarnation<?4 OR (incarnation=?4 AND counter<=?5)) ORDER BY offset DESC LIMIT 1"
        )
        for source, known in cut.items():
            for offset, count, incarnation, counter in self.ask(query, number, source, found, *known):
                held = min(count, known[1] - counter + 1) if incarnation == known[0] else count
                found = max(found, offset + held - 1)
        return found

    def cut_at(self, topic: Topic, newest: Cut, first: int, offset: int) -> Cut:
        """Per publisher the newest message up to this offset."""
        return self._cuts.at(self.number(topic), newest, first, offset)

    def last_numbers(self, name: str, topics: Sequence[Topic]) -> dict[Topic, int]:
        try:
            return last_numbers(self.database, name, topics)
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path}: {error}") from None

    def number(self, topic: Topic) -> int:
        if topic not in self._numbers:
            for (number,) in self.ask("SELECT id FROM topics WHERE name=?", topic):
                self._numbers[topic] = number
        return self._numbers.get(topic, -1)

    def ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self.database.execute(query, values).fetchall()
        except UNREADABLE as error:
            raise DamagedLog(f"{self.path}: {error}") from None


def _is_as_entered(frame: bytes, topic: Topic, row: Any) -> bool:
    try:
        record = decode_frame(frame)
    except Broken:
        return False
    return (record.topic, record.offset, len(record.payloads), record.first) == (topic, *row[:2], tuple(row[2:5]))


def _neighbours(rows: list[Any], most_bytes: int) -> list[Any]:
    """As many as lie one behind the other in a file, at least one."""
    group, size = rows[:1], rows[0][7]
    for before, row in pairwise(rows):
        if row[5] != before[5] or row[6] != before[6] + before[7] or size >= most_bytes:
            break
        group.append(row)
        size += row[7]
    return group


def _names(error: Broken, topic: Topic, start: int, end: int) -> tuple[Run, ...]:
    """Of a damaged batch's messages, when at least these are as written."""
    head = error.args[1] if len(error.args) > 1 else None
    if isinstance(head, Mark) and (head.topic, head.offset, head.many) == (topic, start, end - start + 1):
        return (Run(MessageId(*head.first), head.many),)
    return ()
