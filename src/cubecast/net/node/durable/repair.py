"""Damaged ranges of a log are asked for at peers: by the names of their messages, since offsets are each node's own."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.log.history import History
from cubecast.log.record import Damage, Record
from cubecast.net.node.durable.refill import Dial
from cubecast.net.port.chunks import weight
from cubecast.net.port.port import GapNotice, Logged, PublisherCut, from_cut

log = logging.getLogger(__name__)

CONNECT_TIME = 2.0
PATIENCE = 10.0
"""Seconds for one peer to tell what it has of a topic."""
MOST_BYTES = 64 << 20
"""Of messages that are collected for one topic at a time."""


class Wanted:
    """A `Sink` that keeps what is asked for and lets the rest pass."""

    def __init__(self, topic: Topic, damages: Sequence[Damage]) -> None:
        self.topic = topic
        self._runs = [(run.first, run.many) for damage in damages for run in damage.ids]
        self._left = sum(count for _, count in self._runs)
        self._bytes = 0
        self.records: list[Record] = []
        self.done = asyncio.get_running_loop().create_future()

    def behind(self, known: PublisherCut) -> dict[tuple[Topic, NodeId, Incarnation], Counter]:
        """A cut that has everything but these, and what their publishers said after them."""
        cut = dict(known)
        for (source, incarnation, counter), _ in self._runs:
            publisher = self.topic, source, incarnation
            cut[publisher] = min(counter - 1, cut.get(publisher, counter - 1))
        return cut

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        end = first.counter + len(payloads)
        wanted = 0
        for (source, incarnation, counter), count in self._runs:
            if (source, incarnation) == first[:2]:
                wanted += max(0, min(end, counter + count) - max(first.counter, counter))
        if wanted and not self.done.done():
            self.records.append(Record(topic, first, list(payloads), *(logged or (0, 0.0))))
            self._left -= wanted
            self._bytes += weight(payloads)
            if self._left <= 0 or self._bytes > MOST_BYTES:
                self.done.set_result(None)

    def on_ready(self) -> None: ...
    def on_gap(self, gap: GapNotice) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def on_end(self, error: CubecastError | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or BadInput("the peer ended it"))


class Repair:
    """Asks one peer after the other for what is damaged, and never again for what none of them had."""

    def __init__(
        self,
        history: History,
        peers: Callable[[], Sequence[Address]],
        dial: Dial,
        name: str,
    ) -> None:
        self._history, self._peers, self._dial, self._name = history, peers, dial, name
        self._in_vain: set[tuple[Topic, int]] = set()
        self._lock = asyncio.Lock()

    async def __call__(self, topic: Topic) -> int:
        """How many ranges of the topic are whole again."""
        async with self._lock:
            repaired = 0
            for address in self._peers():
                damages = self._missing(topic)
                if not damages:
                    break
                try:
                    repaired += await self._from(address, topic, damages)
                except (CubecastError, OSError, TimeoutError) as error:
                    log.info("%s: nothing to repair the log with at %s: %s", topic, address, error)
            self._in_vain.update((topic, damage.first) for damage in self._missing(topic))
            return repaired

    def _missing(self, topic: Topic) -> list[Damage]:
        damages = self._history.store.damaged(topic)
        return [one for one in damages if one.ids and (topic, one.first) not in self._in_vain]

    async def _from(self, address: Address, topic: Topic, damages: Sequence[Damage]) -> int:
        port = self._dial(address, name=self._name, patience=CONNECT_TIME)
        try:
            await port.start(CONNECT_TIME)
            wanted = Wanted(topic, damages)
            port.subscribe(topic, wanted, from_cut(wanted.behind(self._history.known([topic]))))
            async with asyncio.timeout(PATIENCE):
                await wanted.done
            repaired = await self._history.store.repair(wanted.records)
            log.info("%s: %d of %d damaged ranges repaired from %s", topic, repaired, len(damages), port.node)
            return repaired
        finally:
            await port.close()
