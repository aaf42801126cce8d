"""The passes of the judge in this process: the same judgements over the same pieces of files, no JVM.

Starting Spark and planning its jobs takes longer than judging a million rows. What is judged, and how, is the same;
only who calls the judgements differs.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from cubecast.pipeline.agreement import COLUMNS, VECTORS, grouped, shortfalls, suspected, topic_groups
from cubecast.pipeline.findings import batch_of, finding_rows
from cubecast.pipeline.frames import REPLAYED, SEQUENCE
from cubecast.pipeline.judging import AGREEMENT, MEASURED_AGREEMENT, TOTAL_ORDER, Judged, Tables, columns_for, only
from cubecast.pipeline.layout import PLAIN, file_footer, tasks
from cubecast.pipeline.order import disorder, holes, sequence_rows, sequences_of, unsound_headers
from cubecast.pipeline.passes import Judgement, Plan, judge_chunks
from cubecast.pipeline.replay import replayed_rows
from cubecast.pipeline.staging import Run

ROWS_IN_MEMORY = 2_000_000
"""Traces of up to this many rows are judged and measured in the process that asks."""


class InMemory:
    """An engine of `verify` (`judging.OnSpark` is the other one)."""

    name = "in memory"

    def footers(self, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for file in files for row in file_footer(**file)]

    def run_pass(self, plan: Plan, columns: Sequence[str], judgement: Judgement, schema: StructType) -> pa.Table:
        chunks = [chunk for task in tasks(plan.pieces, plan.names, 1) for chunk in task]
        batches = list(judge_chunks(columns, plan.numbers, judgement, schema, chunks))
        return pa.Table.from_batches(batches or [batch_of([], schema)])

    def judge(self, plan: Plan, runs: Tables, wanted: dict[int, tuple[str, ...]]) -> Judged:
        """Passes 2 to 4, as `judging.OnSpark.judge` does them."""
        judged = Judged()
        wants = {run: frozenset(wanted[run]) for run in runs}
        asked = frozenset[str]().union(*wants.values())
        if asked <= {"K0"}:
            return judged
        replaying = partial(replayed_rows, runs=runs, wanted=wants)
        replayed = self.run_pass(plan, columns_for(asked), replaying, REPLAYED)
        judged.add_replayed(replayed)
        if MEASURED_AGREEMENT in asked:
            judged.add_kept(replayed.filter(pc.field("correct") & pc.field("topic").is_valid()))
        if asked & AGREEMENT:
            for run, table in suspected(replayed.select([*COLUMNS, *VECTORS]).filter(pc.field("topic").is_valid())):
                judged.findings[run] += finding_rows(shortfalls(table, partial(runs.__getitem__, run)))
        if asked & TOTAL_ORDER:
            ordered = only(runs, wants, TOTAL_ORDER)
            plan = plan.without(set(runs) - set(ordered))
            sequences = self.run_pass(plan, (*PLAIN, "cut"), partial(sequence_rows, runs=ordered), SEQUENCE)
            for run, table in _by_topic(sequences):
                judged.findings[run] += _order(table)
        for run, messages in only(runs, wants, {"P13"}).items():
            for topic, table in messages.topics.items():
                judged.findings[run] += finding_rows(unsound_headers(topic, table))
        return judged


def _order(table: pa.Table) -> list[dict[str, Any]]:
    sequences = sequences_of(table.to_pylist())
    return finding_rows([*disorder(sequences), *holes(sequences)])


def _by_topic(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Rows with a topic, those of a topic of a run together."""
    table = table.filter(pc.field("topic").is_valid())
    if not table.num_rows:
        return
    parts = grouped(np.arange(table.num_rows), topic_groups(table))
    sorted_rows, begin = table.take(pa.array(np.concatenate(parts))).combine_chunks(), 0
    for rows in parts:
        yield sorted_rows.column("run")[begin].as_py(), sorted_rows.slice(begin, len(rows)).combine_chunks()
        begin += len(rows)


def fits(runs: Sequence[Run], *, apart: bool = False) -> bool:
    """Whether the runs have few enough rows, and (`apart`) no file holds rows of another run.

    Files that cannot be read count nothing: reading them says what is wrong.
    """
    rows = 0
    for run in runs:
        for path in run.files:
            groups = file_footer(run.index, run.name, path, run.version)
            rows += sum(group.get("rows", 0) for group in groups)
            if rows > ROWS_IN_MEMORY or (apart and not all(group.get("own", True) for group in groups)):
                return False
    return True
