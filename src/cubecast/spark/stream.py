"""Reading a log on and on. Spark's checkpoint names, for each topic, the log, the next offset, and the cut up to there.

Only durable offsets are named: a killed node gives the others again to other messages, and a restarted query would
take those for read.
"""

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from cubecast.api.sync import SyncClient
from cubecast.errors import BadInput, CubecastError
from cubecast.net.log.ranges import TopicLog
from cubecast.spark.logs import Range, open_log, ranges, read_range
from cubecast.spark.options import Options


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # PySpark has no types
    def __init__(self, options: Options) -> None:
        self.options = options
        self._client: SyncClient | None = None
        self._topics: dict[str, TopicLog] = {}
        self._asked = 0.0
        self._is_bounded = False
        """Does the query end with what is durable at its beginning?"""
        self._target: dict[str, int] | None = None
        """Those ends."""

    def __getstate__(self) -> dict[str, Any]:
        """For the executors, which open connections of their own."""
        return {**self.__dict__, "_client": None}

    # Spark's questions, in the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        since, offset = self.options.since, {}
        for one in self._ends(None).values():
            following = since if isinstance(since, int) else one.durable + 1 if since == "now" else one.first
            offset[one.topic] = self._place(one, following)
        return offset

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        log_id = next((place["log"] for place in start.values()), None)
        topics = self._ends(log_id)
        following = {topic: start[topic]["next"] if topic in start else one.first for topic, one in topics.items()}
        if self._is_bounded and self._target is None:
            self._target = {topic: one.durable for topic, one in topics.items()}
        backlog = {}
        for topic, one in topics.items():
            if following[topic] > one.durable + 1:
                raise BadInput(
                    f"{topic}: this query has read up to offset {following[topic] - 1}, and the log ends with "
                    f"{one.durable}: it was put back from an older copy; begin with a new checkpoint"
                )
            end = one.durable if self._target is None else min(one.durable, self._target.get(topic, 0))
            backlog[topic] = max(0, end + 1 - following[topic])
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        admitted = backlog if most is None else water_filling(backlog, most)
        moved = {
            topic: self._place(topics[topic], following[topic] + many, start.get(topic, {}).get("from"))
            for topic, many in admitted.items()
            if many
        }
        return start | moved

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.options.max_rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._is_bounded = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Range]:
        parts: list[Range] = []
        for topic, place in end.items():
            first = start[topic]["next"] if topic in start else place["from"]
            parts += ranges(place["log"], topic, first, place["next"], self.options.rows_per_partition)
        return parts

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # In the executors

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        return read_range(self.options, partition)

    # Inside

    def _ends(self, log_id: str | None) -> dict[str, TopicLog]:
        """Asked for at most once in `pollSeconds`: an idle query polls a hundred times a second."""
        is_fresh = self._client is not None and monotonic() < self._asked + self.options.poll_seconds
        if is_fresh and (log_id is None or any(one.log_id == log_id for one in self._topics.values())):
            return self._topics
        if self._client is not None:
            try:
                listed = self._client.log_topics(timeout=60.0)
                if log_id is None or any(one.log_id == log_id for one in listed):
                    self._topics = {one.topic: one for one in listed if self.options.selects(one.topic)}
                    self._asked = monotonic()
                    return self._topics
            except (CubecastError, TimeoutError):
                pass  # another of the nodes may be this one under its new address
            self.stop()
        self._client, self._topics = open_log(self.options, log_id)
        self._asked = monotonic()
        return self._topics

    def _place(self, one: TopicLog, following: int, entered: int | None = None) -> dict[str, Any]:
        """`entered` is where the topic began for this query: where its log begins, if it is new."""
        assert self._client is not None
        cut = self._client.log_cut(one.topic, following - 1, timeout=60.0)
        known = {f"{source}.{incarnation}": counter for (_, source, incarnation), counter in cut.items()}
        return {"log": one.log_id, "from": one.first if entered is None else entered, "next": following, "cut": known}


def water_filling(backlog: Mapping[str, int], most: int) -> dict[str, int]:
    """So many rows of each topic that together they are at most so many: the short ones whole, the others alike."""
    admitted, left = {}, most
    for number, (topic, many) in enumerate(sorted(backlog.items(), key=lambda item: item[1])):
        admitted[topic] = min(many, left // (len(backlog) - number))
        left -= admitted[topic]
    return admitted
