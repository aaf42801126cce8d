"""How often each property had occasion to be broken (docs/verification.md); one that had none is vacuous."""

from collections.abc import Iterable, Sequence

import numpy as np

from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.trace.schema import Kind

PUBLISH, DELIVER, ACKNOWLEDGED = CODE[Kind.PUBLISH], CODE[Kind.DELIVER], CODE[Kind.ACKNOWLEDGED]
CUT, SUBSCRIBED = CODE[Kind.CUT], CODE[Kind.SUBSCRIBED]

PLACES = (
    ("P1", "P1b", "P2", "P10", "P11", "P12"),  # deliveries
    ("P4", "P4u", "P9a", "P9b", "P9c"),  # deliveries elsewhere than at the source
    ("P5", "P6"),  # deliveries of a later message of a source
    ("P7", "P8"),  # publications that depend on others
    ("P13",),  # publications
    ("P3",),  # acknowledgements
    ("K1", "K2", "K3"),  # stated cuts
)


def occasions(rows: Rows, log: Log) -> list[int]:
    """Of one log, in the order of `PLACES`."""
    span = slice(log.start, log.stop)
    kind, start = rows.kind[span], log.start
    delivered = kind == DELIVER
    published = np.flatnonzero(kind == PUBLISH) + start
    foreign = delivered & (rows.source[span] != log.node)
    at = np.flatnonzero(foreign) + start
    topics, first = np.unique(rows.topic[at], return_index=True)
    depending = 0
    if len(topics):
        place = np.minimum(np.searchsorted(topics, rows.topic[published]), len(topics) - 1)
        heard = (topics[place] == rows.topic[published]) & (at[first][place] < published)
        depending = int(heard.sum())
    stating = np.flatnonzero((kind == CUT) | (kind == SUBSCRIBED)) + start
    counters = rows.list_at("cut", stating)[3]
    return [
        int(delivered.sum()),
        int(foreign.sum()),
        int((delivered & (rows.counter[span] > 1)).sum()),
        depending,
        len(published),
        int((kind == ACKNOWLEDGED).sum()),
        int((counters >= 1).sum()),
    ]


def premises(of_logs: Iterable[Ints], wanted: Sequence[str]) -> dict[str, int]:
    total = sum((np.asarray(one, np.int64) for one in of_logs), np.zeros(len(PLACES), np.int64))
    return {name: int(count) for names, count in zip(PLACES, total, strict=True) for name in names if name in wanted}
