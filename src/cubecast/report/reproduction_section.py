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
from cubecast.report.document import Grid, Link, Noted, Part, Picture, Section, Tile, cell

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
    """Below a value its interval of 95 %, below what is measured what else came out: so all columns fit on a page."""
    others = _values_beside(report)
    rows = [
        [
            Noted(row["claim"], row["remark"]),
            row["verdict"],
            _place(row),
            Noted(f"{row['quantity']} ({row['unit']})", row["note"]),
            row["paper"],
            row["tolerance"],
            Noted(row["ours"], _interval(row)),
            *(values.get(row["claim"]) for values in others.values()),
        ]
        for row in report["rows"]
    ]
    others_named = [f"ours, {name}" for name in others]
    headings = ["claim", "verdict", "place", "quantity, and what else came out", "paper", "tolerance", "ours, interval"]
    return Grid("The claims ledger", [*headings, *others_named], rows)


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
    """Every place of the paper: the experiment's curves of it, and its claims as bars; then curves of other places."""
    others = _values_beside(report)
    left = [name for name, series in report["series"].items() if next(iter(series.values()))]
    for place, by_unit in _by_place(report["rows"]).items():
        its = [name for name in left if _same_place(name, place)]
        left = [name for name in left if name not in its]
        curves = [drawing for name in its for drawing in _curves(report, name)]
        bars = [
            _claim_bars(rows, unit, others)
            for unit, rows in by_unit.items()
            if not curves or any(row["paper"] or row["ours"] for row in rows)
        ]
        text = f'Again with: cubecast reproduce "{place}". {_intervals_shown(report, its)}'
        yield Picture(place, curves, text, bars, _anchor(place))
    for name in left:
        yield Picture(name, _curves(report, name), _intervals_shown(report, [name]))


def _curves(report: Mapping[str, Any], name: str) -> list[str]:
    (x, places), *curves = report["series"][name].items()
    bands = _panels_of(_bands(report, name))
    return plots.lines(places, _panels_of(dict(curves)), x, doubling=plots.is_doubling(places), bands=bands)


def _bands(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What older versions wrote has none."""
    found: Mapping[str, Any] = report.get("bands", {}).get(name, {})
    return found


def _intervals_shown(report: Mapping[str, Any], names: Sequence[str]) -> str:
    return "Shaded: intervals of 95 %." if any(_bands(report, name) for name in names) else ""


def _same_place(name: str, place: str) -> bool:
    """Figure 4.4 is Fig. 4.4, and Figure 3.12a is part of Figure 3.12; Figure 4.1 is no part of Figure 4.10."""
    short, long = sorted((name.replace("Fig. ", "Figure "), place.replace("Fig. ", "Figure ")), key=len)
    return long.startswith(short) and not long[len(short) :][:1].isdigit()


def _panels_of(curves: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The key of a curve is `what, which`: a panel for each what, a line for each which."""
    panels: dict[str, dict[str, Any]] = {}
    for key, values in curves.items():
        what, _, which = key.rpartition(", ")
        panels.setdefault(what, {})[which] = values
    return panels


def _by_place(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """In the ledger's order, what was run; numbers of different units do not fit on one axis."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row["ours"] is not None:
            groups.setdefault(row["place"], {}).setdefault(row["unit"], []).append(row)
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
