"""Reading a log on and on. Spark's checkpoint names, for each topic, the log, the next offset, and the cut up to there.

Only durable offsets are named: a killed node gives the others again to other messages, and a restarted query would
take those for read. A batch is the set of messages between two cuts. In the log it was planned with that is a range of
offsets; when no node keeps that log any more, another one's rows are read between the same cuts.
"""

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from cubecast.api.sync import SyncClient
from cubecast.errors import BadInput, CubecastError
from cubecast.net.port.ranges import TopicLog
from cubecast.spark.logs import NoSuchLog, Range, Task, message_at, open_log, read_task, tasks
from cubecast.spark.options import Options
from cubecast.spark.places import Cut, beyond, cut_of, from_publisher_cut, joined, left_out, publisher_cut, to_json

TIMEOUT = 60.0
POLL = 0.2


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
        self._waiting_since: float | None = None
        """There is something to read since then, and too little for a batch."""

    def __getstate__(self) -> dict[str, Any]:
        """For the executors, which open connections of their own."""
        return {**self.__dict__, "_client": None}

    # Spark's questions, in the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return {one.topic: self._place(one, self._first(one)) for one in self._ends(None).values()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        topics = self._present(start)
        following = {topic: self._following(one, start.get(topic)) for topic, one in topics.items()}
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
        if self._is_too_little(sum(backlog.values())):
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        admitted = backlog if most is None else water_filling(backlog, most)
        moved = {
            topic: self._place(topics[topic], following[topic] + many, start.get(topic))
            for topic, many in admitted.items()
            if many
        }
        return start | moved

    def _is_too_little(self, rows: int) -> bool:
        """For a batch of its own, yet. A query that ends with what there is takes what there is."""
        if rows >= self.options.min_rows_per_batch or not rows or self._is_bounded:
            self._waiting_since = None
            return False
        self._waiting_since = self._waiting_since or monotonic()
        if monotonic() - self._waiting_since < self.options.max_delay:
            return True
        self._waiting_since = None
        return False

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.options.max_rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._is_bounded = True

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Task]:
        parts: list[Range] = []
        planned: dict[str, list[str]] = {}
        for topic, place in end.items():
            before = start.get(topic)
            if before is None or (before["log"], before["next"]) != (place["log"], place["next"]):
                planned.setdefault(place["log"], []).append(topic)
        for log_id, topics in planned.items():
            try:
                self._ends(log_id)
            except NoSuchLog:
                parts += [self._elsewhere(topic, start.get(topic), end[topic]) for topic in topics]
            else:
                parts += [self._range(topic, start.get(topic), end[topic]) for topic in topics]
        return tasks(parts, self.options.rows_per_partition)

    def _range(self, topic: str, before: Mapping[str, Any] | None, place: Mapping[str, Any]) -> Range:
        """In the log it was planned with, where the connection is."""
        if before is not None and before["log"] != place["log"]:
            first = self._asking().log_place(topic, publisher_cut(topic, cut_of(before)), timeout=TIMEOUT)
            return Range(place["log"], topic, first, place["next"], cut_of(before))
        first = before["next"] if before is not None else place["from"]
        return Range(place["log"], topic, first, place["next"], left_out(before))

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # In the executors

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:
        return read_task(self.options, partition)

    # Places

    def _first(self, one: TopicLog) -> int:
        """Where a query begins to read a topic that is there when it starts."""
        match self.options.since:
            case "now":
                return one.durable + 1
            case int() as offset:
                return offset
            case float() as at:
                return min(self._asking().log_at(one.topic, at, timeout=TIMEOUT), one.durable + 1)
        return one.first

    def _following(self, one: TopicLog, place: Mapping[str, Any] | None) -> int:
        if place is None:
            return one.first
        if place["log"] == one.log_id:
            return int(place["next"])
        self._check_same_messages(one, place)
        return self._asking().log_place(one.topic, publisher_cut(one.topic, cut_of(place)), timeout=TIMEOUT)

    def _place(self, one: TopicLog, following: int, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The place there. What the query has read and this log does not have yet is left out when it comes."""
        here = self._cut(one.topic, following - 1)
        read = joined(left_out(before), {} if before is None or before["log"] == one.log_id else cut_of(before))
        ahead = beyond(read, here)
        entered = before["from"] if before is not None and before["log"] == one.log_id else one.first
        place = {"log": one.log_id, "from": entered, "next": following, "cut": to_json(joined(here, ahead))}
        mark = message_at(self._asking(), one, following - 1)
        return place | ({"beyond": to_json(ahead)} if ahead else {}) | ({"last": mark} if mark else {})

    def _cut(self, topic: str, offset: int) -> Cut:
        return from_publisher_cut(self._asking().log_cut(topic, offset, timeout=TIMEOUT))

    # Other logs

    def _present(self, start: dict[str, Any]) -> dict[str, TopicLog]:
        """The topics of a log the query has read before; when there is none any more, of any other."""
        logs = dict.fromkeys(place["log"] for place in reversed(start.values()))
        for log_id in logs:
            try:
                return self._ends(log_id)
            except NoSuchLog:
                continue
        return self._ends(None)

    def _check_same_messages(self, one: TopicLog, place: Mapping[str, Any]) -> None:
        """A node that was set up anew counts from the beginning: its messages have the names of others."""
        known = place.get("last")
        if known is None:
            return
        source, incarnation, counter, _ = known
        cut = {(one.topic, source, incarnation): counter}
        found = message_at(self._asking(), one, self._asking().log_reach(one.topic, cut, timeout=TIMEOUT) - 1)
        if found is not None and found[:3] == known[:3] and found[3] != known[3]:
            raise BadInput(
                f"{one.topic}: message {source}.{incarnation}.{counter} of log {one.log_id} is not the one this query "
                "has read: that node is of another cluster, or was set up anew; begin with a new checkpoint"
            )
        if (found is None or found[:3] != known[:3]) and self.options.fail_on_data_loss:
            raise BadInput(
                f"{one.topic}: the log this query read is gone, and log {one.log_id} does not have the last message "
                f"that was read ({source}.{incarnation}.{counter}), so what else it lacks is not known; add the node "
                'that keeps the log to nodes, or set failOnDataLoss to "false"'
            )

    def _elsewhere(self, topic: str, before: Mapping[str, Any] | None, place: Mapping[str, Any]) -> Range:
        """The same rows in another log, once that has them; what it lacks is told where it is read."""
        wanted, deadline = publisher_cut(topic, cut_of(place)), monotonic() + self.options.max_delay
        while True:
            one = self._ends(None, fresh=True).get(topic)
            if one is not None and before is not None:
                self._check_same_messages(one, before)
            if one is not None and not beyond(cut_of(place), self._cut(topic, one.durable)):
                break
            if monotonic() > deadline:
                if one is None:
                    raise NoSuchLog(f"{topic}: the log this query read is gone, and no other node keeps the topic")
                break
            sleep(POLL)
        client = self._asking()
        first = client.log_place(topic, publisher_cut(topic, cut_of(before)), timeout=TIMEOUT)
        stop = min(client.log_reach(topic, wanted, timeout=TIMEOUT), one.durable + 1)
        return Range(one.log_id, topic, min(first, stop), stop, cut_of(before), cut_of(place), is_moved=True)

    # The connection

    def _asking(self) -> SyncClient:
        assert self._client is not None
        return self._client

    def _ends(self, log_id: str | None, *, fresh: bool = False) -> dict[str, TopicLog]:
        """Asked for at most once in `pollSeconds`: an idle query polls a hundred times a second."""
        is_fresh = self._client is not None and not fresh and monotonic() < self._asked + self.options.poll_seconds
        if is_fresh and (log_id is None or any(one.log_id == log_id for one in self._topics.values())):
            return self._topics
        if self._client is not None:
            try:
                listed = self._client.log_topics(timeout=TIMEOUT)
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


def water_filling(backlog: Mapping[str, int], most: int) -> dict[str, int]:
    """So many rows of each topic that together they are at most so many: the short ones whole, the others alike."""
    admitted, left = {}, most
    for number, (topic, many) in enumerate(sorted(backlog.items(), key=lambda item: item[1])):
        admitted[topic] = min(many, left // (len(backlog) - number))
        left -= admitted[topic]
    return admitted
