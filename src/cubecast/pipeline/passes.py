"""Runs a judgement over all rows: on whole nodes read straight from files, or after a shuffle where files mix nodes.

A judgement is a function from `Rows` to dictionaries in the schema of its output frame.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import ROW
from cubecast.pipeline.layout import Chunk, Piece, UnreadableFile, read_chunk, scattered, tasks
from cubecast.pipeline.rows import Rows, rows_of

Judgement: TypeAlias = Callable[[Rows], list[dict[str, Any]]]
Tasks: TypeAlias = list[list[Chunk]]
Work: TypeAlias = Callable[[list[Chunk]], Iterator[pa.RecordBatch]]
ROWS_PER_SHUFFLED_PARTITION = 1_000_000
ROWS_PER_SHUFFLED_BATCH = 4_096
"""The JVM walks lists inside a batch again and again: the time per row grows with the rows of a batch."""


@dataclass(frozen=True)
class Plan:
    """Where to read which nodes together; the same for every pass over a batch of runs."""

    pieces: list[Piece]
    names: dict[int, str]
    """Run number → the name its rows carry."""
    numbers: dict[str, int]
    """The other way round, for names that only one run has."""

    def without(self, runs: Iterable[int]) -> "Plan":
        """The same plan for fewer runs."""
        gone = set(runs)
        if not gone:
            return self
        kept = [piece for piece in self.pieces if any(group["run"] not in gone for group in piece.groups)]
        return Plan(kept, self.names, self.numbers)


def run_pass(
    spark: SparkSession, plan: Plan, columns: Sequence[str], judgement: Judgement, schema: StructType
) -> DataFrame:
    """One frame of `schema` from all rows of the plan."""
    together = [piece for piece in plan.pieces if not scattered(piece)]
    shuffled = [piece for piece in plan.pieces if scattered(piece)]
    frames = []
    if together or not shuffled:
        judge = partial(judge_chunks, columns, plan.numbers, judgement, schema)
        frames.append(run_tasks(spark, together, plan.names, judge, schema))
    if shuffled:
        rows = run_tasks(spark, _apart(shuffled), plan.names, partial(_read_rows, columns, plan.numbers), ROW)
        partitions = 1 + sum(piece.rows for piece in shuffled) // ROWS_PER_SHUFFLED_PARTITION
        by_node = rows.repartition(partitions, "run", "node")
        frames.append(by_node.mapInArrow(partial(_judge_rows, judgement, schema), schema))
    return reduce(DataFrame.unionByName, frames).select(*schema.names)


def run_tasks(
    spark: SparkSession, pieces: list[Piece], names: dict[int, str], work: Work, schema: StructType
) -> DataFrame:
    """One partition per task of the plan: Spark hands them to free cores in order, the heaviest first."""
    planned = spark.sparkContext.broadcast(tasks(pieces, names, spark.sparkContext.defaultParallelism))
    count = len(planned.value)
    return spark.range(0, count, 1, max(count, 1)).mapInArrow(partial(_work, planned, work), schema)


def _work(planned: Broadcast[Tasks], work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            yield from work(planned.value[task])


def _apart(pieces: list[Piece]) -> list[Piece]:
    """Every row group on its own: before a shuffle nothing has to be read together."""
    apart = []
    for piece in pieces:
        for group in piece.groups:
            apart.append(Piece())
            apart[-1].add(group)
    return apart


def judge_chunks(
    columns: Sequence[str],
    numbers: dict[str, int],
    judgement: Judgement,
    schema: StructType,
    chunks: list[Chunk],
) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        problems, table = _read(chunk, columns, numbers)
        found = judgement(rows_of(table)) if table is not None else []
        yield batch_of([*problems, *found], schema)


def _read(
    chunk: Chunk, columns: Sequence[str], numbers: dict[str, int]
) -> tuple[list[dict[str, Any]], pa.Table | None]:
    """The chunk's rows, and a row for each run that cannot be read (whose other rows then do not matter)."""
    problems: list[dict[str, Any]] = []
    while chunk:
        try:
            return problems, read_chunk(chunk, columns, numbers)
        except UnreadableFile as found:
            problems.append({"run": found.run, found.what: str(found)})
            chunk = [part for part in chunk if part["run"] != found.run]
    return problems, None


def _read_rows(columns: Sequence[str], numbers: dict[str, int], chunks: list[Chunk]) -> Iterator[pa.RecordBatch]:
    declared = to_arrow_schema(ROW)
    for chunk in chunks:
        problems, table = _read(chunk, columns, numbers)
        if problems:
            yield batch_of(problems, ROW)
        if table is not None:
            absent = {name: pa.nulls(table.num_rows, declared.field(name).type) for name in declared.names}
            filled = {name: table.column(name) for name in table.column_names}
            yield from (
                pa.table(absent | filled).select(declared.names).cast(declared).to_batches(ROWS_PER_SHUFFLED_BATCH)
            )


def _judge_rows(
    judgement: Judgement, schema: StructType, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """All rows of a shuffled partition: whole nodes, in no order."""
    everything = list(batches)
    if not everything:
        return
    table = pa.Table.from_batches(everything)
    told = pc.or_(table.column("damage").is_valid(), table.column("refusal").is_valid())
    problems = table.filter(told).select(["run", "damage", "refusal"]).to_pylist()
    found = judgement(rows_of(table.filter(pc.invert(told))))
    yield batch_of([*problems, *found], schema)
