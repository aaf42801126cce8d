"""A node fills its log from its peers' before its users hear of a gap."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Counter, MessageId, Topic
from cubecast.log.history import History
from cubecast.net.node.durable.refill import (
    LOOK_EVERY,
    UNCOVERED_FOR,
    Holding,
    Incomplete,
    PeerPort,
    Publisher,
    Refill,
    Surroundings,
)
from cubecast.net.port.port import COMPLETE, FromNow, GapNotice, Logged, PublisherCut
from cubecast.patterns import Selection

log = logging.getLogger(__name__)

CONNECT_TIME = 2.0
"""Seconds for a peer to answer; all are asked at the same time."""
LOOKING_TIME = 5.0
"""Seconds for it to say what it has."""
MOST_TOPICS = 1000
"""Followed one by one at a peer whose patterns are others."""


class _Known:
    """A `Sink` that learns how far the peer's log reaches."""

    def __init__(self) -> None:
        self.known: asyncio.Future[PublisherCut] = asyncio.get_running_loop().create_future()

    def on_batch(
        self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None
    ) -> None: ...
    def on_ready(self) -> None: ...
    def on_gap(self, gap: GapNotice) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        if not self.known.done():
            self.known.set_result(known)

    def on_end(self, error: CubecastError | None) -> None:
        if not self.known.done():
            self.known.set_exception(error or BadInput("the peer ended it"))
            self.known.exception()  # also when no caller waits for it any more


@dataclass(frozen=True)
class PeerLog:
    """A peer that answered."""

    instance: bytes
    port: PeerPort
    patterns: tuple[str, ...]
    """What can be had there; nothing where the peer keeps no log of these topics."""
    known: PublisherCut


async def look(
    members: Mapping[bytes, Address], patterns: Sequence[str], around: Surroundings, name: str
) -> list[PeerLog]:
    """Those that answered in time. Their ports are to be closed."""
    found = await asyncio.gather(*(_look(*member, patterns, around, name) for member in members.items()))
    return [one for one in found if one is not None]


async def _look(
    instance: bytes, address: Address, patterns: Sequence[str], around: Surroundings, name: str
) -> PeerLog | None:
    port = around.dial(address, name=name, patience=CONNECT_TIME, fills=True)
    try:
        await port.start(CONNECT_TIME)
        async with asyncio.timeout(LOOKING_TIME):
            return PeerLog(instance, port, *await _contents(port, patterns))
    except (CubecastError, OSError, TimeoutError) as error:
        log.info("the log of %s cannot be looked into: %s", address, error)
    except BaseException:
        await port.close()
        raise
    await port.close()
    return None


async def _contents(port: PeerPort, patterns: Sequence[str]) -> tuple[tuple[str, ...], PublisherCut]:
    served: list[str] = []
    known: dict[tuple[Topic, int, int], int] = {}
    try:
        for pattern in patterns:
            known |= await _known(port, pattern)
            served.append(pattern)
    except BadInput:  # the peer keeps no log, or of other topics, some of which may be wanted
        served, known = [], {}
        for topic in await _topics(port, Selection(patterns)):
            known |= await _known(port, topic)
            served.append(topic)
    return tuple(served), known


async def _known(port: PeerPort, pattern: str) -> PublisherCut:
    sink = _Known()
    number = port.subscribe(pattern, sink, FromNow())
    try:
        return await sink.known
    finally:
        port.unsubscribe(number)


async def _topics(port: PeerPort, selects: Selection) -> list[Topic]:
    topics: list[Topic] = []
    try:
        while more := await port.log_topics(topics[-1] if topics else ""):
            topics += [one.topic for one in more]
    except BadInput:
        return []  # it keeps no log at all
    return [topic for topic in topics if selects(topic)][:MOST_TOPICS]


# Filling the log.

ASK_AGAIN_AFTER = 1.0
"""Seconds between looks for members that were not asked yet."""


