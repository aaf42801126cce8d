"""A log that forgets everything with its process: the dumb thing that replays are tried against."""

import asyncio
from collections.abc import Callable

from cubecast.errors import DamagedLog, Forgotten
from cubecast.ids import MessageId, Topic
from cubecast.log.record import Cut, Damage, Entry, Packed, Record


class MemoryLog:
    """Whoever reads waits for some turns of the event loop, as if for a disk."""

    def __init__(self, turns: int = 1) -> None:
        self._turns = turns
        self.records: dict[Topic, list[Record]] = {}
        self.first: dict[Topic, int] = {}
        self.damage: dict[Topic, list[tuple[int, int]]] = {}
        self.directory, self.identity = None, "memory"
        self.newest_at = 0.0
        self.has_room, self.ticket, self.trouble = True, 0, None
        self.on_room: Callable[[], None] = lambda: None

    def append_packed(self, topic: Topic, first: MessageId, packed: Packed, at: float) -> Entry:
        _, last = self.bounds(topic)
        self.newest_at = max(at, self.newest_at)
        many, *rest = packed
        entry = Entry(topic, last + 1, many, MessageId(*first), self.newest_at, *rest)
        self.records.setdefault(topic, []).append(entry.record())
        return entry

    def bounds(self, topic: Topic) -> tuple[int, int]:
        records = self.records.get(topic)
        return (self.first.get(topic, 1), records[-1].last) if records else (1, 0)

    def durable_end(self, topic: Topic) -> int:
        return self.bounds(topic)[1]

    def topics(self) -> list[Topic]:
        return sorted(self.records)

    def cut(self, topic: Topic) -> Cut:
        cut: Cut = {}
        for record in self.records.get(topic, ()):
            source, incarnation, counter = record.first
            cut[source] = max(cut.get(source, (0, 0)), (incarnation, counter + len(record.payloads) - 1))
        return cut

    def forget(self, topic: Topic, before: int) -> None:
        """Retention: offsets below this one are gone."""
        self.first[topic] = max(before, self.bounds(topic)[0])

    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        first, _ = self.bounds(topic)
        if offset < first:
            raise Forgotten(f"{topic}: offset {offset} is not kept any more", first)
        found: list[Record] = []
        size = 0
        for record in self.records.get(topic, ()):
            if record.last < offset:
                continue
            for start, end in self.damage.get(topic, ()):
                if start <= max(record.offset, offset) and record.offset <= end:
                    if found:
                        return found
                    raise DamagedLog("damaged", start, end)
            found.append(record.since(offset))
            size += sum(map(len, record.payloads))
            if size >= most_bytes:
                break
        return found

    def damaged(self, topic: Topic) -> list[Damage]:
        return [Damage(start, end, (), "damaged") for start, end in self.damage.get(topic, ())]

    async def offset_at(self, topic: Topic, time: float) -> int:
        first, last = self.bounds(topic)
        later = (one.offset for one in self.records.get(topic, ()) if one.at >= time)
        return max(first, next(later, last + 1))

    async def offset_after_cut(self, topic: Topic, cut: Cut) -> int:
        return self.bounds(topic)[0]

    async def cut_at(self, topic: Topic, offset: int) -> Cut:
        cut: Cut = {}
        for record in self.records.get(topic, ()):
            if record.offset <= offset:
                source, incarnation, counter = record.first
                many = min(len(record.payloads), offset - record.offset + 1)
                cut[source] = max(cut.get(source, (0, 0)), (incarnation, counter + many - 1))
        return cut
