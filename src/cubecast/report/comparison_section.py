"""The systems side by side in a report: a table for each condition, and what they pay for what they keep."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.report import plots
from cubecast.report.document import Grid, Part, Picture, Section
from cubecast.report.tables import COMPARED, compared

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
            condition: [_number(cells.get((system, condition)), name) for system in systems] for condition in conditions
        }
        yield Picture(caption, [plots.bars(systems, series, caption)], wide=True)


def _number(row: Mapping[str, Any] | None, name: str) -> float | None:
    value = None if row is None else compared(row, name)
    return value if not isinstance(value, str) else None
