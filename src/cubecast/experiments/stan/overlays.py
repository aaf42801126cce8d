"""Overlays of a subscription table: StaN's rounds on Spark, what they save and what the graphs are like."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import BadInput
from cubecast.pipeline.staging import require_new
from cubecast.pipeline.workloads.table import Numbered, number_table, read_table, require_members
from cubecast.sim.kernels.stan import Overlays
from cubecast.sim.kernels.stan_kernel import MOST_TTL
from cubecast.sim.kernels.stan_metrics import MEASURES, count_different

# StaN over a subscription table of any size, on Spark: a task owns whole topics and does all their rounds.
#
# No walk leaves its topic, so nothing is shuffled between rounds. Only the links of a process, whose topics are in many
# tasks, have to be brought together: by ranges of processes, a few arrays from each task.

Ints = NDArray[np.int64]

SLOTS_OF_A_TASK = 1_500_000
"""At about 100 bytes each, and as many again when they are handed on."""
TOPIC = ("topic", "members", "view", *MEASURES)
_ARRAYS = ("process", "size", "links")
_DONE = pa.schema(
    [
        ("round", pa.int32()),
        ("part", pa.int32()),
        *((name, pa.binary()) for name in _ARRAYS),
        ("topics", pa.list_(pa.struct([(name, pa.float64()) for name in TOPIC]))),
    ]
)
_DONE_SPARK = "round int, part int, process binary, size binary, links binary, topics array<struct<{}>>".format(
    ", ".join(f"{name}: double" for name in TOPIC)
)
_LINKS = pa.schema([("round", pa.int32()), *((name, pa.int32()) for name in ("process", "topics", "logical", "links"))])


@dataclass(frozen=True)
class Rounds:
    rounds: int = 10
    ttl: int = 4
    loss: float = 0.0
    repair: bool = True
    seed: int = 1
    view: int | None = None
    """Links in every topic; without, as many as connect it."""
    measured: int = 1000
    """Topics whose overlays are looked at, evenly spread;"""
    starts: int = 16
    """and members of each at which ways begin."""
    every_round: bool = False
    """Count links after every round, not only before the first and after the last."""

    def __post_init__(self) -> None:
        for name in ("rounds", "measured", "starts"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.ttl <= MOST_TTL:
            raise BadInput(f"a walk makes 0 to {MOST_TTL} hops after the first, not {self.ttl}")
        if not 0 <= self.loss < 1:
            raise BadInput(f"the share of lost messages is 0 or more and less than 1, not {self.loss}")
        if self.view is not None and self.view < 1:
            raise BadInput(f"a view has 1 link or more, not {self.view}")

    @property
    def least_members(self) -> int:
        return 2 if self.view is None else self.view + 1

    def counted(self, number: int) -> bool:
        return self.every_round or number in (0, self.rounds)


@dataclass(frozen=True)
class Division:
    """Topics and processes by ranges of their numbers."""

    topics: list[int]
    """The first topic of each task, and the number of topics."""
    slots: list[int]
    """Slots before each task."""
    processes: list[int]

    @property
    def tasks(self) -> int:
        return len(self.slots)


def divide(sizes: Ints, processes: int, at_once: int, most: int = SLOTS_OF_A_TASK) -> Division:
    """Tasks of about equal work, a multiple of those that run at once. `sizes`: members of each topic."""
    slots = np.concatenate([[0], sizes.cumsum()])
    wanted = max(1, -(-int(slots[-1]) // (most * at_once))) * at_once
    edges = np.searchsorted(slots, np.linspace(0, int(slots[-1]), wanted + 1)[1:-1])
    topics = np.unique(np.concatenate([[0], edges, [len(sizes)]]))
    shares = np.unique(np.linspace(0, processes, len(topics)).astype(int))
    return Division(topics.tolist(), slots[topics[:-1]].tolist(), shares.tolist())


class Outcome:
    """What the rounds came to; held until `release`."""

    def __init__(self, done: DataFrame, processes: int) -> None:
        self._done, self._processes = done, processes

    def links(self) -> DataFrame:
        """→ round, process, topics, logical, links"""
        processes = self._processes

        def count(table: pa.Table) -> pa.Table:
            return _count(table, processes)

        parts: GroupedData = self._done.where(F.col("part").isNotNull()).groupBy("round", "part")
        return parts.applyInArrow(count, "round int, process int, topics int, logical int, links int")

    def topics(self) -> DataFrame:
        """→ round, and what `TOPIC` names, of the topics looked at"""
        rows = self._done.where(F.col("part").isNull()).select("round", F.explode("topics").alias("one"))
        whole = [F.col(f"one.{name}").cast("int").alias(name) for name in ("topic", "members", "view")]
        return rows.select("round", *whole, *(F.col(f"one.{name}").alias(name) for name in MEASURES))

    def release(self) -> None:
        self._done.unpersist()


def run_rounds(numbered: Numbered, rules: Rounds, at_once: int) -> Outcome:
    sizes = _sizes(numbered.topics)
    processes = numbered.users.count()
    division = divide(sizes, processes, at_once)
    looked_at = np.unique(np.linspace(0, len(sizes) - 1, min(rules.measured, len(sizes))).astype(np.int64))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _work(batches, rules, division, looked_at)

    task = _place_among(F.col("topic"), division.topics[1:-1])
    owned = numbered.pairs.repartitionById(division.tasks, task)
    done = owned.mapInArrow(work, _DONE_SPARK).persist(StorageLevel.DISK_ONLY)
    return Outcome(done, processes)


def _sizes(topics: DataFrame) -> Ints:
    rows = topics.select("topic", "members").toArrow()
    sizes = np.zeros(rows.num_rows, np.int64)
    sizes[rows["topic"].to_numpy()] = rows["members"].to_numpy()
    return sizes


def _place_among(column: Column, edges: list[int]) -> Column:
    """How many of the edges, which ascend, are not above the column."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(column >= edges[middle], search(middle + 1, high)).otherwise(search(low, middle))

    return search(0, len(edges))


