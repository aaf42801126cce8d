"""Looking into the logs of peers, all at once: who has what this node's log has not."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.node.durable.refill import PeerPort, Surroundings
from cubecast.net.port.port import GapNotice, Logged
from cubecast.net.port.since import FromNow, PublisherCut
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
