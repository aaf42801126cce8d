"""What happened lately that is worth a look: suspicions, lost links, gaps, refused frames. Bounded."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from cubecast.ids import NodeId, Topic

MOST = 500
SAME_WITHIN = 1.0
"""Seconds in which the same thing again is counted and not listed again."""


@dataclass
class Happening:
    at: float
    """Wall-clock time of the first one, in seconds since 1970."""
    kind: str
    node: NodeId | None
    """The other node it is about."""
    topic: Topic | None
    detail: str
    count: int = 1


class Happenings:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._list: deque[Happening] = deque(maxlen=MOST)
        self.counts: Counter[str] = Counter()
        """Since the node began, by kind."""

    def __call__(self, kind: str, peer: NodeId | None, detail: str, topic: Topic | None = None) -> None:
        now = self._clock()
        self.counts[kind] += 1
        for last in reversed(self._list):
            if not 0 <= now - last.at <= SAME_WITHIN:
                break  # or the clock was set back, and what seems to be to come is long over
            if (last.kind, last.node, last.topic) == (kind, peer, topic):
                last.count += 1
                return
        self._list.append(Happening(now, kind, peer, topic, detail))

    def newest_first(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in reversed(self._list)]