class CatchUp:
    """Holds what is delivered, and what there is to say about gaps, while the log is filled."""

    def __init__(self, history: History, patterns: Sequence[str], directory: Path | None) -> None:
        self._history, self._patterns, self._directory = history, patterns, directory
        self._held: Holding | None = None
        self._withheld: dict[Topic, GapNotice] = {}
        self._named: list[GapNotice] = []
        """What was named as missing while peers were asked, who may have it."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asked: set[bytes] = set()
        """Processes whose logs were looked into."""
        self._given_up: dict[Publisher, Counter] = {}
        """Announced as missing: not looked for again."""
        self._filling = asyncio.Lock()
        self.refill: Refill | None = None
        """At work."""
        self._came = asyncio.Event()
        self._around: Surroundings | None = None
        """Known once the log is filled for the first time."""

    def hold(self) -> None:
        """Whatever is delivered waits from now on."""
        if self._held is None:
            self._held = Holding(self._directory)

    def holds(self, topic: Topic, message: MessageId, payloads: Sequence[bytes]) -> bool:
        if self._held is None:
            return False
        self._held.put(topic, message, payloads)
        return True

    def withholds(self, notice: GapNotice) -> bool:
        """This node may have missed something: subscribers are not told as long as it may still be had."""
        if notice.missing or notice.count:
            if self._held is not None:
                self._named.append(notice)
            return self._held is not None
        if self._around is None:
            return False
        self.hold()
        self._withheld.setdefault(notice.topic, notice)
        return True

    @property
    def is_filling(self) -> bool:
        return self._held is not None

    def come_back(self) -> None:
        """The node goes on as another incarnation."""
        if self._around is not None and self._held is not None:
            self._begin("fill the log", self._come_back)

    def member_came(self) -> None:
        self._came.set()

    def _begin(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.get_running_loop().create_task(work(), name=name)
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _come_back(self) -> None:
        while self._around is not None and self._held is not None:
            if self._around.is_complete():
                await self.fill("the log of a node that was away", self._around)
            else:
                await asyncio.sleep(LOOK_EVERY)

    async def fill(self, name: str, around: Surroundings) -> None:
        """Get what is missing from the peers, then let go what had to wait for it."""
        self._around = around
        async with self._filling:
            if self._held is not None:
                found = await look(around.members(), self._patterns, around, name)
                try:
                    await self._fill(found, around, self._held)
                finally:
                    await _close(found)
        self._begin("ask members that come later", self._ask_later)

    async def _fill(self, found: Sequence[PeerLog], around: Surroundings, held: Holding) -> None:
        self._asked |= {one.instance for one in found}
        refill = self.refill = Refill(self._history, held, around)
        refill.give_up(self._given_up)
        withheld, self._withheld = list(self._withheld.values()), {}
        is_filled = await fetch_all(refill, [one for one in found if one.patterns])
        named, self._named = self._named, []
        for notice in named:
            refill.missed(notice)
        for notice in refill.uncovered() if is_filled else withheld:
            around.announce(notice)
        await refill.release()
        self.refill = None
        self._given_up |= refill.given_up
        if not self._withheld:  # else it was away again
            self._held = None
        if not is_filled and withheld:
            log.info("no peer could fill the log; what was missed in the meantime is a gap in it")
            for notice in withheld:
                around.announce(GapNotice(notice.topic, (), COMPLETE))

    async def _ask_later(self) -> None:
        """A log that was not there when this one was filled may have what this one has not."""
        while self._around is not None:
            self._came.clear()
            members = self._around.members()
            self._asked &= members.keys()
            new = {instance: address for instance, address in members.items() if instance not in self._asked}
            if new:
                await self._ask(new, self._around)
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_AGAIN_AFTER):
                    await self._came.wait()

    async def _ask(self, new: dict[bytes, Address], around: Surroundings) -> None:
        found = await look(new, self._patterns, around, "a log that a member may fill")
        try:
            self._asked |= {one.instance for one in found}
            if any(self._lacks(one, around) for one in found):
                await asyncio.sleep(UNCOVERED_FOR)  # what is under way to both may have come to one of them first
            lacking = [one for one in found if self._lacks(one, around)]
            if lacking:
                async with self._filling:
                    self.hold()
                    if self._held is not None:
                        await self._fill(lacking, around, self._held)
        finally:
            await _close(found)

    def _lacks(self, peer: PeerLog, around: Surroundings) -> bool:
        """Has the peer's log something in addition?"""
        refill = Refill(self._history, Holding(None), around)
        refill.give_up(self._given_up)
        return refill.lacks(peer.known) > 0

    def close(self) -> None:
        self._around = None
        for task in list(self._tasks.values()):
            task.cancel()


async def fetch_all(refill: Refill, peers: Sequence[PeerLog]) -> bool:
    """First from peers that lack nothing themselves, then from the others; False when none could tell."""
    is_filled = False
    for takes_holes in (False, True):
        left = list(peers)
        while left:
            peer = max(left, key=lambda one: refill.lacks(one.known))
            left.remove(peer)
            if is_filled and not refill.lacks(peer.known):
                continue
            try:
                for pattern in peer.patterns:
                    await refill.fetch(peer.port, pattern, takes_holes=takes_holes)
            except Incomplete as error:
                log.info("the log of %s is incomplete itself: %s", peer.port.node, error)
            except (CubecastError, OSError) as error:
                log.info("the log cannot be filled from %s: %s", peer.port.node, error)
            else:
                log.info("%d messages that were missing came with the log of %s", refill.messages, peer.port.node)
                is_filled = True
    return is_filled


async def _close(peers: Sequence[PeerLog]) -> None:
    await asyncio.gather(*(peer.port.close() for peer in peers), return_exceptions=True)
