"""All papers on one page: how many of each one's claims came out, and where to read on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cubecast.report.document import Grid, Link, Section, Tile

VERDICTS = ("reproduced", "explained", "differs", "not run")


def literature_section(reports: Sequence[Mapping[str, Any]], pages: Mapping[str, str]) -> Section:
    """`pages`: the page of each experiment."""
    counted = {report["experiment"]: Counter(row["verdict"] for row in report["rows"]) for report in reports}
    total = sum(counted.values(), Counter[str]())
    moods = {"reproduced": "good", "explained": "warn", "differs": "bad", "not run": ""}
    tiles = [Tile(verdict, f"{total[verdict]:,}", f"of {total.total():,} rows", moods[verdict]) for verdict in VERDICTS]
    rows = [
        [
            Link(report["title"], pages[report["experiment"]]),
            len({row["part_of"] for row in report["rows"]}),
            len(report["rows"]),
            *(counted[report["experiment"]][verdict] for verdict in VERDICTS),
        ]
        for report in reports
    ]
    text = [
        "A row of a ledger is one number of a paper, with a tolerance that stood before any run. What lies outside is "
        "explained by figures of the same run, or it differs.",
    ]
    headings = ["paper", "claims", "rows", *VERDICTS]
    return Section("The literature", text, [Grid("Papers", headings, rows), _missed(reports, pages)], tiles)


def _missed(reports: Sequence[Mapping[str, Any]], pages: Mapping[str, str]) -> Grid:
    rows = [
        [Link(row["claim"], pages[report["experiment"]]), row["quantity"], row["paper"], row["ours"], row["verdict"]]
        for report in reports
        for row in report["rows"]
        if row["verdict"] in ("explained", "differs")
    ]
    return Grid("What is not reproduced", ["claim", "quantity", "paper", "ours", "verdict"], rows)
