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
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Any, TypeVar

from cubecast.errors import Closed, NotDurable
from cubecast.ids import MessageId, Topic
from cubecast.log.damage import fitting
from cubecast.log.load import LoggedTopic
from cubecast.log.pending import Pending
from cubecast.log.readable import ReadableLog
from cubecast.log.record import Damage, Entry, Packed, Record, make_tuple, pack
from cubecast.log.recovery import Opened, open_log
from cubecast.log.retention import Janitor, Kept, Limits
from cubecast.log.writer import Ledger, Writer

log = logging.getLogger(__name__)

BUDGET = 8 << 20
"""Bytes that may wait for the disk before the node that appends has to wait."""
CLOSING_TIME = 10.0
SWEEP_EVERY = 1.0
"""Seconds between looks for what may be forgotten."""
Answer = TypeVar("Answer")


class Store(ReadableLog):
    def __init__(self, directory: Path, opened: Opened, budget: int, retention: Mapping[str, Limits]) -> None:
        self.directory, self.identity = directory, opened.identity
        self._accounts = opened.ledger.index.accounts
        self._loop = asyncio.get_running_loop()
        self.newest_at = opened.newest_at
        self._closed = False
        self.on_room: Callable[[], None] = lambda: None
        """Called when there is room again, or no use in waiting for it."""
        self.on_full: Callable[[], None] = lambda: None
        """Called with each batch that leaves no room for more; it is taken nevertheless."""
        self._writer = Writer(opened.ledger, self._from_thread(self._committed), self._from_thread(self._refused))
        self._pending = Pending(budget, self._writer.put, lambda: self.on_full())
        super().__init__(directory, opened.states, self._pending, self._writer)
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
        state = self._states.get(topic)
        if state is None:
            state = self._states[topic] = LoggedTopic(topic)
        if at < self.newest_at:
            at = self.newest_at
        else:
            self.newest_at = at
        many, block, checksum, element = packed
        entry = make_tuple(Entry, (topic, state.last + 1, many, first, at, block, checksum, element))
        state.note(first, many)
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
                self._states[entry.topic].commit(entry.last)
            for topic, damage in gathered.holes:
                self._states[topic].commit(damage.last)
                self._states[topic].damaged.append(damage)
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
            state = self._states[topic]
            state.first = first
            state.damaged = [one for one in state.damaged if one.last >= first]
        if not self._closed:
            self._next_sweep = self._loop.call_later(0 if is_more_to_do else SWEEP_EVERY, self._sweep)

    # Repair

    async def repair(self, records: Sequence[Record], into: Damage | None = None) -> int:
        """Put messages had from a peer where they are missing; how many damaged ranges are whole again.

        Records are taken in their order, which must be causal; their offsets and times are the peer's and do not count.
        A range is repaired when all its messages are here. For one whose `ids` are not known say which it is: `into`.
        """
        repaired = 0
        for topic in dict.fromkeys(record.topic for record in records):
            state = self._states.get(topic)
            for damage in [] if state is None else list(state.damaged):
                pieces = fitting([one for one in records if one.topic == topic], damage, damage == into)
                if state is not None and pieces:
                    await self._write(lambda ledger: ledger.repair(topic, damage, pieces))  # noqa: B023 - waited for
                    state.damaged = [one for one in state.damaged if one != damage]
                    repaired += 1
        return repaired

    async def last_numbers(self, name: str, topics: Sequence[Topic]) -> dict[Topic, int]:
        """What a producer that numbers its messages has here, once all that was appended is on the disk."""
        await self.synced(self.ticket)
        return await self._ask(self._reader.last_numbers, name, topics)

    def describe(self) -> dict[str, Any]:
        """For people and programs."""
        states = self._states.values()
        return {
            "directory": str(self.directory),
            "topics": len(self._states),
            "messages": sum(state.last - state.first + 1 for state in states),
            "bytes": sum(account.bytes for account in list(self._accounts.values())),
            "pending": self._pending.bytes,
            "pending_batches": self.ticket - self.durable,
            "damaged_ranges": sum(len(state.damaged) for state in states),
            "trouble": None if self.trouble is None else str(self.trouble),
        }

    # The end

    async def close(self) -> None:
        """Write what is left."""
        if self._closed:
            return
        self._closed = True
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        self._pending.hand_over()
        await self.end_reading()
        if not await asyncio.to_thread(self._writer.end, CLOSING_TIME):
            log.error("the log in %s was not closed in time", self.directory)
