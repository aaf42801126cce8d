"""A node that was away fills its log from a peer's before anybody reads it.

From the moment it is subscribed again, what is delivered live is held. A peer that keeps a log sends what is not in
this node's cut, in the order the peer delivered it; that is appended first. A peer's order never has an effect before
its cause, and what is addressed to this node again arrives live as well, so the held deliveries, less what the peer
sent already, may follow. Whatever no peer has shows as a jump in a publisher's counters, where readers are told of it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from cubecast.errors import BadInput, CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.addresses import Address
from cubecast.net.client import ClientPort
from cubecast.net.log.holding import Holding
from cubecast.net.log.reading import History
from cubecast.net.log.since import PublisherCut, from_cut
from cubecast.net.port import GapNotice, Logged, Port
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


class Refill:
    """A `Sink` for what a peer's log has."""

    def __init__(self, history: History, held: Holding) -> None:
        self._history, self._held = history, held
        self._last = history.known(history.store.topics())
        """What is in the log, as it grows."""
        self.messages = 0
        self._live_since: float | None = None
        self._error: CubecastError | None = None
        self._last_word = 0.0

    # What the peer says

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        publisher = topic, first.source, first.incarnation
        already = self._last.get(publisher, 0) - first.counter + 1
        if already < len(payloads):
            skipped = max(0, already)
            news = first._replace(counter=first.counter + skipped)
            self._history.append(topic, news, payloads[skipped:])
            self._last[publisher] = first.counter + len(payloads) - 1
            self.messages += len(payloads) - skipped
        self._last_word = asyncio.get_running_loop().time()

    def on_ready(self) -> None: ...
    def on_live(self, known: PublisherCut) -> None:
        self._live_since = asyncio.get_running_loop().time()

    def on_gap(self, gap: GapNotice) -> None: ...
    def on_end(self, error: CubecastError | None) -> None:
        self._error = error or BadInput("the peer ended it")

    # Getting it

    async def fetch(self, port: Port, pattern: str) -> None:
        """Until the peer has no more, and nothing is missing before what is held; raises when it cannot serve."""
        self._live_since = self._error = None
        loop = asyncio.get_running_loop()
        self._last_word = loop.time()
        number = port.subscribe(pattern, self, from_cut(self._last))
        is_paused = False
        while not self._is_enough(loop.time()):
            await asyncio.sleep(LOOK_EVERY)
            if self._error is not None:
                raise self._error
            if is_paused == self._history.store.has_room:
                is_paused = not is_paused
                port.pause(number) if is_paused else port.resume(number)
                self._last_word = loop.time()
            if self._live_since is None and not is_paused and loop.time() - self._last_word > SILENT_FOR:
                raise BadInput(f"it said nothing for {SILENT_FOR} s")
        port.unsubscribe(number)

    def _is_enough(self, now: float) -> bool:
        """Whether all is here that can be expected to come."""
        if self._live_since is None or now - self._live_since < SETTLING:
            return False
        if now - self._live_since > UNCOVERED_FOR:
            return True
        return all(self._last.get(publisher, 0) >= first - 1 for publisher, first in self._held.firsts.items())

    async def release(self, deliver: Deliver) -> None:
        """What is held follows, without what the peer sent already; what comes meanwhile is held behind it."""
        while True:
            for _ in range(AT_ONCE):
                held = self._held.get()
                if held is None:
                    return
                topic, first, payloads = held
                already = self._last.get((topic, first.source, first.incarnation), 0) - first.counter + 1
                if already < len(payloads):
                    skipped = max(0, already)
                    deliver(topic, first._replace(counter=first.counter + skipped), payloads[skipped:])
            await asyncio.sleep(0 if self._history.store.has_room else LOOK_EVERY)


async def fill(
    refill: Refill,
    patterns: Sequence[str],
    peers: Sequence[Address],
    cluster: str,
    name: str,
    login: Login = NOTHING,
) -> bool:
    """Ask one peer after the other until one has told all it has; False when none could."""
    for address in peers:
        port = ClientPort([address], cluster=cluster, name=name, patience=CONNECT_TIME, login=login)
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
