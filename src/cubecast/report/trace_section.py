"""Traces in a report: the verdicts and what they mean, what the runs were like, what they cost, how long it took."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cubecast.pipeline.metrics.results import Metrics
from cubecast.pipeline.metrics.tables import TIMED
from cubecast.pipeline.verdict import RunVerdict, Verification
from cubecast.report import drawings, plots
from cubecast.report.document import VACUOUS, Grid, Part, Picture, Section, Tile, duration
from cubecast.report.story import Story, scene_of, tell_story
from cubecast.report.tables import COUNTS, DISTRIBUTIONS, OVER_RUNS, PARTS, shown_over_runs
from cubecast.trace.schema import MEANINGS, RUN_FILE

_OCCASIONS: Final = {
    **dict.fromkeys(("P1", "P1b", "P2", "P10", "P11", "P12"), "deliveries"),
    **dict.fromkeys(("P4", "P4u", "P9a", "P9b", "P9c"), "deliveries to others"),
    **dict.fromkeys(("P5", "P6"), "deliveries of later messages"),
    **dict.fromkeys(("P7", "P8"), "publications that depend on others"),
    **dict.fromkeys(("P13", "P3b"), "publications"),
    "P3": "acknowledgements",
    **dict.fromkeys(("K1", "K2", "K3"), "starting points with a past"),
    **dict.fromkeys(("P14", "P15", "P16"), "pairs of subscription and message"),
}
"""What the judges count for each as an occasion to break it."""


def meaning(name: str) -> str:
    return MEANINGS.get(name, "see docs/verification.md")


def occasions(name: str, premises: Mapping[str, int], events: int | None) -> str:
    """How often the judge saw occasion to break it; every row is one to contradict another."""
    if name == "K0" and events is not None:
        return f"{events:,} rows"
    return f"{premises[name]:,} {_OCCASIONS.get(name, 'occasions')}" if name in premises else "–"


MOST_RUNS = 20
"""Of more runs than this the page shows the means, and not every single one."""
MOST_LINES = 6
MOST_STORIES = 4
MOST_SCENES = 3
ALWAYS_TOLD = ("protocol", "nodes")
MOODS = {"VALID": "good", "VIOLATED": "bad", "UNKNOWN": "warn", "REFUSED": "bad"}
_UNITS = {
    **dict.fromkeys(("hops",), "hops"),
    **dict.fromkeys(("barrier_size", "vector_size", "vector_changed"), "entries"),
    **dict.fromkeys(("queue_length", "node_queue_mean", "node_packets_sent"), "packets"),
    **dict.fromkeys(("messages_per_packet", "node_held_max"), "messages"),
    "bytes_per_packet": "bytes",
}
"""Of distributions; the others are times."""
_MINOR = ("mean", "std", "ci99", "p90", "max")


def trace_sections(verification: Verification, metrics: Metrics) -> list[Section]:
    judged = [one for one in verification.runs if one.refused is None]
    stories = {one.run.directory: tell_story(Path(one.run.directory)) for one in judged[:MOST_STORIES]}
    told = [(one, story) for one in judged if (story := stories.get(one.run.directory)) is not None]
    units = {run["run"]: run["clock_unit"] for run in metrics.runs}
    return [
        _verdicts(verification, metrics, [story for _, story in told]),
        *([Section("What happened", (), list(_stories(told, units)))] if told else []),
        _metrics(metrics),
    ]


def _verdicts(verification: Verification, metrics: Metrics, stories: Sequence[Story]) -> Section:
    report = verification.to_json()
    text = [
        *(f"Not known because {reason}." for reason in report["unknown_because"]),
        *(f"Refused: {reason}." for reason in report["refused"]),
    ]
    whole = len(stories) == len(verification.runs)
    parts = list(_verdict_parts(verification, sum(story.events for story in stories) if whole else None))
    return Section("Verdicts", text, parts, _tiles(report, metrics))


def _tiles(report: Mapping[str, Any], metrics: Metrics) -> list[Tile]:
    broken = [name for name, one in report["properties"].items() if one["verdict"] == "VIOLATED"]
    untested = len(report["vacuous"])
    kept = f"{len(report['properties'])} promises decided" + (f", {untested} of them vacuous" if untested else "")
    first = report["witnesses"][0]["property"] if report["witnesses"] else None
    hint = f"{', '.join(broken)}; smallest witness: {first}" if broken else kept
    tiles = [
        Tile("Verdict", report["verdict"], hint, MOODS[report["verdict"]]),
        Tile("Messages", f"{report['messages']:,}", "published"),
        Tile("Deliveries", f"{report['deliveries']:,}", "every one of them judged"),
    ]
    if report["runs"] > 1:
        tiles.append(Tile("Runs", f"{report['runs']:,}"))
    if len(metrics.runs) == 1:
        (run,) = metrics.runs
        unit = run["clock_unit"]
        if "delivery_latency" in run:
            latency = run["delivery_latency"]
            tiles.append(Tile("Delivery", duration(latency["p50"], unit), "median latency"))
            tiles.append(
                Tile("Delivery, p99", duration(latency["p99"], unit), f"at most {duration(latency['max'], unit)}")
            )
        tiles.append(Tile("Nodes", f"{run['nodes']:,}", f"{run['packets']:,} packets"))
    return tiles


def _verdict_parts(verification: Verification, events: int | None) -> Iterator[Part]:
    report = verification.to_json()
    rows = [
        [
            name,
            VACUOUS if name in report["vacuous"] else one["verdict"],
            meaning(name),
            occasions(name, report["premises"], events),
            one["violations"],
        ]
        for name, one in report["properties"].items()
    ]
    headings = ["", "verdict", "what it says", "occasions", "violations"]
    yield Grid("Promise by promise", headings, rows, stacked=True)
    yield from _witnesses(verification)
    worst_first = sorted(
        verification.runs, key=lambda one: ("VIOLATED", "REFUSED", "UNKNOWN", "VALID").index(one.verdict)
    )
    lines = [[one.run.name, one.verdict, _broken(one), one.messages, one.deliveries] for one in worst_first]
    headings = ["run", "verdict", "violated", "messages", "deliveries"]
    yield Grid("Run by run", headings, lines, folded=len(lines) > MOST_RUNS, stacked=True)
    origins = [_origin(one) for one in worst_first[:MOST_RUNS]]
    yield Grid("Where it comes from", _ORIGIN, origins, folded=len(lines) > 2, stacked=True)


def _witnesses(verification: Verification) -> Iterator[Part]:
    if not verification.witnesses:
        return
    places = {one.run.name: Path(one.run.directory) for one in verification.runs}
    about = {
        tuple(str(one[key]) for key in ("run", "node", "incarnation", "other")): one
        for one in reversed(verification.witnesses)
    }
    for witness in list(reversed(about.values()))[:MOST_SCENES]:
        scene = scene_of(places[witness["run"]], witness) if places[witness["run"]].is_dir() else None
        if scene is not None:
            yield Picture(scene.title, [], scene.reason, [drawings.space_time(scene)])
    witnesses = [
        [one["property"], one["run"], f"{one['node']}.{one['incarnation']}", one["seq"], one["reason"]]
        for one in verification.witnesses
    ]
    yield Grid("Smallest witnesses", ["promise", "run", "node", "row", "reason"], witnesses, stacked=True)


def _broken(one: RunVerdict) -> str:
    return one.refused or ", ".join(name for name, verdict in one.properties.items() if verdict.violations)


_ORIGIN = ["run", "protocol", "nodes", "seed", "cubecast", "written", "parameters"]


def _origin(one: RunVerdict) -> list[Any]:
    """From the header; the date is the header file's."""
    path = Path(one.run.directory) / RUN_FILE
    try:
        header = json.loads(path.read_text())
        written = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC".replace(" ", "\u00a0")
    except (OSError, ValueError):
        return [one.run.name, *[None] * (len(_ORIGIN) - 1)]
    parameters = ", ".join(f"{name} {value}" for name, value in (header.get("parameters") or {}).items() if value)
    told = [str(header.get(name) or "–") for name in ("protocol", "nodes")]
    return [one.run.name, *told, str(header.get("seed", "–")), header.get("code_version") or "–", written, parameters]


