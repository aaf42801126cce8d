"""Where a query is in a topic: a place in one log, and as a cut, which counts in every log.

A cut names of each publisher the last incarnation and counter. In a checkpoint, which is JSON, it is
`{"source.incarnation": counter}`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from cubecast.api.log_reading import log_schema

Cut: TypeAlias = dict[int, tuple[int, int]]
"""Per publisher the incarnation and the counter."""
NOTHING = (-1, 0)


def from_publisher_cut(cut: Mapping[tuple[str, int, int], int]) -> Cut:
    found: Cut = {}
    for (_, source, incarnation), counter in cut.items():
        found[source] = max(found.get(source, NOTHING), (incarnation, counter))
    return found


def publisher_cut(topic: str, cut: Cut) -> dict[tuple[str, int, int], int]:
    return {(topic, source, incarnation): counter for source, (incarnation, counter) in cut.items()}


def to_json(cut: Cut) -> dict[str, int]:
    return {f"{source}.{incarnation}": counter for source, (incarnation, counter) in cut.items()}


def from_json(known: Mapping[str, int]) -> Cut:
    return from_publisher_cut({("", *map(int, name.split("."))): counter for name, counter in known.items()})  # type: ignore[misc]


def joined(one: Cut, other: Cut) -> Cut:
    return {source: max(one.get(source, NOTHING), other.get(source, NOTHING)) for source in {**one, **other}}


def beyond(one: Cut, other: Cut) -> Cut:
    """What of the one the other does not have."""
    return {source: position for source, position in one.items() if position > other.get(source, NOTHING)}


def cut_of(place: Mapping[str, Any] | None) -> Cut:
    return {} if place is None else from_json(place["cut"])


def left_out(place: Mapping[str, Any] | None) -> Cut:
    """What the query has read in another log and its present one did not have yet."""
    return {} if place is None else from_json(place.get("beyond", {}))


# Did a batch that was planned in one log come whole out of another one? A publisher's counters have no holes.

MOST_ROWS = 100_000
"""Messages that are named one by one; of a longer hole, the first ones and the last."""


class Received:
    """What came of each publisher, of a range that lies between two cuts."""

    def __init__(self, topic: str, behind: Cut, upto: Cut | None) -> None:
        self._topic, self._behind, self._upto = topic, behind, upto or {}
        self._reached: Cut = {}
        self._holes: list[tuple[int, int, int, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        names = (batch.column(name).to_pylist() for name in ("source", "incarnation", "counter"))
        for source, incarnation, counter in zip(*names, strict=True):
            before = self._reached.get(source) or self._behind.get(source, NOTHING)
            if incarnation == before[0] and counter > before[1] + 1:
                self._holes.append((source, incarnation, before[1] + 1, counter - 1))
            self._reached[source] = incarnation, counter

    def holes(self) -> list[tuple[int, int, int, int]]:
        """Publisher, incarnation, first and last counter of what is missing."""
        found = list(self._holes)
        for source, (incarnation, counter) in self._upto.items():
            reached = max(self._reached.get(source, NOTHING), self._behind.get(source, NOTHING))
            if reached < (incarnation, counter):
                first = reached[1] + 1 if reached[0] == incarnation else 1
                found.append((source, incarnation, first, counter))
        return found

    def missing(self) -> pa.RecordBatch | None:
        """A row for each message that did not come."""
        schema = log_schema().append(pa.field("gap", pa.bool_()))
        rows = [
            {"topic": self._topic, "source": source, "incarnation": incarnation, "counter": counter, "gap": True}
            for source, incarnation, first, last in self.holes()
            for counter in {*range(first, min(last, first + MOST_ROWS) + 1), last}
        ]
        return pa.RecordBatch.from_pylist(rows, schema) if rows else None

    def complaint(self, log_id: str) -> str:
        told = [f"{source}.{life} {first} to {last}" for source, life, first, last in self.holes()]
        shown = ", ".join(told[:5]) + (f" and {len(told) - 5} more" if len(told) > 5 else "")
        return (
            f"the log this batch was planned with is gone, and log {log_id} lacks messages of it (publisher, counters: "
            f'{shown}); add a node that has them to nodes, or set failOnDataLoss to "false" to get gap rows instead'
        )
