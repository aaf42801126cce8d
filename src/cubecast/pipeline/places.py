"""Where in a log the rows of each topic are: looked up once for all its subscriptions, which may be many thousands.

A subscription that looked through the log for its rows would make judging quadratic in topics.
"""

from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.pipeline.subscriptions import by_topic, pack
from cubecast.trace.schema import Kind

RECEIVE = CODE[Kind.RECEIVE]
_NOTHING = np.zeros(0, np.int64)


class Places:
    def __init__(self, rows: Rows, log: Log) -> None:
        self._rows, self._log = rows, log
        self._of = cache(lambda *kinds: by_topic(rows, log, *kinds))

    def of(self, topic: int, *kinds: int) -> Ints:
        """All rows of these kinds on the topic, in order."""
        return self._of(*kinds).get(topic, _NOTHING)

    def received(self, topic: int) -> tuple[Ints, Ints, Ints]:
        """Messages on the topic that came in packets: the row, the packed publisher and the counter of each."""
        return self._received.get(topic, (_NOTHING, _NOTHING, _NOTHING))

    @cached_property
    def _received(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        """A packet lists its messages, or names the one that it is."""
        rows, log = self._rows, self._log
        at = np.flatnonzero(rows.kind[log.start : log.stop] == RECEIVE) + log.start
        if not len(at):
            return {}
        silent = rows.untold(at)
        row, topics, source, incarnation, counter = rows.contents_at(at[~silent])
        alone = at[silent & rows.named[at] & (rows.topic[at] >= 0)]
        row = np.concatenate((row, alone))
        topic = np.concatenate((self._codes(row[: len(row) - len(alone)], topics), rows.topic[alone]))
        key = np.concatenate((pack(source, incarnation), pack(rows.source[alone], rows.source_incarnation[alone])))
        number = np.concatenate((counter, rows.counter[alone])).astype(np.int64)
        kept = (number >= 1) & (topic >= 0)
        order = np.lexsort((row[kept], topic[kept]))
        topic, columns = topic[kept][order], [one[kept][order] for one in (row, key, number)]
        edges = np.flatnonzero(np.diff(topic)) + 1
        parts = zip(*(np.split(one, edges) for one in columns), strict=True)
        return {int(topic[begin]): part for begin, part in zip([0, *edges.tolist()], parts, strict=True) if len(topic)}

    def _codes(self, row: Ints, topics: pa.Array) -> Ints:
        """Of the topics that the packets' lists name; where they name none, the row's."""
        known = pa.array(self._rows.topics, pa.string())
        found = pc.fill_null(pc.index_in(topics, known), -1).to_numpy(zero_copy_only=False)
        told, of_row = topics.is_valid().to_numpy(zero_copy_only=False), self._rows.topic[row]
        fits = (of_row < 0) | (of_row == found)
        codes: Ints = np.where(told, np.where(fits, found, -1), of_row)
        return codes
