"""The judge: traces in, a verdict for every promise out. docs/verification.md says what each one means.

(1) every log is summed up where it lies, and the driver turns the sums into message tables; (2) every subscription is
replayed against them where it lies; (3) the subscriptions' vectors meet (P4); (4) their sequences meet (P9) and the
headers are checked (P13), only where these are promised. No pass moves more than it must: deliveries never shuffle
unless the files mix nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from cubecast.errors import TraceError
from cubecast.pipeline.assemble import RunSummary, assemble, summaries
from cubecast.pipeline.frames import FOUND, INT, LOG, TEXT, struct
from cubecast.pipeline.judging import Judged, judge_batch
from cubecast.pipeline.layout import footers, pieces
from cubecast.pipeline.logs import log_rows, waiting_rows
from cubecast.pipeline.passes import Plan, run_pass
from cubecast.pipeline.reading import PLAIN
from cubecast.pipeline.staging import Run, checked_properties, find_runs
from cubecast.pipeline.verdict import RunVerdict, Verification, judge_run

ROWS_PER_BATCH = 400_000_000
"""Runs are judged together up to this many rows, so that their message tables fit into memory."""
FILE = struct(run=INT, name=TEXT, path=TEXT)


def verify(spark: SparkSession, directories: Sequence[Path], properties: Sequence[str] | None = None) -> Verification:
    """Judge every run in and below these directories, by default on what its header promises."""
    started = perf_counter()
    runs = find_runs([Path(directory) for directory in directories])
    wanted = checked_properties(runs, properties)
    groups, damage = _layout(spark, runs)
    verdicts: dict[int, RunVerdict] = {}
    for batch in _batches(runs, groups):
        plan = _plan(batch, groups, damage)
        verdicts |= {verdict.run.index: verdict for verdict in _judge(spark, batch, plan, wanted, damage)}
    return Verification(tuple(verdicts[run.index] for run in runs), perf_counter() - started)


def _layout(spark: SparkSession, runs: list[Run]) -> tuple[dict[int, list[dict[str, Any]]], dict[int, list[str]]]:
    """The row groups of every run, and the runs with files that cannot be read."""
    files = [{"run": run.index, "name": run.name, "path": path} for run in runs for path in run.files]
    table = pa.Table.from_pylist(files, pa.schema([("run", pa.int32()), ("name", pa.string()), ("path", pa.string())]))
    groups: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    damage: defaultdict[int, list[str]] = defaultdict(list)
    for row in footers(spark.createDataFrame(table, schema=FILE)).toArrow().to_pylist():
        if row["refusal"] is not None:
            raise TraceError(row["refusal"])
        if row["damage"] is not None:
            damage[row["run"]].append(row["damage"])
        else:
            groups[row["run"]].append(row)
    return groups, damage


def _batches(runs: list[Run], groups: dict[int, list[dict[str, Any]]]) -> Iterator[list[Run]]:
    """Runs judged together. Rows of several runs in one row group may concern any of them: then all at once."""
    if not all(group["own"] for found in groups.values() for group in found):
        yield runs
        return
    batch: list[Run] = []
    rows = 0
    for run in runs:
        size = sum(group["rows"] for group in groups.get(run.index, ()))
        if batch and rows + size > ROWS_PER_BATCH:
            yield batch
            batch, rows = [], 0
        batch.append(run)
        rows += size
    yield batch


def _plan(batch: list[Run], groups: dict[int, list[dict[str, Any]]], damage: dict[int, list[str]]) -> Plan:
    often = Counter(run.name for run in batch)
    numbers = {run.name: run.index for run in batch if often[run.name] == 1}
    readable = [group for run in batch if run.index not in damage for group in groups.get(run.index, ())]
    return Plan(pieces(readable), {run.index: run.name for run in batch}, numbers)


def _judge(
    spark: SparkSession, batch: list[Run], plan: Plan, wanted: dict[int, tuple[str, ...]], damage: dict[int, list[str]]
) -> Iterable[RunVerdict]:
    logs = run_pass(spark, plan, (*PLAIN, "deps", "cut"), log_rows, LOG)
    found = summaries(logs.toArrow())
    for summary in found.values():
        assemble(summary)
    _find_circles(spark, plan, found)
    sound = {
        run.index: messages
        for run in batch
        if run.index in found and not found[run.index].damage and (messages := found[run.index].messages) is not None
    }
    judged = judge_batch(spark, plan.without(set(plan.names) - set(sound)), sound, wanted)
    return map(partial(_verdict, found=found, judged=judged, wanted=wanted, damage=damage), batch)


def _find_circles(spark: SparkSession, plan: Plan, found: dict[int, RunSummary]) -> None:
    """K0 once more, for the rare run in which happened-before runs in a circle: which rows wait for themselves?"""
    circles = {run: summary.circle for run, summary in found.items() if summary.circle is not None}
    if circles:
        plan = plan.without(set(plan.names) - set(circles))
        stuck = run_pass(spark, plan, (*PLAIN, "cut"), partial(waiting_rows, circles), FOUND)
        for row in stuck.toArrow().to_pylist():
            found[row["run"]].findings += row["findings"]


def _verdict(
    run: Run,
    found: dict[int, RunSummary],
    judged: Judged,
    wanted: dict[int, tuple[str, ...]],
    damage: dict[int, list[str]],
) -> RunVerdict:
    summary = found.get(run.index, RunSummary())
    broken = [*damage.get(run.index, ()), *summary.damage, *judged.damage.get(run.index, ())]
    if broken:
        return judge_run(run, wanted[run.index], [], broken)
    return judge_run(
        run,
        wanted[run.index],
        [*summary.findings, *judged.findings.get(run.index, ())],
        incomplete(run, summary),
        deliveries=sum(log.deliveries for log in summary.logs),
        messages=sum(log.publications for log in summary.logs),
        bad_rows=sum(log.bad_rows for log in summary.logs),
    )


def incomplete(run: Run, summary: RunSummary) -> list[str]:
    """Why the trace lacks something, a line each."""
    reasons = [] if summary.logs else ["the trace has no rows"]
    nodes = len({log.node for log in summary.logs})
    if run.nodes is not None and nodes < run.nodes:
        reasons.append(f"rows of {nodes} nodes instead of {run.nodes}")
    return reasons + [log.problem for log in summary.logs if log.problem is not None]
