"""What commands print for people: figures, verdicts, metrics, workloads, logs, benchmarks, swarms, protocols."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cubecast.protocol.family import Family
from cubecast.protocol.parameters import Parameter
from cubecast.trace.schema import RUN_FILE

_DISTRIBUTIONS = {
    "reception_latency": "reception latency, u.t.",
    "delivery_latency": "delivery latency, u.t.",
    "holding_time": "holding time, u.t.",
    "barrier_size": "barrier size, entries",
    "queue_length": "output queue, packets",
}
_RUN_COUNTS = (
    "published",
    "packets",
    "messages_sent",
    "bytes",
    "deliveries",
    "duplicates",
    "false_positives",
    "refused",
)


def figures_table(figures: Mapping[str, Any]) -> Table:
    """What `cubecast sim` measured."""
    title = f"{figures['protocol']} · {figures['nodes']} nodes · seed {figures['seed']}"
    caption = f"{figures['events_per_second']:,.0f} packet events per second · digest {figures['digest']}"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for heading in ("", "mean", "p50", "p99", "max"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, label in _DISTRIBUTIONS.items():
        table.add_row(label, *(f"{figures[name][part]:,.2f}" for part in ("mean", "p50", "p99", "max")))
    table.add_section()
    for name in _RUN_COUNTS:
        table.add_row(name.replace("_", " "), f"{figures[name]:,}")
    return table


def print_verdict(console: Console, report: Mapping[str, Any]) -> None:
    """What a checker found: property by property, then the smallest witnesses."""
    table = Table("property", "verdict", "violations")
    for name, one in report["properties"].items():
        said = f"{one['verdict']}, vacuous" if name in report.get("vacuous", ()) else one["verdict"]
        table.add_row(name, said, f"{one['violations']:,}")
    console.print(table)
    _print_list(console, "Measured, not promised", [_measured(*one) for one in report.get("measured", {}).items()])
    _print_list(console, "Not known because", report["unknown_because"])
    _print_list(console, "Smallest witnesses", [_witness(one) for one in report["witnesses"]])
    _print_list(console, "Partial", report.get("partial", ()))
    _print_list(console, "Refused", report.get("refused", ()))
    runs = f" in {report['runs']:,} runs" if report["runs"] > 1 else ""
    console.print(f"{report['verdict']}: {report['messages']:,} messages, {report['deliveries']:,} deliveries{runs}")


def _measured(name: str, one: Mapping[str, Any]) -> str:
    if not one["of"]:
        return f"{name}: nothing to measure it by"
    low, high = one["interval"]
    return f"{name}: {one['rate']:.4%} of {one['of']:,}, with 95 % confidence {low:.4%} to {high:.4%}"


def _witness(one: Mapping[str, Any]) -> str:
    where = f"node {one['node']}.{one['incarnation']}, row {one['seq']}"
    return f"{one['property']} in {one['run']}, {where}: {one['reason']}"


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(f"{title}:")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)


COMPARED = {
    "complete": "complete, %",
    "p50": "p50, ms",
    "p99": "p99, ms",
    "packets": "packets",
    "bytes": "bytes",
    "metadata": "metadata, bytes",
    "holding": "held, ms",
    "joined": "joined, ms",
    "missed": "missed, %",
    "P5": "FIFO broken",
    "P7": "causes late",
    "P9b": "total order",
}
"""What a comparison shows of each system, and as what: packets and bytes per delivery."""
_SHARES = ("complete", "missed")


def compared(row: Mapping[str, Any], name: str) -> float | str | None:
    """A figure of a comparison as it is shown."""
    value: float | None = row[name]
    if name == "P9b":
        return "yes" if value == 0 else "no"
    return value if value is None or name not in _SHARES else 100 * value


def print_comparison(console: Console, found: Mapping[str, Any]) -> None:
    """A table for each condition."""
    size = found["size"]
    for condition in dict.fromkeys(row["condition"] for row in found["rows"]):
        table = Table(title=condition, title_justify="left")
        table.add_column("system")
        for heading in COMPARED.values():
            table.add_column(heading, justify="right")
        for row in found["rows"]:
            if row["condition"] == condition:
                table.add_row(row["system"], *(_short(compared(row, name)) for name in COMPARED))
        console.print(table)
    console.print(
        f"{size['nodes']} processes, {size['publishers']} of them publish {size['messages']} messages of "
        f"{size['size']} bytes each within 4 s; a hop takes 5 to 15 ms. Packets, bytes and metadata are per delivery. "
        f"{found['runs']} runs, seed {found['seed']}.",
        soft_wrap=True,
    )


def _short(value: float | str | None) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"


# Metrics of traces as tables for people

DISTRIBUTIONS = (
    *("reception_latency", "delivery_latency", "holding_time", "completion_latency", "subscription_latency", "hops"),
    *("barrier_size", "vector_size", "vector_changed", "messages_per_packet", "bytes_per_packet"),
    *("queue_length", "transit_time", "node_queue_mean", "node_held_max", "node_packets_sent"),
)
PARTS = ("mean", "std", "ci99", "p50", "p90", "p99", "max")
OVER_RUNS = ("runs", "mean", "std", "ci99", "min", "max")
COUNTS = (
    *("published", "deliveries", "packets", "messages_sent", "bytes", "packets_per_publication"),
    *("duplicates", "false_positives", "relays", "lost_packets", "packets_sent_gini", "packets_sent_max_over_mean"),
)


def metric_tables(metrics: Mapping[str, Any]) -> Iterator[Table]:
    """One table per run, and one over runs if any setting has several."""
    for run in metrics["runs"]:
        yield run_table(run)
    several = shown_over_runs(metrics["over_runs"])
    if several:
        yield over_runs_table(several)


def shown_over_runs(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of settings with several runs, what is worth a line."""
    return [row for row in rows if row["runs"] > 1 and row["metric"] in (*DISTRIBUTIONS, *COUNTS)]


