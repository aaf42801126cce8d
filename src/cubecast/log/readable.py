"""Questions to a log that is written to: from memory what is on its way to the disk, from the disk the rest."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cubecast.errors import DamagedLog, Forgotten
from cubecast.ids import Topic
from cubecast.log.load import NOTHING, LoggedTopic
from cubecast.log.pending import Pending
from cubecast.log.reader import Reader
from cubecast.log.record import Cut, Damage, Entry, Record, Run
from cubecast.log.writer import Writer

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Read = TypeVar("Read", Record, Entry)


class ReadableLog:
    def __init__(self, directory: Path, states: dict[Topic, LoggedTopic], pending: Pending, writer: Writer) -> None:
        self._states, self._pending, self._writer = states, pending, writer
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(directory)
        self._reading = ThreadPoolExecutor(1, "cubecast log reader")

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
        state = self._states.get(topic)
        if state is None or offset > state.last:
            return []
        if offset < state.first:
            raise Forgotten(
                f"{topic}: offset {offset} is not kept any more; the first one is {state.first}", state.first
            )
        last = state.committed
        for damage in state.damaged:
            if damage.first <= offset <= damage.last:
                raise DamagedLog(damage.why, damage.first, damage.last)
            if offset < damage.first:
                last = min(last, damage.first - 1)
        if offset > state.committed:
            return buffered(topic, offset)
        try:
            return await self._ask(ask, last)
        except DamagedLog as error:
            await self._found_damage(state, error)
            raise

    async def _found_damage(self, state: LoggedTopic, error: DamagedLog) -> None:
        """Enter it, once, so that it is known without reading there again."""
        log.error("%s", error)
        if len(error.args) == 4:
            why, first, last, ids = error.args
            ids = ids or await self._ask(self._reader.infer, state.topic, dict(state.newest), first, last)
            if not any(one.first <= last and first <= one.last for one in state.damaged):
                damage = Damage(first, last, ids, why)
                state.damaged = sorted([*state.damaged, damage])
                self._writer.call(lambda ledger: ledger.index.enter_damage(state.topic, damage))

    def bounds(self, topic: Topic) -> tuple[int, int]:
        """The first offset kept and the last one given; (1, 0) for a topic that was never heard of."""
        state = self._states.get(topic)
        return (1, 0) if state is None else (state.first, state.last)

    def durable_end(self, topic: Topic) -> int:
        """The last offset on the disk: with all before it, it outlives a killed process."""
        state = self._states.get(topic)
        return 0 if state is None else state.committed

    def topics(self) -> list[Topic]:
        return sorted(self._states)

    def cut(self, topic: Topic) -> Cut:
        """Per publisher the newest message ever logged, whether or not it is still kept."""
        state = self._states.get(topic)
        return {} if state is None else dict(state.newest)

    def damaged(self, topic: Topic) -> list[Damage]:
        """Ranges known not to be readable, in the order of offsets."""
        state = self._states.get(topic)
        return [] if state is None else list(state.damaged)

    async def offset_at(self, topic: Topic, when: float) -> int:
        """The first offset delivered at that time or later; one past the last when there is none."""
        state = self._states.get(topic)
        if state is None:
            return 1
        buffered, committed, end = self._pending.records(topic, state.first), state.committed, state.last + 1
        found = await self._ask(self._reader.offset_at, topic, when, state.first, committed)
        return found if found <= committed else next((one.offset for one in buffered if one.at >= when), end)

    async def offset_after_cut(self, topic: Topic, cut: Cut) -> int:
        """The first offset of a message that is not in the cut; behind it, some may be."""
        state = self._states.get(topic)
        if state is None:
            return 1
        buffered, committed, newest = self._pending.records(topic, state.first), state.committed, dict(state.newest)
        end = state.last + 1
        found = await self._ask(self._reader.offset_after_cut, topic, cut, newest, state.first, committed)
        return found if found <= committed else next((one for one in map(_beyond(cut), buffered) if one), end)

    async def offset_before_cut(self, topic: Topic, cut: Cut) -> int:
        """The last offset of a message that is in the cut; 0 when there is none."""
        state = self._states.get(topic)
        if state is None:
            return 0
        within = _within(cut)
        buffered = [within(one) for one in self._pending.records(topic, state.committed + 1)]
        return max([await self._ask(self._reader.offset_before_cut, topic, cut), *buffered])

    async def in_reader(self, work: Callable[[], Answer]) -> Answer:
        """Do it in the thread that reads, for which only readers wait."""
        return await self._ask(work)

    async def cut_at(self, topic: Topic, offset: int) -> Cut:
        """Per publisher the newest message up to this offset, whether or not it is still kept."""
        state = self._states.get(topic)
        if state is None:
            return {}
        if offset >= state.last:
            return dict(state.newest)
        buffered = self._pending.records(topic, state.committed + 1)
        runs = [run for damage in state.damaged if damage.last <= offset for run in damage.ids]
        runs += [Run(one.first, min(len(one.payloads), offset - one.offset + 1)) for one in buffered]
        on_disk = min(offset, state.committed)
        cut = await self._ask(self._reader.cut_at, topic, dict(state.newest), state.first, on_disk)
        for (source, incarnation, counter), many in runs:
            if many > 0:
                cut[source] = max(cut.get(source, NOTHING), (incarnation, counter + many - 1))
        return cut

    async def _ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        return await self._loop.run_in_executor(self._reading, question, *arguments)

    async def end_reading(self) -> None:
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()


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
