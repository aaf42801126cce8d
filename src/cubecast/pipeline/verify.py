"""The judge: traces in, a verdict for every promise out. docs/verification.md says what each one means.

(1) every log is summed up where it lies, and the driver turns the sums into message tables; (2) every subscription is
replayed against them where it lies; (3) the subscriptions' vectors meet (P4); (4) their sequences meet (P9) and the
headers are checked (P13), only where these are promised. No pass moves more than it must: deliveries never shuffle
unless the files mix nodes. Spark does the passes, or, where the rows are few, this process (`in_memory.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from cubecast.pipeline.assemble import RunSummary, assemble, assemble_by_process, summaries
from cubecast.pipeline.continuity import PREMISED, Continuity, account_rows
from cubecast.pipeline.findings import finding_rows, premises
from cubecast.pipeline.frames import ACCOUNT, FOUND, LOG
from cubecast.pipeline.in_memory import InMemory
from cubecast.pipeline.judging import Judged, OnSpark
from cubecast.pipeline.layout import PLAIN, pieces
from cubecast.pipeline.logs import log_rows, waiting_rows
from cubecast.pipeline.messages import RunMessages, in_circles
from cubecast.pipeline.passes import Plan
from cubecast.pipeline.staging import Run, checked_properties, find_runs
from cubecast.pipeline.verdict import RunVerdict, Verification, judge_run, refuse_run

ROWS_PER_BATCH = 400_000_000
"""Runs are judged together up to this many rows, so that their message tables fit into memory."""
Engine: TypeAlias = InMemory | OnSpark


@dataclass
class _Stages:
    """Says which stage runs, and keeps how long each took."""

    tell: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.tell(name)
        began = perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - began


def verify(
    spark: SparkSession | None,
    directories: Sequence[Path],
    properties: Sequence[str] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Verification:
    """Judge every run in and below these directories, by default on what its header promises.

    Without a session this process does it alone: for traces of up to `in_memory.ROWS_IN_MEMORY` rows.
    """
    started = perf_counter()
    engine: Engine = InMemory() if spark is None else OnSpark(spark)
    stages = _Stages(tell)
    runs = find_runs([Path(directory) for directory in directories])
    wanted = checked_properties(runs, properties)
    with stages.stage("reading footers"):
        groups, damage, refused = _layout(engine, runs)
    verdicts: dict[int, RunVerdict] = {}
    for batch in _batches(runs, groups):
        plan = _plan(batch, groups, {*damage, *refused})
        found = _judge(engine, batch, plan, wanted, damage, refused, stages)
        verdicts |= {verdict.run.index: verdict for verdict in found}
    return Verification(tuple(verdicts[run.index] for run in runs), perf_counter() - started, stages.seconds)


Reasons: TypeAlias = dict[int, list[str]]


def _layout(engine: Engine, runs: list[Run]) -> tuple[dict[int, list[dict[str, Any]]], Reasons, Reasons]:
    """The row groups of every run, the runs with files that cannot be read, and those that are no traces."""
    files = [
        {"run": run.index, "name": run.name, "path": path, "version": run.version} for run in runs for path in run.files
    ]
    groups: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    damage: Reasons = {}
    refused: Reasons = {run.index: [run.refusal] for run in runs if run.refusal is not None}
    for row in engine.footers(files):
        for what, reasons in (("refusal", refused), ("damage", damage)):
            if row.get(what) is not None:
                reasons.setdefault(row["run"], []).append(row[what])
                break
        else:
            groups[row["run"]].append(row)
    return groups, damage, refused


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


def _plan(batch: list[Run], groups: dict[int, list[dict[str, Any]]], unread: set[int]) -> Plan:
    often = Counter(run.name for run in batch)
    numbers = {run.name: run.index for run in batch if often[run.name] == 1}
    readable = [group for run in batch if run.index not in unread for group in groups.get(run.index, ())]
    return Plan(pieces(readable), {run.index: run.name for run in batch}, numbers)


def _judge(
    engine: Engine,
    batch: list[Run],
    plan: Plan,
    wanted: dict[int, tuple[str, ...]],
    damage: Reasons,
    refused: Reasons,
    stages: _Stages,
) -> Iterable[RunVerdict]:
    with stages.stage("reading logs"):
        found, foreign = summaries(engine.run_pass(plan, (*PLAIN, "deps", "cut", "digest"), log_rows, LOG))
    refused |= foreign
    with stages.stage("building message tables"):
        for summary in found.values():
            assemble(summary)
        _find_circles(engine, plan, found)
    sound = {
        run.index: messages
        for run in batch
        if run.index in found and not found[run.index].damage and (messages := found[run.index].messages) is not None
    }
    with stages.stage("replaying subscriptions"):
        asked = {run.index: (*wanted[run.index], *(f"{name} measured" for name in run.measured)) for run in batch}
        judged = engine.judge(plan.without(set(plan.names) - set(sound)), sound, asked)
    _judge_continuity(engine, plan, found, sound, wanted, judged)
    return map(partial(_verdict, found=found, judged=judged, wanted=wanted, damage=damage, refused=refused), batch)


def _judge_continuity(
    engine: Engine,
    plan: Plan,
    found: dict[int, RunSummary],
    sound: dict[int, RunMessages],
    wanted: dict[int, tuple[str, ...]],
    judged: Judged,
) -> None:
    """P14 to P16, of runs in which a process lived through a suspicion; of others they say nothing."""
    asked = {run: table for run, table in sound.items() if not set(PREMISED).isdisjoint(wanted[run])}
    judged.premises |= {run: dict.fromkeys(PREMISED, 0) for run in asked}
    resumed = frozenset(run for run, table in asked.items() if table.resumed)
    if not resumed:
        return
    plan = plan.without(set(plan.names) - resumed)
    rows: dict[int, list[dict[str, Any]]] = {run: [] for run in resumed}
    for row in engine.run_pass(plan, (*PLAIN, "cut"), partial(account_rows, resumed), ACCOUNT).to_pylist():
        reasons = [row[what] for what in ("damage", "refusal") if row[what] is not None]
        judged.damage[row["run"]] += reasons
        if not reasons:
            rows[row["run"]].append(row)
    for run, told in rows.items():
        continuity = Continuity(found[run], assemble_by_process(found[run]), told)
        judged.findings[run] += [one for one in finding_rows(continuity.findings()) if one["property"] in wanted[run]]
        judged.premises[run] = continuity.premises()


def _find_circles(engine: Engine, plan: Plan, found: dict[int, RunSummary]) -> None:
    """K0 once more, for the rare run in which happened-before runs in a circle: which rows wait for themselves?"""
    circles = {run: summary.circle for run, summary in found.items() if summary.circle is not None}
    if circles:
        plan = plan.without(set(plan.names) - set(circles))
        stuck = engine.run_pass(plan, (*PLAIN, "cut"), partial(waiting_rows, circles), FOUND)
        waiting: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in stuck.to_pylist():
            waiting[row["run"]] += row["findings"]
        for run, findings in waiting.items():
            found[run].findings += in_circles(findings, circles[run])


def _verdict(
    run: Run,
    found: dict[int, RunSummary],
    judged: Judged,
    wanted: dict[int, tuple[str, ...]],
    damage: Reasons,
    refused: Reasons,
) -> RunVerdict:
    if run.index in refused:
        return refuse_run(run, refused[run.index][0])
    summary = found.get(run.index, RunSummary())
    broken = [*damage.get(run.index, ()), *summary.damage, *judged.damage.get(run.index, ())]
    if broken:
        return judge_run(run, wanted[run.index], [], broken)
    rates = {"P4": (judged.kept[run.index], judged.kept[run.index] + judged.lost[run.index])}
    verdict = judge_run(
        run,
        wanted[run.index],
        [*summary.findings, *judged.findings.get(run.index, ())],
        incomplete(run, summary),
        deliveries=sum(log.deliveries for log in summary.logs),
        messages=sum(log.publications for log in summary.logs),
        bad_rows=sum(log.bad_rows for log in summary.logs),
    )
    occasions = premises([log.lists["premises"] for log in summary.logs], wanted[run.index])
    told = judged.premises.get(run.index, {})
    occasions |= {name: count for name, count in told.items() if name in wanted[run.index]}
    verdict = replace(verdict, premises=occasions)
    contradicts = any(finding["property"] == "K0" for finding in summary.findings)
    measured = {name: rates[name] for name in run.measured if name in rates and not contradicts}
    return replace(verdict, measured=measured)


def incomplete(run: Run, summary: RunSummary) -> list[str]:
    """Why the trace lacks something, a line each."""
    reasons = [] if summary.logs else ["the trace has no rows"]
    nodes = len({log.node for log in summary.logs})
    if run.nodes is not None and nodes < run.nodes:
        reasons.append(f"rows of {nodes} nodes instead of {run.nodes}")
    return reasons + [log.problem for log in summary.logs if log.problem is not None]
