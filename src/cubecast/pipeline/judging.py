"""Passes 2 to 4 over a batch of runs that do not contradict themselves: all findings beyond K0."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cubecast.pipeline.agreement import agreement
from cubecast.pipeline.findings import batch_of, finding_rows
from cubecast.pipeline.frames import FOUND, INT, REPLAYED, SEQUENCE, TEXT, struct
from cubecast.pipeline.layout import PLAIN, footers
from cubecast.pipeline.messages import RunMessages
from cubecast.pipeline.order import disorder, holes, sequence_rows, sequences_of, unsound_headers
from cubecast.pipeline.passes import Judgement, Plan, run_pass
from cubecast.pipeline.replay import replayed_rows
from cubecast.pipeline.rows import Rows
from cubecast.pipeline.subscriptions import pack_one

TOPIC = struct(run=INT, topic=TEXT)
TELLING = ["run", "topic", "findings", "lost", "heard_publisher", "heard_counter", "damage", "refusal"]
FILE = struct(run=INT, name=TEXT, path=TEXT, version=INT)
AGREEMENT = frozenset({"P4", "P4u", "P10"})
TOTAL_ORDER = frozenset({"P9a", "P9b", "P9c"})
MEASURED_AGREEMENT = "P4 measured"
"""Asked for like a property, of runs that do not promise P4 and have it measured."""
Tables = dict[int, RunMessages]


@dataclass
class Judged:
    """What the passes found, run by run."""

    findings: defaultdict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    damage: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    kept: Counter[int] = field(default_factory=Counter)
    """Deliveries of correct subscriptions."""
    lost: Counter[int] = field(default_factory=Counter)
    """Messages that a correct subscription was told it misses and another one delivered."""
    premises: dict[int, dict[str, int]] = field(default_factory=dict)
    """About how many things properties spoke that may have nothing to speak about."""

    def add_replayed(self, table: pa.Table) -> None:
        """Findings of single subscriptions, and gap rows that another subscription contradicts."""
        lost: list[tuple[int, str, dict[str, Any]]] = []
        heard: set[tuple[int, str, int, int]] = set()
        for row in table.select(TELLING).to_pylist():
            # Pass 1 has refused what is no trace; what changed since then cannot be known.
            self.damage[row["run"]] += [row[what] for what in ("damage", "refusal") if row[what] is not None]
            self.findings[row["run"]] += row["findings"]
            lost += [(row["run"], row["topic"], finding) for finding in row["lost"]]
            messages = zip(row["heard_publisher"], row["heard_counter"], strict=True)
            heard |= {(row["run"], row["topic"], *message) for message in messages}
        told: set[tuple[Any, ...]] = set()
        for run, topic, finding in lost:
            publisher = pack_one(finding["source"], finding["source_incarnation"])
            message = (run, topic, publisher, finding["counter"])
            if message in heard:
                self.findings[run].append(finding)
                told.add((*message, finding["node"], finding["incarnation"], finding["ordinal"]))
        self.lost.update(one[0] for one in told)

    def add_kept(self, table: pa.Table) -> None:
        """Rows of (run, deliveries), of correct subscriptions."""
        for run, deliveries in zip(*(table.column(name).to_pylist() for name in ("run", "deliveries")), strict=True):
            self.kept[run] += deliveries


class OnSpark:
    """An engine of `verify` (`in_memory.InMemory` is the other one): every pass is a job over all rows."""

    name = "on Spark"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def footers(self, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        table = pa.Table.from_batches([batch_of(files, FILE)])
        rows: list[dict[str, Any]] = footers(self.spark.createDataFrame(table, schema=FILE)).toArrow().to_pylist()
        return rows

    def run_pass(self, plan: Plan, columns: Sequence[str], judgement: Judgement, schema: StructType) -> pa.Table:
        return run_pass(self.spark, plan, columns, judgement, schema).toArrow()

    def judge(self, plan: Plan, runs: Tables, wanted: dict[int, tuple[str, ...]]) -> Judged:
        judged = Judged()
        wants = {run: frozenset(wanted[run]) for run in runs}
        asked = frozenset[str]().union(*wants.values())
        if asked <= {"K0"}:
            return judged
        spark = self.spark
        tables = spark.sparkContext.broadcast(runs)
        replayed = run_pass(spark, plan, columns_for(asked), partial(_replay, tables, wants), REPLAYED).persist()
        _collect_replayed(replayed, judged)
        if MEASURED_AGREEMENT in asked:
            correct = replayed.where(F.col("correct") & F.col("topic").isNotNull())
            judged.add_kept(correct.groupBy("run").agg(F.sum("deliveries").alias("deliveries")).toArrow())
        if asked & AGREEMENT:
            _collect(agreement(replayed, partial(_fetch, tables)), judged)
        replayed.unpersist()
        if asked & TOTAL_ORDER:
            ordered = plan.without(set(runs) - set(only(runs, wants, TOTAL_ORDER)))
            sequences = run_pass(spark, ordered, (*PLAIN, "cut"), partial(_sequences, tables), SEQUENCE)
            _collect(total_order(sequences), judged)
        if "P13" in asked:
            claiming = only(runs, wants, {"P13"})
            topics = [{"run": run, "topic": topic} for run, table in claiming.items() for topic in table.topics]
            frame = spark.createDataFrame(pa.Table.from_batches([batch_of(topics, TOPIC)]), schema=TOPIC)
            _collect(frame.mapInArrow(partial(_headers, tables), FOUND), judged)
        tables.unpersist()
        return judged


def columns_for(asked: frozenset[str]) -> tuple[str, ...]:
    """What the replay must read."""
    return (*PLAIN, "cut", *(["messages"] if "P12" in asked else []), *(["digest"] if "P1b" in asked else []))


def only(runs: Tables, wants: dict[int, frozenset[str]], properties: Set[str]) -> Tables:
    return {run: table for run, table in runs.items() if wants[run] & properties}


def _fetch(tables: Broadcast[Tables]) -> Tables:
    value: Tables = tables.value
    return value


def _replay(tables: Broadcast[Tables], wants: dict[int, frozenset[str]], rows: Rows) -> list[dict[str, Any]]:
    return replayed_rows(rows, tables.value, wants)


def _sequences(tables: Broadcast[Tables], rows: Rows) -> list[dict[str, Any]]:
    return sequence_rows(rows, tables.value)


def _headers(tables: Broadcast[Tables], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            found = unsound_headers(row["topic"], tables.value[row["run"]].topics[row["topic"]])
            yield batch_of([{"run": row["run"], "findings": finding_rows(found)}], FOUND)


def total_order(sequences: DataFrame) -> DataFrame:
    """Rows of `frames.SEQUENCE` → findings of P9a, P9b and P9c, each topic of each run in one piece."""
    return (
        sequences.select(*SEQUENCE.names)
        .where(F.col("topic").isNotNull())
        .groupBy("run", "topic")
        .applyInArrow(_judge_order, FOUND)
        .select(*FOUND.names)
    )


def _judge_order(table: pa.Table) -> pa.Table:
    sequences = sequences_of(table.to_pylist())
    found = finding_rows([*disorder(sequences), *holes(sequences)])
    return pa.Table.from_batches([batch_of([{"run": table.column("run")[0].as_py(), "findings": found}], FOUND)])


def _collect(found: DataFrame, judged: Judged) -> None:
    for row in found.select(*FOUND.names).where(F.size("findings") > 0).toArrow().to_pylist():
        judged.findings[row["run"]] += row["findings"]


def _collect_replayed(replayed: DataFrame, judged: Judged) -> None:
    telling = replayed.where(
        (F.size("findings") > 0)
        | (F.size("lost") > 0)
        | (F.size("heard_publisher") > 0)
        | F.col("damage").isNotNull()
        | F.col("refusal").isNotNull()
    )
    judged.add_replayed(telling.select(*TELLING).toArrow())