def _stories(told: Sequence[tuple[RunVerdict, Story]], units: Mapping[str, str]) -> Iterator[Part]:
    for one, story in told:
        unit = units.get(one.run.name) or next(iter(units.values()), "")
        yield Picture(
            f"Timeline of {one.run.name}",
            [],
            _happened(story, unit) or "No node was killed, joined, left or was suspected, and no gap was told.",
            [drawings.timeline(story, unit)],
            narrow=[drawings.timeline(story, unit, narrow=True)],
        )
        if story.tree is not None and len(story.tree.parents) < drawings.MOST_IN_TREE:
            tree = story.tree
            caption = f"A publication of node {tree.source} in {one.run.name}"
            reached = (
                f"Message {tree.counter} on {tree.topic} reached {len(tree.parents)} nodes, each by the packet shown."
            )
            drawing, is_wide = [drawings.tree(tree)], len(tree.parents) > 24
            yield Picture(caption, [] if is_wide else drawing, reached, drawing if is_wide else [])


def _happened(story: Story, unit: str) -> str:
    """What happened to a node again and again is said once, with its first and its last time."""
    times: dict[tuple[int, str], list[float]] = {}
    for mark in story.marks:
        times.setdefault((mark.node, mark.what), []).append(mark.at - story.began)
    said = []
    for (node, what), every in list(times.items())[:12]:
        again = f", {len(every)} times until {duration(every[-1], unit)}" if len(every) > 1 else ""
        said.append(f"node {node} {what} at {duration(every[0], unit)}{again}")
    return "; ".join(said) + ("; …" if len(times) > 12 else "")


