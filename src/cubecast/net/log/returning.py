"""A node that was away fills its log from a peer's before anybody hears of a gap.

It was away when it is started with the log of an earlier life, and when the others held it faulty and it goes on as
another incarnation. From then on what is delivered live is held. As soon as it is subscribed again, a peer that keeps a
log sends what is not in this node's cut, in the order the peer delivered it; that is recorded and delivered first. A
peer's order never has an effect before its cause, and what is addressed to this node again arrives live as well, so the
held deliveries, less what the peer sent already, may follow. Whatever no peer has is announced, by name where counters
tell it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.net.addresses import Address
from cubecast.net.client import ClientPort
from cubecast.net.log.holding import Holding
from cubecast.net.log.reading import History
from cubecast.net.log.since import PublisherCut, from_cut
from cubecast.net.port import COMPLETE, GapNotice, Logged, Port, Run
from cubecast.net.security.login import NOTHING, Login

log = logging.getLogger(__name__)

CONNECT_TIME = 2.0
SILENT_FOR = 5.0
"""Seconds a peer may take for the next piece, before another one is asked."""
SETTLING = 0.2
"""Seconds in which what was published before everybody knew of this node reaches the peer."""
UNCOVERED_FOR = 1.0
"""Seconds to wait for messages that came before those held, when the peer has not got them yet itself."""
LOOK_EVERY = 0.01
AT_ONCE = 256
"""Deliveries released in one turn of the event loop."""


Deliver = Callable[[Topic, MessageId, Sequence[bytes]], None]


@dataclass(frozen=True)
class Surroundings:
    """What filling a log needs of its node."""

    peers: Callable[[], Sequence[Address]]
    """Where the others are, as far as they are held to live."""
    cluster: str
    deliver: Deliver
    announce: Callable[[GapNotice], None]
    is_complete: Callable[[], bool]
    """Is everything published from now on addressed to this node?"""
    has_room: Callable[[], bool]
    """Can log and subscribers take more?"""
    login: Login = NOTHING
    """What this node proves to its peers."""


class Refill:
    """A `Sink` for what a peer's log has."""

    def __init__(self, history: History, held: Holding, around: Surroundings) -> None:
        self._held, self._around = held, around
        self._last = history.known(history.store.topics())
        """What is in the log, as it grows."""
        self.messages = 0
        self._live_since: float | None = None
        self._error: CubecastError | None = None
        self._last_word = 0.0

    # What the peer says

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        self._last_word = asyncio.get_running_loop().time()
        self.messages += self._deliver(topic, first, payloads)

    def _deliver(self, topic: Topic, first: MessageId, payloads: Sequence[bytes]) -> int:
        """How many of them were news."""
        publisher = topic, first.source, first.incarnation
        skipped = max(0, self._last.get(publisher, 0) - first.counter + 1)
        if skipped >= len(payloads):
            return 0
        self._last[publisher] = first.counter + len(payloads) - 1
        self._around.deliver(topic, first._replace(counter=first.counter + skipped), payloads[skipped:])
        return len(payloads) - skipped

    def on_ready(self) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        self._live_since = asyncio.get_running_loop().time()

    def on_gap(self, gap: GapNotice) -> None:
        """The peer does not have them either, or cannot tell whether they belong here."""
        if gap.runs:
            self._around.announce(gap)

    def on_end(self, error: CubecastError | None) -> None:
        self._error = error or BadInput("the peer ended it")

    # Getting it

    async def fetch(self, port: Port, pattern: str) -> None:
        """Until the peer has no more, and nothing is missing before what is held; raises when it cannot serve."""
        self._live_since = self._error = None
        loop = asyncio.get_running_loop()
        self._last_word = loop.time()
        number = port.subscribe(pattern, self, from_cut(self._last, is_causal=True))
        is_paused = False
        while not self._is_enough(looked := loop.time()):
            await asyncio.sleep(LOOK_EVERY)
            self._forgive(loop.time() - looked - LOOK_EVERY)
            if self._error is not None:
                raise self._error
            if is_paused == self._around.has_room():
                is_paused = not is_paused
                port.pause(number) if is_paused else port.resume(number)
                self._last_word = loop.time()
            if self._live_since is None and not is_paused and loop.time() - self._last_word > SILENT_FOR:
                raise BadInput(f"it said nothing for {SILENT_FOR} s")
        port.unsubscribe(number)

    def _forgive(self, late: float) -> None:
        """By how much this node came late to look: as long as it stood still itself nobody else was silent."""
        if late > 0:
            self._last_word += late
            if self._live_since is not None:
                self._live_since += late

    def _is_enough(self, now: float) -> bool:
        """Whether all is here that can be expected to come."""
        if self._live_since is None or now - self._live_since < SETTLING:
            return False
        return now - self._live_since > UNCOVERED_FOR or not self.uncovered()

    def uncovered(self) -> list[GapNotice]:
        """What is missing before those that are held."""
        return [
            _missing(publisher, self._last.get(publisher, 0) + 1, first - 1)
            for publisher, first in self._held.firsts.items()
            if self._last.get(publisher, 0) < first - 1
        ]

    async def release(self) -> None:
        """What is held follows, without what the peer sent already; what comes meanwhile is held behind it."""
        while True:
            for _ in range(AT_ONCE):
                held = self._held.get()
                if held is None:
                    return
                self._deliver(*held)
            await asyncio.sleep(0 if self._around.has_room() else LOOK_EVERY)


