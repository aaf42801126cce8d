"""Traces in a report: what Spark's judge says of them, what they cost, how their latencies are distributed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.metrics.tables import TIMED
from cubecast.pipeline.verdict import RunVerdict, Verification
from cubecast.report import plots
from cubecast.report.document import Grid, Part, Picture, Section
from cubecast.report.metric_tables import COUNTS, DISTRIBUTIONS, OVER_RUNS, PARTS, shown_over_runs

MOST_RUNS = 20
"""Of more runs than this the page shows the means, and not every single one."""
MOST_LINES = 6
ALWAYS_TOLD = ("protocol", "nodes")


def verdict_section(verification: Verification) -> Section:
    report = verification.to_json()
    text = [
        f"{report['verdict']}: {report['messages']:,} messages, {report['deliveries']:,} deliveries, "
        f"{report['runs']:,} runs.",
        *(f"Not known because {reason}." for reason in report["unknown_because"]),
    ]
    return Section("Verdicts", text, list(_verdict_parts(verification)))


def _verdict_parts(verification: Verification) -> Iterator[Part]:
    worst_first = sorted(verification.runs, key=lambda one: ("VIOLATED", "UNKNOWN", "VALID").index(one.verdict))
    rows = [[one.run.name, one.verdict, _broken(one), one.messages, one.deliveries] for one in worst_first]
    yield Grid("Run by run", ["run", "verdict", "violated", "messages", "deliveries"], rows)
    rows = [[name, one.verdict, one.violations] for name, one in verification.properties.items()]
    yield Grid("Property by property", ["property", "verdict", "violations"], rows)
    if verification.witnesses:
        witnesses = [
            [one["property"], one["run"], f"{one['node']}.{one['incarnation']}", one["seq"], one["reason"]]
            for one in verification.witnesses
        ]
        yield Grid("Smallest witnesses", ["property", "run", "node", "row", "reason"], witnesses)


def _broken(one: RunVerdict) -> str:
    return ", ".join(name for name, verdict in one.properties.items() if verdict.violations)


def metrics_section(metrics: Metrics) -> Section:
    text = []
    if len(metrics.runs) > MOST_RUNS:
        text.append(f"{len(metrics.runs)} runs; the first {MOST_RUNS} are shown one by one.")
    return Section("Metrics", text, [*_latencies(metrics), *_over_runs(metrics), *_run_by_run(metrics)])


def _latencies(metrics: Metrics) -> Iterator[Part]:
    """Cumulative distributions of the first runs, for each clock unit apart: seconds and u.t. share no axis."""
    shown = metrics.runs[:MOST_LINES]
    names = [run["run"] for run in shown]
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    ranked = metrics.table("quantiles").sort_by([(name, "ascending") for name in ("run", "metric", "rank")])
    for row in ranked.to_pylist():
        if row["run"] in names:
            curves.setdefault((row["metric"], row["run"]), []).append((row["value"], row["rank"]))
    for unit in dict.fromkeys(run["clock_unit"] for run in shown):
        runs = [run["run"] for run in shown if run["clock_unit"] == unit]
        panels = {
            name.replace("_", " "): {run: curves[name, run] for run in runs if (name, run) in curves} for name in TIMED
        }
        known = {name: lines for name, lines in panels.items() if lines}
        if known:
            caption = f"Latencies of the first {len(runs)} runs" if len(metrics.runs) > MOST_LINES else "Latencies"
            yield Picture(f"{caption}, {unit}", plots.shares_below(known, unit))


def _over_runs(metrics: Metrics) -> Iterator[Part]:
    by_setting: dict[str, list[list[Any]]] = {}
    for row in shown_over_runs(metrics.over_runs):
        line = [row["metric"].replace("_", " "), *(row[part] for part in OVER_RUNS)]
        by_setting.setdefault(row["setting"], []).append(line)
    for setting, name in short_names(list(by_setting)).items():
        yield Grid(f"Over runs of {name}", ["", *_headings(OVER_RUNS)], by_setting[setting])


def short_names(settings: Sequence[str]) -> dict[str, str]:
    """Each setting by its protocol, its size, and what else is not the same in all of them."""
    parameters = {setting: json.loads(setting) for setting in settings}
    names = dict.fromkeys((*ALWAYS_TOLD, *(name for one in parameters.values() for name in one)))
    told = [
        name
        for name in names
        if name in ALWAYS_TOLD or len({json.dumps(one.get(name)) for one in parameters.values()}) > 1
    ]
    return {
        setting: ", ".join(f"{name} {one[name]}" for name in told if name in one) for setting, one in parameters.items()
    }


def _run_by_run(metrics: Metrics) -> Iterator[Part]:
    for run in metrics.runs[:MOST_RUNS]:
        title = f"{run['run']} · {run['protocol']} · times in {run['clock_unit']}"
        yield Grid(title, ["", *_headings(PARTS)], _rows(run), folded=len(metrics.runs) > 2)


def _rows(run: Mapping[str, Any]) -> list[list[Any]]:
    spread = [[name.replace("_", " "), *(run[name][part] for part in PARTS)] for name in DISTRIBUTIONS if name in run]
    counted = [[name.replace("_", " "), run.get(name)] for name in COUNTS]
    return spread + counted


def _headings(parts: Sequence[str]) -> list[str]:
    return ["± 99 %" if part == "ci99" else part for part in parts]
