"""Cuts at offsets of a log, each found from the nearest one before it that is remembered.

Looking for each publisher's last message before an offset would go back through the whole index for one that has been
silent since. A stream that reads a topic from one place to the next asks for neighbouring cuts and pays for the rows
between.
"""

from bisect import bisect_right, insort
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from cubecast.log.record import Cut

MOST = 32
"""Cuts of a topic that are remembered; half of them go when there are more."""
NOTHING = (-1, 0)
BETWEEN = """
SELECT source, incarnation, counter, count, max(offset) FROM batches
WHERE topic=?1 AND offset<=?3
AND offset>=coalesce((SELECT max(offset) FROM batches WHERE topic=?1 AND offset<=?2), ?2) GROUP BY source
"""
EARLIEST = "SELECT source, incarnation, counter, min(offset) FROM batches WHERE topic=? GROUP BY source"
_offset = itemgetter(0)


class Cuts:
    def __init__(self, ask: Callable[..., list[Any]]) -> None:
        self._ask = ask
        self._known: dict[int, list[tuple[int, Cut]]] = {}
        """By topic, in the order of their offsets. What was logged up to an offset does not change any more."""

    def at(self, topic: int, newest: Cut, first: int, offset: int) -> Cut:
        """Of the rows up to this offset, whether or not they are still kept."""
        known = self._known.setdefault(topic, [])
        place = bisect_right(known, offset, key=_offset)
        begin, before = known[place - 1] if place else (first - 1, self._forgotten(topic, newest, first))
        cut = dict(before)
        if begin < offset:
            for source, incarnation, counter, count, start in self._ask(BETWEEN, topic, begin, offset):
                position = incarnation, counter + min(count, offset - start + 1) - 1
                cut[source] = max(cut.get(source, NOTHING), position)
            insort(known, (offset, dict(cut)), key=_offset)
            if len(known) > MOST:
                del known[1::2]
        return cut

    def _forgotten(self, topic: int, newest: Cut, first: int) -> Cut:
        """Up to what is kept: the first message that is kept of a publisher tells what came before it."""
        if first == 1:
            return {}
        kept = {source: (incarnation, counter - 1) for source, incarnation, counter, _ in self._ask(EARLIEST, topic)}
        return {source: kept.get(source, position) for source, position in newest.items()}