def _missing(publisher: tuple[Topic, NodeId, Incarnation], first: Counter, last: Counter) -> GapNotice:
    topic, source, incarnation = publisher
    reason = "published while this node was away, and no peer that lives has them"
    return GapNotice(topic, (), reason, (Run(source, incarnation, first, last),), last - first + 1)


async def fill(refill: Refill, patterns: Sequence[str], around: Surroundings, name: str) -> bool:
    """Ask one peer after the other until one has told all it has; False when none could."""
    for address in around.peers():
        port = ClientPort([address], cluster=around.cluster, name=name, patience=CONNECT_TIME, login=around.login)
        try:
            await port.start(CONNECT_TIME)
            for pattern in patterns:
                await refill.fetch(port, pattern)
        except (CubecastError, OSError) as error:
            log.info("the log cannot be filled from %s: %s", address, error)
        else:
            log.info("%d messages that were missing came from the log of %s", refill.messages, port.node)
            return True
        finally:
            await port.close()
    return False


class Returning:
    """Holds what is delivered, and what there is to say about gaps, while the log is filled."""

    def __init__(self, history: History, patterns: Sequence[str], directory: Path | None) -> None:
        self._history, self._patterns, self._directory = history, patterns, directory
        self._held: Holding | None = None
        self._withheld: dict[Topic, GapNotice] = {}
        self._task: asyncio.Task[None] | None = None
        self.around: Surroundings | None = None

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
        """This node may have missed something: nobody is told as long as it may still be had."""
        if self.around is None:
            return False
        self.hold()
        self._withheld.setdefault(notice.topic, notice)
        return True

    @property
    def is_filling(self) -> bool:
        return self._held is not None

    def come_back(self) -> None:
        """The node goes on as another incarnation."""
        if self.around is not None and self._held is not None and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._come_back(), name="fill the log")

    async def _come_back(self) -> None:
        try:
            while self.around is not None and self._held is not None:
                if self.around.is_complete():
                    await self.fill("the log of a node that was away")
                else:
                    await asyncio.sleep(LOOK_EVERY)
        finally:
            self._task = None

    async def fill(self, name: str) -> None:
        """Get what is missing from one of the peers, then let go what had to wait for it."""
        if self._held is None or self.around is None:
            return
        refill, around = Refill(self._history, self._held, self.around), self.around
        withheld, self._withheld = list(self._withheld.values()), {}
        is_filled = await fill(refill, self._patterns, around, name)
        for notice in refill.uncovered() if is_filled else withheld:
            around.announce(notice)
        await refill.release()
        if not self._withheld:  # else it was away again
            self._held = None
        if not is_filled:
            log.info("no peer could fill the log; what was missed in the meantime is a gap in it")
            for notice in withheld:
                around.announce(GapNotice(notice.topic, (), COMPLETE))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