def _metrics(metrics: Metrics) -> Section:
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
        scale, shown_unit = _scale(
            [value for (_, run), steps in curves.items() if run in runs for value, _ in steps], unit
        )
        panels, same = [], []
        for name in TIMED:
            known = {
                run: [(value * scale, rank) for value, rank in curves[name, run]]
                for run in runs
                if (name, run) in curves
            }
            values = {value for steps in known.values() for value, _ in steps}
            if len(values) > 1:
                panels.append(plots.shares_below(name.replace("_", " "), known, shown_unit))
            elif values:
                same.append(f"{name.replace('_', ' ')} is always {duration(values.pop() / scale, unit)}")
        if panels:
            caption = f"Latencies of the first {len(runs)} runs" if len(metrics.runs) > MOST_LINES else "Latencies"
            yield Picture(f"{caption}, {shown_unit}", panels, "; ".join(same))


def _scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """What to draw seconds in, by the median of what is drawn."""
    positive = sorted(value for value in values if value > 0)
    if unit != "s" or not positive:
        return 1.0, unit
    middle = positive[len(positive) // 2]
    return (1.0, "s") if middle >= 1 else (1e3, "ms") if middle >= 1e-3 else (1e6, "µs")


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
        folded = len(metrics.runs) > 2
        spread, minor = _spread(run), _headings(_MINOR)
        yield Grid(f"Distributions in {run['run']}", ["", *_headings(PARTS)], spread, folded=folded, minor=minor)
        counted = [[name.replace("_", " "), run.get(name)] for name in COUNTS]
        yield Grid(f"Totals of {run['run']}", ["", "value"], counted, folded=folded)


def _spread(run: Mapping[str, Any]) -> list[list[Any]]:
    """A line per distribution, each value with its unit."""
    rows = []
    for name in DISTRIBUTIONS:
        if name in run:
            unit = _UNITS.get(name)
            label = name.replace("_", " ")
            if unit is None:
                rows.append([label, *(_time(run[name][part], run["clock_unit"]) for part in PARTS)])
            else:
                rows.append([label if unit == label else f"{label}, {unit}", *(run[name][part] for part in PARTS)])
    return rows


def _time(value: float | None, unit: str) -> Any:
    return None if value is None else duration(value, unit)


def _headings(parts: Sequence[str]) -> list[str]:
    return ["± 99 %" if part == "ci99" else part for part in parts]