def _work(
    batches: Iterable[pa.RecordBatch], rules: Rounds, division: Division, looked_at: Ints
) -> Iterator[pa.RecordBatch]:
    """One task: its topics' overlays, all rounds."""
    arrived = [one for one in batches if one.num_rows]
    if not arrived:
        return
    pairs = pa.Table.from_batches(arrived)
    slots = np.unique(pairs["topic"].to_numpy().astype(np.int64) << 32 | pairs["process"].to_numpy())
    topics, first = np.unique(slots >> 32, return_index=True)
    task = int(np.searchsorted(division.topics, topics[0], "right")) - 1
    first = np.append(first, len(slots)).astype(np.int64)
    overlays = Overlays(
        first, (slots & 0xFFFFFFFF).astype(np.int32), seed=rules.seed, ttl=rules.ttl, repair=rules.repair,
        view=rules.view, offset=division.slots[task],
    )  # fmt: skip
    chosen = np.flatnonzero(np.isin(topics, looked_at))
    order = np.argsort(overlays.world.process, kind="stable")
    for number in range(rules.rounds + 1):
        if number:
            overlays.round(rules.loss)
        if rules.counted(number):
            yield from _parts(overlays, order, division.processes, number)
        if number in (0, rules.rounds):
            overlays.mend()
            yield _looked_at(overlays, chosen, topics, rules, number)


def _looked_at(overlays: Overlays, chosen: Ints, topics: Ints, rules: Rounds, number: int) -> pa.RecordBatch:
    found = overlays.measures(chosen, rules.starts)
    known = (topics[chosen], np.diff(overlays.world.first)[chosen], overlays.world.room[chosen])
    rows = np.column_stack([*known, found]).tolist()
    values = {"round": number, "topics": [dict(zip(TOPIC, row, strict=True)) for row in rows]}
    return pa.RecordBatch.from_pylist([values], _DONE)