def run_table(run: Mapping[str, Any]) -> Table:
    table = Table(title=f"{run['run']} · {run['protocol']} · times in {run['clock_unit']}", title_justify="left")
    _columns(table, PARTS)
    for name in DISTRIBUTIONS:
        if name in run:
            table.add_row(name.replace("_", " "), *(_number(run[name][part]) for part in PARTS))
    table.add_section()
    for name in COUNTS:
        table.add_row(name.replace("_", " "), _number(run.get(name)))
    return table


def over_runs_table(rows: list[Mapping[str, Any]]) -> Table:
    table = Table(title="over runs of the same setting", title_justify="left")
    _columns(table, OVER_RUNS)
    setting = rows[0]["setting"]
    for row in rows:
        if row["setting"] != setting:
            table.add_section()
            setting = row["setting"]
        table.add_row(row["metric"].replace("_", " "), *(_number(row[part]) for part in OVER_RUNS))
    return table


def _columns(table: Table, headings: tuple[str, ...]) -> None:
    table.add_column("")
    for heading in headings:
        table.add_column("± 99 %" if heading == "ci99" else heading, justify="right")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


# Subscription workloads as tables for people

_DEGREES = {"subscribers_per_topic": "subscribers per topic", "subscriptions_per_user": "subscriptions per user"}


