"""The last minutes of a node: samples of its counters, and what happened that is worth a look. Bounded."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.net.links.connection import Traffic
from cubecast.net.observe.meter import Histogram, Meter, percentile

MOST_HAPPENINGS = 500
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
        self._list: deque[Happening] = deque(maxlen=MOST_HAPPENINGS)
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


MOST_SAMPLES = 300
RANKS = {"p50": 0.5, "p99": 0.99}
MOST_TOPICS = 10_000
"""Topics whose rates are kept; with more, each topic's rate is not said."""


@dataclass
class _Before:
    at: float
    totals: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, list[int]] = field(default_factory=dict)
    topics: dict[str, dict[Topic, int]] = field(default_factory=dict)


class Samples:
    def __init__(self, meter: Meter, traffic: Traffic, latency: Histogram, now: float) -> None:
        self._meter, self._traffic, self._latency = meter, traffic, latency
        self.ring: deque[dict[str, Any]] = deque(maxlen=MOST_SAMPLES)
        self.topic_rates: dict[str, dict[Topic, float]] = {"delivered": {}, "published": {}}
        """Of the last second; topics without are at rest."""
        self._before = _Before(now, self.totals(), self._counts(), {name: {} for name in self.topic_rates})

    def take(self, now: float, at: float, sizes: Mapping[str, float]) -> None:
        """One more; `at` is the time people read, `sizes` what is measured now and not counted."""
        before, seconds = self._before, max(now - self._before.at, 1e-3)
        totals, counts = self.totals(), self._counts()
        rates = {name: (total - before.totals[name]) / seconds for name, total in totals.items()}
        times = {name: _ranks(counts[name], before.histograms[name]) for name in counts}
        self.ring.append({"at": at, **rates, **sizes, **times})
        self._before = _Before(now, totals, counts, self._topics(before, seconds))

    def _counts(self) -> dict[str, list[int]]:
        histograms = {"latency": self._latency, "holding": self._meter.holding, "stability": self._meter.stability}
        return {name: list(one.counts) for name, one in histograms.items()}

    def totals(self) -> dict[str, int]:
        """Since the node began."""
        meter = self._meter
        return {
            "delivered": sum(meter.delivered.values()),
            "published": sum(meter.published.values()),
            "bytes_in": self._traffic.bytes_in,
            "bytes_out": self._traffic.bytes_out,
            "duplicates": meter.duplicates,
            "repeated": meter.repeated,
            "gaps": meter.gaps,
        }

    def _topics(self, before: _Before, seconds: float) -> dict[str, dict[Topic, int]]:
        now = {"delivered": self._meter.delivered, "published": self._meter.published}
        if max(map(len, now.values())) > MOST_TOPICS:
            self.topic_rates = {name: {} for name in now}
            return {}
        self.topic_rates = {name: _rates(counts, before.topics.get(name), seconds) for name, counts in now.items()}
        return {name: dict(counts) for name, counts in now.items()}


def _ranks(counts: list[int], before: list[int]) -> dict[str, float | None]:
    fresh = [now - then for now, then in zip(counts, before, strict=True)]
    return {name: percentile(fresh, rank) for name, rank in RANKS.items()}


def _rates(counts: Mapping[Topic, int], before: Mapping[Topic, int] | None, seconds: float) -> dict[Topic, float]:
    if before is None:
        return {}
    grown = ((topic, count - before.get(topic, 0)) for topic, count in counts.items())
    return {topic: growth / seconds for topic, growth in grown if growth}
