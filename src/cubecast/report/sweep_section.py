"""Grids in a report: a sweep's means over the runs, drawn over the parameter that varies most; systems side by side."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.experiments.sweep.store import About, means
from cubecast.report import plots
from cubecast.report.document import Grid, Part, Picture, Section
from cubecast.report.tables import COMPARED, compared

MOST_LINES = 12
Row = dict[str, Any]


def sweep_section(about: About, rows: Sequence[Row]) -> Section:
    failed = sum(row["status"] != "ok" for row in rows)
    table = means(rows, about.varied, about.headline)
    text = [f"{len(rows)} points, {failed} failed, seed {about.seed}."]
    grid = Grid("Means over the runs", list(table[0]), [list(row.values()) for row in table])
    return Section(f"Sweep {about.sweep}", text, [*_picture(about, table), grid])


def _picture(about: About, table: Sequence[Row]) -> Iterator[Part]:
    axis = _axis(about.varied, table)
    if axis is None or not about.headline:
        return
    places = sorted({_number(row[axis]) for row in table})
    others = [name for name in about.varied if name != axis]
    groups: dict[str, dict[float, Row]] = {}
    for row in table:
        groups.setdefault(" ".join(str(row[name]) for name in others) or "all", {})[_number(row[axis])] = row
    if len(groups) > MOST_LINES:
        return
    panels = {
        figure.replace("_", " "): {
            name: [by_place[place][figure] if place in by_place else None for place in places]
            for name, by_place in groups.items()
        }
        for figure in about.headline
    }
    drawn = {
        figure: {name: curve for name, curve in curves.items() if any(value is not None for value in curve)}
        for figure, curves in panels.items()
    }
    known = {figure: curves for figure, curves in drawn.items() if curves}
    if known:
        yield Picture(f"Means over {axis}", plots.lines(places, known, axis, doubling=plots.is_doubling(places)))


def _axis(varied: Sequence[str], table: Sequence[Row]) -> str | None:
    """The parameter with most values among those that are numbers, or shares like 25%."""
    values = {name: {row[name] for row in table} for name in varied}
    numeric = [name for name in varied if len(values[name]) > 1 and all(map(_is_number, values[name]))]
    return max(numeric, key=lambda name: len(values[name]), default=None)


def _is_number(value: Any) -> bool:
    try:
        _number(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _number(value: Any) -> float:
    return float(value.removesuffix("%") if isinstance(value, str) else value)


DRAWN = {
    "complete": "deliveries made, % of those owed",
    "p50": "median delay, ms",
    "p99": "99th percentile of the delay, ms",
    "packets": "packets per delivery",
    "metadata": "bytes beside the payload, per delivery",
    "joined": "until a newcomer is told that it is in, ms",
}


def comparison_section(found: Mapping[str, Any]) -> Section:
    size, rows = found["size"], found["rows"]
    text = [
        f"{size['nodes']} processes, {size['publishers']} of them publish {size['messages']} messages of "
        f"{size['size']} bytes each within 4 s, and one subscribes in the middle of it. A hop takes 5 to 15 ms, a "
        f"packet 0.1 ms of its sender. Simulated: {found['runs']} runs, seed {found['seed']}.",
        "Packets, bytes and metadata are per delivery and contain acknowledgements and upkeep. Missed is what was "
        "published since the newcomer asked and never came to it. Broken orders are counted by the reference checker "
        "whether or not the system promises them. Again with: cubecast compare.",
    ]
    return Section("The systems side by side", text, [*_tables(rows), *_pictures(rows)])


def _tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    for condition in dict.fromkeys(row["condition"] for row in rows):
        its = [row for row in rows if row["condition"] == condition]
        cells = [[row["system"], *(compared(row, name) for name in COMPARED)] for row in its]
        yield Grid(condition[0].upper() + condition[1:], ["system", *COMPARED.values()], cells)


def _pictures(rows: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    systems = list(dict.fromkeys(row["system"] for row in rows))
    conditions = list(dict.fromkeys(row["condition"] for row in rows))
    cells = {(row["system"], row["condition"]): row for row in rows}
    for name, caption in DRAWN.items():
        series = {
            condition: [_height(cells.get((system, condition)), name) for system in systems] for condition in conditions
        }
        yield Picture(caption, [], wide=[plots.bars(systems, series, caption)])


def _height(row: Mapping[str, Any] | None, name: str) -> float | None:
    value = None if row is None else compared(row, name)
    return value if not isinstance(value, str) else None