def degrees_table(facts: Mapping[str, Any]) -> Table:
    """Sizes, both degree distributions with their power laws, and the correlation of topics."""
    title = f"{facts['topics']:,} topics · {facts['users']:,} users · {facts['subscriptions']:,} subscriptions"
    table = Table(
        title=title, caption=correlation_line(facts["correlation"]), title_justify="left", caption_justify="left"
    )
    for heading in ("", "mean", "max", "exponent", "from", "distance"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, label in _DEGREES.items():
        degrees, law = facts[name], facts[name]["power_law"]
        exponent = f"{law['exponent']:.2f} ± {law['error']:.2f}"
        numbers = (f"{degrees['mean']:,.1f}", f"{degrees['max']:,}", exponent, f"{law['least']:,}")
        table.add_row(label, *numbers, f"{law['distance']:.3f}")
    return table


def overlays_table(facts: Mapping[str, Any]) -> Table:
    """Links of a process and the shape of its overlays, before and after."""
    links = list(facts["links"].items())
    title = f"{facts['users']:,} users · {facts['subscriptions']:,} subscriptions · StaN, {links[-1][0]} rounds"
    caption = (
        f"{facts['improved']:.1%} of the users lose more than 40 % of their links; "
        f"the graphs are those of {facts['overlays']['before']['topics']:,} topics"
    )
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for heading in ("", "before", "after"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("links of a user", f"{links[0][1]:,.1f}", f"{links[-1][1]:,.1f}")
    table.add_row("links, topic by topic", *[f"{facts['logical_links']:,.1f}"] * 2)
    before, after = facts["overlays"]["before"], facts["overlays"]["after"]
    for name, label in (("clustering", "clustering"), ("path", "path length"), ("diameter", "diameter, at least")):
        table.add_row(label, f"{before[name]:.3f}", f"{after[name]:.3f}")
    for name, label in (("weakly", "hang together"), ("strongly", "all reach all")):
        table.add_row(label, f"{before[name]:.1%}", f"{after[name]:.1%}")
    return table


def correlation_line(correlation: Mapping[str, Any]) -> str:
    if correlation["mean"] is None:
        return "too few topics to correlate"
    interval = correlation["interval"]
    bounds = f"95 %: {interval[0]:.4f} to {interval[1]:.4f}" if interval else "of too few topics for an interval"
    return f"mean correlation of topics {correlation['mean']:.4f} ({bounds}) over {correlation['pairs']:,} pairs"


# What a log holds, as a table for people

DAY = len("2026-01-31")


def print_log(console: Console, report: Mapping[str, Any]) -> None:
    table = Table(title=report["path"], title_justify="left")
    table.add_column("topic", overflow="fold")
    for heading in ("first", "last", "messages", "bytes", "from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    is_damaged = any(one["damage"] for one in report["topics"])
    if is_damaged:
        table.add_column("damaged", justify="right", no_wrap=True)
    for one in report["topics"]:
        numbers = [f"{one[name]:,}" for name in ("first", "last", "messages", "bytes")]
        damage = [str(len(one["damage"]) or "")] if is_damaged else []
        table.add_row(one["topic"], *numbers, *_times(one["since"], one["until"]), *damage)
    console.print(table)


def _times(since: float | None, until: float | None) -> tuple[str, str]:
    """The day is said once where it is the same: a table with two of them is too wide for most terminals."""
    first, last = _time(since), _time(until)
    return first, last[DAY + 1 :] if first[:DAY] == last[:DAY] else last


def _time(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


# The live benchmark's figures for people


def print_bench(console: Console, result: Mapping[str, Any]) -> None:
    table = Table(title=f"{result['nodes']} nodes, messages of {result['size']} bytes, every delivery checked")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_row("messages published", f"{result['messages']:,}")
    table.add_row("deliveries per second", f"{result['deliveries_per_second']:,}")
    table.add_row("latency at 100 messages/s each, p50", f"{result['latency']['p50']:.3f} ms")
    table.add_row("latency at 100 messages/s each, p99", f"{result['latency']['p99']:.3f} ms")
    table.add_row("out of order", f"{result['order_violations']:,}")
    table.add_row("lost", f"{result['lost']:,}")
    console.print(table)


# What a swarm run did, for people

_SWARM_COUNTS = ("schedules", "violations", "messages", "deliveries", "lost_and_announced", "reincarnations")


def swarm_table(figures: Mapping[str, Any]) -> Table:
    caption = f"{figures['schedules_per_cpu_second']:,.0f} schedules per CPU second"
    title = f"swarm · {figures['protocol']} · seed {figures['seed']}"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name in _SWARM_COUNTS:
        table.add_row(name.replace("_", " "), f"{figures[name]:,}")
    if figures["vacuous"]:
        table.add_row("vacuous: never put to the test", " ".join(figures["vacuous"]))
    table.add_section()
    for name, count in figures["faults"].items():
        table.add_row(f"fault: {name}", f"{count:,}")
    table.add_section()
    for name, spread in figures["distribution"].items():
        if spread:
            middle = f"half of them up to {spread['p50']:,}, at most {spread['p100']:,}"
            table.add_row(f"{name.replace('_', ' ')} per schedule", middle)
    table.add_section()
    for name, count in figures["premises"].items():
        table.add_row(f"occasions to break {name}", f"{count:,}")
    for name, count in figures["settings"].items():
        table.add_row(f"schedules: {name}", f"{count:,}")
    for name, count in figures["sequences"].items():
        table.add_row(f"sequence: {name.replace('_', ' ')}", f"{count:,}")
    return table


# What the demonstration shows

_PARTS = ("mean", "p50", "p99", "max")
_TIMES = ("reception_latency", "delivery_latency", "holding_time", "completion_latency", "subscription_latency")
_DEMO_COUNTS = ("published", "deliveries", "packets", "bytes", "duplicates")


def demo_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    yield _members(result)
    yield _metrics(result["metrics"])
    yield _verdicts(result)


def _members(result: Mapping[str, Any]) -> Table:
    title = f"{result['members']} live nodes, node {result['killed']} killed, node {result['joined']} joined"
    table = Table(title=title, title_justify="left")
    table.add_column("node")
    columns = ("questions", "answers", "delivered", "too_early", "gaps")
    for column in columns:
        heading = "answers before their question" if column == "too_early" else column
        table.add_column(heading, justify="right")
    for node, counted in result["counted"].items():
        table.add_row(node, *(f"{counted[column]:,}" for column in columns))
    return table


def _metrics(metrics: Mapping[str, Any]) -> Table:
    table = Table(title="What the trace says of it", title_justify="left")
    table.add_column("")
    for part in _PARTS:
        table.add_column(part, justify="right")
    for name in _TIMES:
        if name in metrics:
            parts = (f"{1000 * metrics[name][part]:,.2f}" for part in _PARTS)
            table.add_row(f"{name.replace('_', ' ')}, ms", *parts)
    table.add_section()
    for name in _DEMO_COUNTS:
        table.add_row(name, f"{metrics[name]:,}")
    return table


def _verdicts(result: Mapping[str, Any]) -> Table:
    table = Table("trace", "reference checker", "verifier", "smallest witness", title="Verdicts", title_justify="left")
    for name, checked in result["checked"].items():
        witness = checked["witnesses"][0]["reason"] if checked["witnesses"] else ""
        table.add_row(name, checked["verdict"], result["verified"][name]["verdict"], witness)
    return table


def partial_notes(directories: Iterable[Path]) -> list[str]:
    """A line per partial run in and below the directories; they were judged, so their headers can be read."""
    notes = []
    for header in sorted({path for directory in directories for path in directory.rglob(RUN_FILE)}):
        info = json.loads(header.read_text())
        says = info["parameters"].get("partial")
        if says:
            left_out = [".".join(map(str, one)) for one in info["parameters"].get("publishers_without_a_journal", ())]
            without = f"; nothing of nodes {', '.join(left_out)}, which left no journal" if left_out else ""
            notes.append(f"{info['run']}: {says}{without}")
    return notes


def protocols_table(families: Sequence[Family]) -> Table:
    """Narrow enough for a terminal: what each promises stands below what it is."""
    table = Table("protocol", "live", "what it is, and what it promises")
    for one in families:
        lists = {"": one.promises, "while no process joins or leaves ": one.static_promises, "measured ": one.measured}
        promises = "; ".join(f"{when}{' '.join(names)}" for when, names in lists.items() if names)
        table.add_row(one.name, "yes" if one.live else "", Text(one.summary).append(f"\n{promises}", "dim"))
    return table


def parameters_table(family: Family) -> Table:
    table = Table("parameter", "default", "takes", "meaning")
    for one in family.settings.values():
        simulated, live = (f"{_shown(value)} {unit}".strip() for value, unit in _with_units(one))
        default = simulated if simulated == live or not family.live else f"{simulated}; live {live}"
        table.add_row(one.name, default, one.allowed, one.text)
    return table


def _with_units(one: Parameter) -> list[tuple[Any, str]]:
    """Its default simulated and live: time goes in units of its own there."""
    units = ("u.t.", "s") if one.unit == "time" else (one.unit, one.unit)
    return list(zip((one.default, one.live), units, strict=True))


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))


# Figures and verdicts as tables for people
