"""What passes find: a violation as a row, and how many of them a log reports; how often each property had occasion to
be broken.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.trace.schema import Kind

MOST_PER_PROPERTY = 10
"""A log or subscription reports its smallest violations; the last one kept carries the weight of the others."""


class Finding(NamedTuple):
    """Fields in the order of `frames.FINDING`."""

    property: str
    node: int
    incarnation: int
    seq: int
    reason: str
    topic: str | None = None
    ordinal: int | None = None
    message: tuple[int, int, int] | None = None
    other: tuple[int, int, int] | None = None
    other_seq: int | None = None
    certain: bool = True
    weight: int = 1
    """How many violations it stands for."""

    def row(self) -> dict[str, Any]:
        source, source_incarnation, counter = self.message or (None, None, None)
        other_source, other_incarnation, other_counter = self.other or (None, None, None)
        return {
            "property": self.property,
            "certain": self.certain,
            "weight": self.weight,
            "node": self.node,
            "incarnation": self.incarnation,
            "topic": self.topic,
            "ordinal": self.ordinal,
            "seq": self.seq,
            "source": source,
            "source_incarnation": source_incarnation,
            "counter": counter,
            "other_source": other_source,
            "other_source_incarnation": other_incarnation,
            "other_counter": other_counter,
            "other_seq": self.other_seq,
            "reason": self.reason,
        }


def finding_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The smallest findings of each property, certain and uncertain ones apart, with weights that keep the count."""
    kinds: defaultdict[tuple[str, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        kinds[finding.property, finding.certain].append(finding)
    rows: list[dict[str, Any]] = []
    for found in kinds.values():
        found.sort(key=lambda finding: finding.seq)
        kept, others = found[:MOST_PER_PROPERTY], found[MOST_PER_PROPERTY:]
        rows += [finding.row() for finding in kept[:-1]]
        rows.append(kept[-1]._replace(weight=sum(finding.weight for finding in [kept[-1], *others])).row())
    return rows


def batch_of(rows: Sequence[dict[str, Any]], schema: StructType) -> pa.RecordBatch:
    """Rows as the Arrow batch that Spark expects for this schema; absent lists are empty, absent values null."""
    arrow = to_arrow_schema(schema)
    columns = []
    for field in arrow:
        absent: Any = [] if pa.types.is_list(field.type) else None
        columns.append(pa.array([row.get(field.name, absent) for row in rows], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


# How often each property had occasion to be broken (docs/verification.md); one that had none is vacuous.

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