def _parts(overlays: Overlays, order: Ints, edges: list[int], number: int) -> Iterator[pa.RecordBatch]:
    """Of each range of processes what its links are in the topics of this task."""
    process = overlays.world.process[order]
    for part, (low, high) in enumerate(pairwise(edges)):
        begin, end = np.searchsorted(process, [low, high])
        if begin == end:
            continue
        of = order[begin:end]
        arrays = (process[begin:end], overlays.world.size[of], overlays.neighbours(of))
        values: dict[str, Any] = {name: one.tobytes() for name, one in zip(_ARRAYS, arrays, strict=True)}
        yield pa.RecordBatch.from_pylist([{"round": number, "part": part} | values], _DONE)


def _count(table: pa.Table, processes: int) -> pa.Table:
    """One range of processes after one round: what all tasks know of it."""
    process, size, links = (
        np.concatenate([np.frombuffer(one.as_py(), np.int32) for one in table[name]]) for name in _ARRAYS
    )
    order = np.argsort(process, kind="stable")
    begin = size.cumsum(dtype=np.int64) - size
    who, subscriptions = np.unique(process, return_counts=True)
    different = np.zeros(len(who), np.int32)
    count_different(order, process, begin, size, links, np.full(processes, -1, np.int32), different)
    logical = np.bincount(np.searchsorted(who, process), size, len(who))
    columns = (np.full(len(who), table["round"][0].as_py()), who, subscriptions, logical, different)
    return pa.Table.from_arrays([pa.array(one.astype(np.int32)) for one in columns], schema=_LINKS)


# Overlays.

MUCH = 0.4
"""An improvement worth mentioning, §3.3.4."""


def write_overlays(
    spark: SparkSession, table: Path, rules: Rounds, out: Path, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Two tables below `out`, `processes` and `topics`; returns what they come to."""
    require_new(out)
    tell("numbering users and topics")
    numbered = number_table(read_table(spark, table))
    require_members(spark, table, numbered, rules.least_members)
    tell(f"{rules.rounds} rounds of StaN")
    outcome = run_rounds(numbered, rules, spark.sparkContext.defaultParallelism)
    with _complaints_of_tasks():
        named = outcome.links().join(numbered.users, on="process", how="inner")
        named.select("user", "round", "topics", "logical", "links").write.parquet(str(out / "processes"))
        graphs = outcome.topics().join(numbered.topics.select("name", "topic"), on="topic", how="inner")
        graphs.select(F.col("name").alias("topic"), "round", "members", "view", *MEASURES).write.parquet(
            str(out / "topics")
        )
    outcome.release()
    numbered.release()
    return summary(spark.read.parquet(str(out / "processes")), spark.read.parquet(str(out / "topics")), rules.rounds)


@contextmanager
def _complaints_of_tasks() -> Iterator[None]:
    """What is wrong with the input may be seen in a task only."""
    try:
        yield
    except PythonException as error:
        if told := re.search(r"BadInput: (.*)", str(error)):
            raise BadInput(told[1]) from None
        raise


def summary(processes: DataFrame, topics: DataFrame, last: int) -> dict[str, Any]:
    by_round = (
        processes.groupBy("round")
        .agg(F.count("*").alias("users"), F.avg("links").alias("links"), F.avg("logical").alias("logical"))
        .orderBy("round")
        .collect()
    )
    before, after = (processes.where(F.col("round") == number) for number in (0, last))
    both = before.select("user", F.col("links").alias("before")).join(
        after.select("user", "topics", F.col("links").alias("after")), on="user", how="inner"
    )
    gained = 1 - F.col("after") / F.col("before")
    (gain,) = both.agg(
        F.avg(F.col("before") / F.col("after")).alias("ratio"),
        F.avg((gained > MUCH).cast("double")).alias("improved"),
        F.sum("topics").alias("subscriptions"),
    ).collect()
    graphs = topics.groupBy("round").agg(F.count("*").alias("topics"), *(F.avg(name).alias(name) for name in MEASURES))
    looked = {row["round"]: row.asDict() for row in graphs.collect()}
    return {
        "users": by_round[0].users,
        "subscriptions": gain.subscriptions,
        "logical_links": by_round[0].logical,
        "links": {str(row["round"]): row.links for row in by_round},
        "before_over_after": gain.ratio,
        "improved": gain.improved,
        "overlays": {
            when: {name: looked[number][name] for name in ("topics", *MEASURES)}
            for when, number in (("before", 0), ("after", last))
        },
    }
