"""Gaps: what the node reports, and what a slow reader lost, both in bounded space."""

from cubecast.api.message import Batch, Gap, Missing
from cubecast.ids import Counter, Topic
from cubecast.net.port.port import GapNotice

MAX_RUNS = 1024
"""More runs than this are counted and not named."""


def named_gap(notice: GapNotice) -> Gap:
    named = tuple(Missing(notice.topic, *message, message.counter) for message in notice.missing)
    runs = tuple(Missing(notice.topic, *run) for run in notice.runs)
    return Gap(notice.topic, notice.reason, named + runs, len(named) + notice.count, notice.offsets)


class Dropped:
    """A gap in the making: consecutive losses of one publisher are one run."""

    __slots__ = ("_count", "_is_any", "_latest", "_pattern", "_runs")

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._runs: list[Missing] = []
        self._latest: dict[tuple[Topic, int, int], int] = {}
        self._count = 0
        self._is_any = False

    def add(self, event: Batch | Gap) -> None:
        self._is_any = True
        if isinstance(event, Batch):
            self._count += len(event)
            self._add_run(event.topic, event.source, event.incarnation, event.counter, event.counter + len(event) - 1)
        else:
            self._count += event.count
            for run in event.missing:
                self._add_run(*run)

    def _add_run(self, topic: Topic, source: int, incarnation: int, first: Counter, last: Counter) -> None:
        publisher = topic, source, incarnation
        place = self._latest.get(publisher)
        if place is not None and self._runs[place].last == first - 1:
            self._runs[place] = self._runs[place]._replace(last=last)
        elif len(self._runs) < MAX_RUNS:
            self._latest[publisher] = len(self._runs)
            self._runs.append(Missing(*publisher, first, last))

    def __bool__(self) -> bool:
        """Was anything dropped, be it the news that nobody knows what is missing?"""
        return self._is_any

    def gap(self, reason: str) -> Gap:
        return Gap(self._pattern, reason, tuple(self._runs), self._count)
