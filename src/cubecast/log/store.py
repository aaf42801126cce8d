"""A node's durable log, as the event loop sees it.

    store = await Store.open(directory)
    offset = store.append(topic, first, payloads, at)
    await store.synced(store.ticket)
    records = await store.read(topic, offset, most_bytes)

What is appended in one turn of the loop is one transaction, written by a thread. Until it is on the disk it is held in
memory, and read from there. Offsets are promises only once they are durable: what a killed node had not synced is gone
and its offsets are given again. Follows decision 0019.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any, TypeVar

from cubecast.errors import Closed, DamagedLog, Forgotten, NotDurable
from cubecast.ids import MessageId, Topic
from cubecast.log.damage import fitting
from cubecast.log.ledger import Ledger
from cubecast.log.pending import Pending
from cubecast.log.reader import Reader
from cubecast.log.record import Cut, Damage, Entry, Packed, Record, Run, make_tuple, pack
from cubecast.log.recovery import Opened, open_log
from cubecast.log.retention import Janitor, Kept, Limits
from cubecast.log.shelf import NOTHING, Shelf
from cubecast.log.writer import Writer

log = logging.getLogger(__name__)

BUDGET = 8 << 20
"""Bytes that may wait for the disk before the node that appends has to wait."""
CLOSING_TIME = 10.0
SWEEP_EVERY = 1.0
"""Seconds between looks for what may be forgotten."""
Answer = TypeVar("Answer")
Read = TypeVar("Read", Record, Entry)


class Store:
    def __init__(self, directory: Path, opened: Opened, budget: int, retention: Mapping[str, Limits]) -> None:
        self.directory, self.identity = directory, opened.identity
        self._accounts = opened.ledger.index.accounts
        self._loop = asyncio.get_running_loop()
        self._shelves, self.newest_at = opened.shelves, opened.newest_at
        self._closed = False
        self.on_room: Callable[[], None] = lambda: None
        """Called when there is room again, or no use in waiting for it."""
        self.on_full: Callable[[], None] = lambda: None
        """Called with each batch that leaves no room for more; it is taken nevertheless."""
        self._writer = Writer(opened.ledger, self._from_thread(self._committed), self._from_thread(self._refused))
        self._pending = Pending(budget, self._writer.put, lambda: self.on_full())
        self._reader = Reader(directory)
        self._reading = ThreadPoolExecutor(1, "cubecast log reader")
        self._janitor = Janitor(retention)
        self._sweeps = bool(retention)
        self._next_sweep = self._loop.call_soon(self._sweep) if retention else None

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        budget: int = BUDGET,
        quota: int = 0,
        retention: Mapping[str, Limits] | None = None,
    ) -> "Store":
        """BadInput when the directory is in use or holds something else."""
        store = cls(directory, await asyncio.to_thread(open_log, directory), budget, retention or {})
        if quota:
            store.set_quota(quota)
        return store

    def set_quota(self, size: int) -> None:
        """The database's file grows no larger, as if the disk were full; 0 for the disk's own limit."""
        self._writer.call(lambda ledger: ledger.segments.set_limit(size))

    def set_budget(self, budget: int) -> None:
        self._pending.set_budget(budget)

    # Writing

    def append(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], at: float) -> int:
        """The offset of the first one. They are on the disk when `synced` says so of `ticket`."""
        return self.append_packed(topic, first, pack(payloads), at).offset

    def append_packed(self, topic: Topic, first: MessageId, packed: Packed, at: float) -> Entry:
        if self._closed:
            raise Closed("the log is closed")
        shelf = self._shelves.get(topic)
        if shelf is None:
            shelf = self._shelves[topic] = Shelf(topic)
        if at < self.newest_at:
            at = self.newest_at
        else:
            self.newest_at = at
        many, block, checksum, element = packed
        entry = make_tuple(Entry, (topic, shelf.last + 1, many, first, at, block, checksum, element))
        shelf.note(first, many)
        self._pending.add(entry)
        return entry

    @property
    def has_room(self) -> bool:
        """Is there room for more in memory? When the disk refuses there is nothing to wait for: names are kept."""
        return self._pending.has_room or self._pending.trouble is not None

    @property
    def keeps_names_only(self) -> bool:
        """Neither disk nor memory takes more."""
        return self._pending.trouble is not None and not self._pending.has_room

    @property
    def ticket(self) -> int:
        """How many batches were ever appended: the name of the last one, for `synced`."""
        return self._pending.ticket

    @property
    def durable(self) -> int:
        """How many of them are on the disk."""
        return self._pending.durable

    @property
    def trouble(self) -> NotDurable | None:
        """Why the disk takes nothing at present."""
        return self._pending.trouble

    def synced(self, ticket: int) -> Awaitable[None]:
        """Done when everything up to this ticket is on the disk; `NotDurable` as soon as the disk refuses."""
        return self._pending.synced(ticket)

    async def _write(self, change: Callable[[Ledger], Answer]) -> Answer:
        """Have the writer change something, after what was appended before; errors are the caller's."""
        done: asyncio.Future[Answer] = self._loop.create_future()

        def finish(result: Answer | Exception) -> None:
            if not done.done():
                done.set_exception(result) if isinstance(result, Exception) else done.set_result(result)

        tell = self._from_thread(finish)

        def task(ledger: Ledger) -> None:
            try:
                tell(change(ledger))
            except (sqlite3.Error, OSError) as error:
                tell(NotDurable(f"the log in {self.directory} cannot be written: {error}"))

        self._pending.hand_over()
        self._writer.call(task)
        return await done

    # What the writer says

    def _from_thread(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        def tell(news: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
                self._loop.call_soon_threadsafe(callback, news)

        return tell

    def _committed(self, count: int) -> None:
        had_room, trouble = self.has_room, self.trouble
        for gathered in self._pending.committed(count):
            for entry in {entry[0]: entry for entry in gathered.entries}.values():
                self._shelves[entry.topic].commit(entry.last)
            for topic, damage in gathered.holes:
                self._shelves[topic].commit(damage.last)
                self._shelves[topic].damaged.append(damage)
        if trouble is not None:
            log.warning("the log in %s is written again", self.directory)
        if self.has_room and not had_room:
            self.on_room()

    def _refused(self, error: Exception) -> None:
        is_news = self.trouble is None
        self._pending.refused(NotDurable(f"the log in {self.directory} cannot be written: {error}"))
        if is_news:
            log.error("%s; messages are delivered without it", self.trouble)
            self.on_room()

    # Forgetting

    def retain(self, retention: Mapping[str, Limits]) -> None:
        """By these rules from now on."""
        self._janitor = Janitor(retention)
        if retention and not self._sweeps:
            self._sweeps = True
            self._next_sweep = self._loop.call_soon(self._sweep)

    def _sweep(self) -> None:
        tell = self._from_thread(self._swept)

        def task(ledger: Ledger) -> None:
            news: tuple[list[Kept], bool] = [], False
            try:
                news = self._janitor.sweep(ledger, time())
            finally:
                tell(news)

        self._writer.call(task)
        self._next_sweep = None

    def _swept(self, news: tuple[list[Kept], bool]) -> None:
        kept, is_more_to_do = news
        for topic, first in kept:
            shelf = self._shelves[topic]
            shelf.first = first
            shelf.damaged = [one for one in shelf.damaged if one.last >= first]
        if not self._closed:
            self._next_sweep = self._loop.call_later(0 if is_more_to_do else SWEEP_EVERY, self._sweep)

    # Reading

    async def read(self, topic: Topic, offset: int, most_bytes: int) -> list[Record]:
        """Records from this offset on, in the order of offsets, at least one when there is any.

        The first may be the rest of a batch. `Forgotten` for offsets below `bounds`, `DamagedLog` for those that are
        damaged: what can be read before them is returned first, so nothing is ever left out without a word.
        """
        buffered = self._pending.records
        return await self._readable(
            topic, offset, buffered, lambda last: self._reader.read(topic, offset, last, most_bytes)
        )

    async def entries(self, topic: Topic, offset: int, most_bytes: int, content: bool = True) -> list[Entry]:
        """The same with the messages packed, or without any; the first one is whole, even if it begins before."""

        def ask(last: int) -> list[Entry]:
            reader = self._reader
            return reader.entries(topic, offset, last, most_bytes) if content else reader.names(topic, offset, last)

        return await self._readable(topic, offset, self._pending.entries, ask)

    async def _readable(
        self, topic: Topic, offset: int, buffered: Callable[[Topic, int], list[Read]], ask: Callable[[int], list[Read]]
    ) -> list[Read]:
        """From memory or from the disk, up to what is damaged."""
        shelf = self._shelves.get(topic)
        if shelf is None or offset > shelf.last:
            return []
        if offset < shelf.first:
            raise Forgotten(
                f"{topic}: offset {offset} is not kept any more; the first one is {shelf.first}", shelf.first
            )
        last = shelf.committed
        for damage in shelf.damaged:
            if damage.first <= offset <= damage.last:
                raise DamagedLog(damage.why, damage.first, damage.last)
            if offset < damage.first:
                last = min(last, damage.first - 1)
        if offset > shelf.committed:
            return buffered(topic, offset)
        try:
            return await self._ask(ask, last)
        except DamagedLog as error:
            await self._found_damage(shelf, error)
            raise

    async def _found_damage(self, shelf: Shelf, error: DamagedLog) -> None:
        """Enter it, once, so that it is known without reading there again."""
        log.error("%s", error)
        if len(error.args) == 4:
            why, first, last, ids = error.args
            ids = ids or await self._ask(self._reader.infer, shelf.topic, dict(shelf.newest), first, last)
            if not any(one.first <= last and first <= one.last for one in shelf.damaged):
                damage = Damage(first, last, ids, why)
                shelf.damaged = sorted([*shelf.damaged, damage])
                self._writer.call(lambda ledger: ledger.index.enter_damage(shelf.topic, damage))

    def bounds(self, topic: Topic) -> tuple[int, int]:
        """The first offset kept and the last one given; (1, 0) for a topic that was never heard of."""
        shelf = self._shelves.get(topic)
        return (1, 0) if shelf is None else (shelf.first, shelf.last)

    def durable_end(self, topic: Topic) -> int:
        """The last offset on the disk: with all before it, it outlives a killed process."""
        shelf = self._shelves.get(topic)
        return 0 if shelf is None else shelf.committed

    def topics(self) -> list[Topic]:
        return sorted(self._shelves)

    def cut(self, topic: Topic) -> Cut:
        """Per publisher the newest message ever logged, whether or not it is still kept."""
        shelf = self._shelves.get(topic)
        return {} if shelf is None else dict(shelf.newest)

    def damaged(self, topic: Topic) -> list[Damage]:
        """Ranges known not to be readable, in the order of offsets."""
        shelf = self._shelves.get(topic)
        return [] if shelf is None else list(shelf.damaged)

    async def repair(self, records: Sequence[Record], into: Damage | None = None) -> int:
        """Put messages had from a peer where they are missing; how many damaged ranges are whole again.

        Records are taken in their order, which must be causal; their offsets and times are the peer's and do not count.
        A range is repaired when all its messages are here. For one whose `ids` are not known say which it is: `into`.
        """
        repaired = 0
        for topic in dict.fromkeys(record.topic for record in records):
            shelf = self._shelves.get(topic)
            for damage in [] if shelf is None else list(shelf.damaged):
                pieces = fitting([one for one in records if one.topic == topic], damage, damage == into)
                if shelf is not None and pieces:
                    await self._write(lambda ledger: ledger.repair(topic, damage, pieces))  # noqa: B023 - waited for
                    shelf.damaged = [one for one in shelf.damaged if one != damage]
                    repaired += 1
        return repaired

    async def offset_at(self, topic: Topic, when: float) -> int:
        """The first offset delivered at that time or later; one past the last when there is none."""
        shelf = self._shelves.get(topic)
        if shelf is None:
            return 1
        buffered, committed, end = self._pending.records(topic, shelf.first), shelf.committed, shelf.last + 1
        found = await self._ask(self._reader.offset_at, topic, when, shelf.first, committed)
        return found if found <= committed else next((one.offset for one in buffered if one.at >= when), end)

    async def offset_after_cut(self, topic: Topic, cut: Cut) -> int:
        """The first offset of a message that is not in the cut; behind it, some may be."""
        shelf = self._shelves.get(topic)
        if shelf is None:
            return 1
        buffered, committed, newest = self._pending.records(topic, shelf.first), shelf.committed, dict(shelf.newest)
        end = shelf.last + 1
        found = await self._ask(self._reader.offset_after_cut, topic, cut, newest, shelf.first, committed)
        return found if found <= committed else next((one for one in map(_beyond(cut), buffered) if one), end)

    async def offset_before_cut(self, topic: Topic, cut: Cut) -> int:
        """The last offset of a message that is in the cut; 0 when there is none."""
        shelf = self._shelves.get(topic)
        if shelf is None:
            return 0
        within = _within(cut)
        buffered = [within(one) for one in self._pending.records(topic, shelf.committed + 1)]
        return max([await self._ask(self._reader.offset_before_cut, topic, cut), *buffered])

    async def last_numbers(self, name: str, topics: Sequence[Topic]) -> dict[Topic, int]:
        """What a producer that numbers its messages has here, once all that was appended is on the disk."""
        await self.synced(self.ticket)
        return await self._ask(self._reader.last_numbers, name, topics)

    async def in_reader(self, work: Callable[[], Answer]) -> Answer:
        """Do it in the thread that reads, for which only readers wait."""
        return await self._ask(work)

    async def cut_at(self, topic: Topic, offset: int) -> Cut:
        """Per publisher the newest message up to this offset, whether or not it is still kept."""
        shelf = self._shelves.get(topic)
        if shelf is None:
            return {}
        if offset >= shelf.last:
            return dict(shelf.newest)
        buffered = self._pending.records(topic, shelf.committed + 1)
        runs = [run for damage in shelf.damaged if damage.last <= offset for run in damage.ids]
        runs += [Run(one.first, min(len(one.payloads), offset - one.offset + 1)) for one in buffered]
        cut = await self._ask(self._reader.cut_at, topic, dict(shelf.newest), shelf.first, offset)
        for (source, incarnation, counter), many in runs:
            if many > 0:
                cut[source] = max(cut.get(source, NOTHING), (incarnation, counter + many - 1))
        return cut

    def describe(self) -> dict[str, Any]:
        """For people and programs."""
        shelves = self._shelves.values()
        return {
            "directory": str(self.directory),
            "topics": len(self._shelves),
            "messages": sum(shelf.last - shelf.first + 1 for shelf in shelves),
            "bytes": sum(account.bytes for account in list(self._accounts.values())),
            "pending": self._pending.bytes,
            "pending_batches": self.ticket - self.durable,
            "damaged_ranges": sum(len(shelf.damaged) for shelf in shelves),
            "trouble": None if self.trouble is None else str(self.trouble),
        }

    async def _ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        return await self._loop.run_in_executor(self._reading, question, *arguments)

    # The end

    async def close(self) -> None:
        """Write what is left."""
        if self._closed:
            return
        self._closed = True
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        self._pending.hand_over()
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()
        if not await asyncio.to_thread(self._writer.end, CLOSING_TIME):
            log.error("the log in %s was not closed in time", self.directory)


def _within(cut: Cut) -> Callable[[Record], int]:
    def offset(record: Record) -> int:
        """Of the record's last message that is in the cut, or 0."""
        source, incarnation, counter = record.first
        known = cut.get(source, NOTHING)
        if incarnation < known[0]:
            return record.last
        held = min(record.many, known[1] - counter + 1) if incarnation == known[0] else 0
        return record.offset + held - 1 if held > 0 else 0

    return offset


def _beyond(cut: Cut) -> Callable[[Record], int]:
    def offset(record: Record) -> int:
        """Of the record's first message that is not in the cut, or 0."""
        source, incarnation, counter = record.first
        known = cut.get(source, (-1, 0))
        if (incarnation, counter) > known:
            return record.offset
        skipped = known[1] - counter + 1
        return record.offset + skipped if incarnation == known[0] and skipped < len(record.payloads) else 0

    return offset
