"""Publications that wait: while processors are scarce, those made shortly after others, to leave in company; outside
the machine, those for a subscriber that reads slowly.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.node.outgoing import Outgoing


class Deferred:
    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.by_topic: dict[Topic, dict[tuple[NodeId, MessageId], bytes]] = {}
        """Of those topics that are held back; the bytes of each packet, once."""
        self.bytes = 0
        self.refused = 0
        """Publications for which there was no room to wait."""

    def hold(self, topic: Topic) -> None:
        self.by_topic.setdefault(topic, {})

    def held_by(self, packet: Any) -> Topic | None:
        """The topic because of which it has to wait."""
        for one in packet.carried():
            if one.topic in self.by_topic:
                held: Topic = one.topic
                return held
        return None

    def add(self, topic: Topic, sender: NodeId, packet: Any, frame: bytes) -> None:
        """What is not acknowledged comes again and again."""
        waiting, key = self.by_topic[topic], (sender, packet.carried()[0].first)
        growth = len(frame) - len(waiting.get(key, b""))
        if self.bytes + growth <= self.budget:
            self.bytes += growth
            waiting[key] = frame
        else:
            self.refused += 1

    def released(self, topic: Topic) -> Iterator[tuple[NodeId, bytes]]:
        """Senders and packets, one by one: those that were handed on may have filled the subscriber up again."""
        waiting = self.by_topic.pop(topic, {})
        while waiting and topic not in self.by_topic:
            key = next(iter(waiting))
            frame = waiting.pop(key)
            self.bytes -= len(frame)
            yield key[0], frame
        if waiting:
            self.by_topic[topic] = waiting | self.by_topic[topic]

    @property
    def counts(self) -> dict[Topic, int]:
        """Per topic, how many wait."""
        return {topic: len(waiting) for topic, waiting in sorted(self.by_topic.items())}


# While processors are scarce, publications made shortly after others wait a moment and leave in company.
#
# What a publication costs its receivers is mostly that they are woken for it, hardly its size. So on a machine that has
# more to do than it can, fewer and larger ones arrive sooner than many small ones that queue for a processor. Where
# processor time is to spare nothing waits, and what comes after a pause never does.
#
# Linux tells each thread how long it was ready to run and did not; elsewhere nothing ever waits. Follows decision 0033.

MOST: Final = 0.005
"""Seconds anything waits at most."""
SCARCE: Final = 0.3
"""Up to this share of its time a thread may wait for a processor before it makes publications wait."""
STEEPNESS: Final = 0.03
"""Seconds they wait for each whole share beyond: gentle enough that what waiting brings about does not swing."""
MEMORY: Final = 0.3
"""Seconds after which the past counts as much as what was seen since."""
LOOK_EVERY: Final = 0.1
"""Seconds between two looks at how long the thread waited, while something is published."""
WAITS: Final = "/proc/thread-self/schedstat"


class Pace:
    """From how long a thread had to wait for a processor to how long publications wait for company."""

    def __init__(self, now: float, waited: float) -> None:
        self._now, self._waited = now, waited
        self._share = 0.0
        self.seconds = 0.0

    def observe(self, now: float, waited: float) -> None:
        """Until now the thread has waited so many seconds in all."""
        elapsed = now - self._now
        if elapsed <= 0:
            return
        share = (waited - self._waited) / elapsed
        self._now, self._waited = now, waited
        self._share += (share - self._share) * elapsed / (elapsed + MEMORY)
        self.seconds = min(MOST, max(0.0, STEEPNESS * (self._share - SCARCE)))


class Waits(Protocol):
    def seconds(self) -> float: ...
    def close(self) -> None: ...


class ProcessorWaits:
    """How long the thread that makes this was ready to run and had to wait, as its kernel counts it."""

    def __init__(self, path: str = WAITS) -> None:
        """OSError or ValueError where there is no such thing."""
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.seconds()
        except BaseException:
            self.close()
            raise

    def seconds(self) -> float:
        return int(os.pread(self._file, 100, 0).split()[1]) / 1e9

    def close(self) -> None:
        os.close(self._file)


def processor_waits() -> ProcessorWaits | None:
    """None where they are not counted."""
    try:
        return ProcessorWaits()
    except (OSError, ValueError, IndexError):
        return None


class Departures:
    """When what was published leaves: at the end of its turn, or a little later together with what follows it."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._waits: Waits | None = None
        self._pace = Pace(0.0, 0.0)
        self._last = self._look_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, waits: Waits) -> None:
        """From now on these count; before, nothing has to wait."""
        self._forget_waits()
        self._waits = waits
        self._pace = Pace(0.0, waits.seconds())  # so long ago that the first look finds no share worth mentioning
        self._look_at = 0.0

    def holds(self, publications: Iterable[Outgoing]) -> bool:
        """Shall these wait? Then `leave` is called when it is time."""
        if self._waits is None:
            return False
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._pace.observe(now, self._waits.seconds())
        left = self._last + self._pace.seconds - now
        if left <= 0 or any(one.is_urgent for one in publications):
            self._last = now
            return False
        self._timer = loop.call_later(left, self._let_go)
        return True

    @property
    def is_holding(self) -> bool:
        return self._timer is not None

    @property
    def pace(self) -> float:
        """Seconds that publications may have to wait at present."""
        return self._pace.seconds

    def hurry(self) -> None:
        """What waits leaves at the end of this turn, when every caller that needs it has said so everywhere."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            asyncio.get_running_loop().call_soon(self._let_go)

    def _let_go(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        self._leave()

    def end(self) -> None:
        """Nothing leaves any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._forget_waits()

    def _forget_waits(self) -> None:
        if self._waits is not None:
            self._waits.close()
            self._waits = None
