"""Did a batch that was planned in one log come whole out of another one? A publisher's counters have no holes."""

import pyarrow as pa

from cubecast.api.log_reading import log_schema
from cubecast.spark.places import NOTHING, Cut

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
