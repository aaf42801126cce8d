"""A reproduction in a report: the ledger, each table and figure ours against the paper's, and our curves.

A row of the ledger leads to the figure of its place, and the figure says the command that makes it again. Where several
papers were reproduced, one page tells how many of each one's claims came out.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from cubecast.experiments.ledger import VERDICTS, verdicts_of_claims
from cubecast.report import plots
from cubecast.report.document import Grid, Link, Part, Picture, Section, Tile, cell

_LEDGER = ("paper", "ours", "tolerance", "verdict")
Row = Mapping[str, Any]


def reproduction_section(report: Mapping[str, Any]) -> Section:
    text = [
        f"Reading: {report['reading']}. {report['runs']} runs, seed {report['seed']}.",
        _summary("This reading", report),
        *(_summary(f"Reading {name}", ledger) for name, ledger in report["beside"].items()),
    ]
    return Section(
        report["title"], text, [_ledger(report), *_reasons(report["rows"]), *_corrections(report), *_pictures(report)]
    )


def _summary(name: str, ledger: Mapping[str, Any]) -> str:
    within, claims = ledger["within_tolerance"], ledger["claims"]
    return f"{name}: {within} of {claims} rows within tolerance, mean distance {ledger['distance']:.2f}."


def _ledger(report: Mapping[str, Any]) -> Grid:
    others = _values_beside(report)
    rows = [
        [
            row["claim"],
            _place(row),
            f"{row['quantity']} ({row['unit']})",
            *(row[name] for name in _LEDGER),
            _interval(row),
            row["remark"],
            *(values.get(row["claim"]) for values in others.values()),
            row["note"],
        ]
        for row in report["rows"]
    ]
    others_named = [f"ours, {name}" for name in others]
    return Grid(
        "The claims ledger",
        ["claim", "place", "quantity", *_LEDGER, "95 % interval", "remark", *others_named, "note"],
        rows,
    )


def _place(row: Row) -> str | Link:
    """On one line; a link where there is a picture of it."""
    text = row["place"].replace(" ", "\u00a0")
    return text if row["ours"] is None else Link(text, f"#{_anchor(row['place'])}")


def _interval(row: Row) -> str:
    """Of our value; empty where it rests on one run, or all runs agree."""
    between = row.get("interval")
    return "" if between is None else "\u00a0…\u00a0".join(map(cell, between))


def _anchor(place: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", place.lower())


def _values_beside(report: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {name: {row["claim"]: row["ours"] for row in ledger["rows"]} for name, ledger in report["beside"].items()}


def _reasons(rows: Sequence[Row]) -> Iterator[Part]:
    reasons = [
        [row["claim"], row["verdict"], row["explanation"] or "no explanation"]
        for row in rows
        if row["verdict"] in ("explained", "differs")
    ]
    if reasons:
        yield Grid("Why claims are missed", ["claim", "verdict", "explanation"], reasons)


def _corrections(report: Mapping[str, Any]) -> Iterator[Part]:
    """Where the programs are not as printed, and the test that shows why."""
    rows = [
        [f"{row['paper']}, {row['place']}", row["correction"], row["test"]]
        for row in corrections()
        if row["experiment"] == report["experiment"]
    ]
    if rows:
        yield Grid("Corrections to the paper", ["place", "here", "shown by"], rows)


@cache
def corrections() -> list[dict[str, str]]:
    """What is marked as a deviation in the code, for people who read about the papers."""
    text = files("cubecast.report").joinpath("corrections.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _pictures(report: Mapping[str, Any]) -> Iterator[Part]:
    """The experiment's own curves; then every place of the paper, its claims as bars."""
    for name, series in report["series"].items():
        x, *_ = series
        if series[x]:
            yield Picture(name, plots.lines(series[x], _panels_of(series, x), x, doubling=True))
    others, drawn = _values_beside(report), set[str]()
    for (place, unit), rows in _by_place(report["rows"]).items():
        anchor = "" if place in drawn else _anchor(place)
        drawn.add(place)
        again = f'Again with: cubecast reproduce "{place}"'
        yield Picture(f"{place}: ours and the paper's", [_claim_bars(rows, unit, others)], again, True, anchor)


def _panels_of(series: Mapping[str, Any], x: str) -> dict[str, dict[str, Any]]:
    """The key of a curve is `what, which`: a panel for each what, a line for each which."""
    panels: dict[str, dict[str, Any]] = {}
    for key, values in series.items():
        if key != x:
            what, _, which = key.rpartition(", ")
            panels.setdefault(what, {})[which] = values
    return panels


def _by_place(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """In the ledger's order; numbers of different units do not fit on one axis."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["ours"] is None:
            continue
        groups.setdefault((row["place"], row["unit"]), []).append(row)
    return groups


def _claim_bars(rows: Sequence[Row], unit: str, others: Mapping[str, Mapping[str, float]]) -> str:
    series = {plots.PAPER: [row["paper"] for row in rows], "ours": [row["ours"] for row in rows]}
    series |= {f"ours, {name}": [values.get(row["claim"]) for row in rows] for name, values in others.items()}
    return plots.bars([row["quantity"] for row in rows], series, unit, {"ours": [row.get("interval") for row in rows]})


MOODS = {"reproduced": "good", "explained": "warn", "not run": "", "differs": "bad"}


def literature_section(reports: Sequence[Mapping[str, Any]], pages: Mapping[str, str]) -> Section:
    """`pages`: the page of each experiment."""
    claims = {report["experiment"]: Counter(verdicts_of_claims(report["rows"]).values()) for report in reports}
    total = sum(claims.values(), Counter[str]())
    tiles = [
        Tile(verdict, f"{total[verdict]:,}", f"of {total.total():,} claims", MOODS[verdict]) for verdict in VERDICTS
    ]
    rows = [
        [
            Link(report["title"], pages[report["experiment"]]),
            claims[report["experiment"]].total(),
            *(claims[report["experiment"]][verdict] for verdict in VERDICTS),
            len(report["rows"]),
            sum(row["verdict"] == "reproduced" for row in report["rows"]),
        ]
        for report in reports
    ]
    text = [
        "A claim has one or several rows in a ledger, each one number of the paper, with a tolerance that stood before "
        "any run unless its remark says otherwise. What lies outside is explained by figures of the same run, or it "
        "differs. A claim has the worst verdict of its rows.",
    ]
    headings = ["paper", "claims", *VERDICTS, "rows", "rows reproduced"]
    return Section("The literature", text, [Grid("Papers", headings, rows), _missed(reports, pages)], tiles)


def _missed(reports: Sequence[Mapping[str, Any]], pages: Mapping[str, str]) -> Grid:
    rows = [
        [Link(row["claim"], pages[report["experiment"]]), row["quantity"], row["paper"], row["ours"], row["verdict"]]
        for report in reports
        for row in report["rows"]
        if row["verdict"] in ("explained", "differs")
    ]
    return Grid("What is not reproduced", ["claim", "quantity", "paper", "ours", "verdict"], rows)
