"""The claims ledger as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cubecast.experiments.ledger import verdicts_of_claims


def print_reproduction(console: Console, report: Mapping[str, Any]) -> None:
    """Claim by claim: paper, ours, difference, verdict, and our value under other readings; then the reasons."""
    beside: Mapping[str, Any] = report["beside"]
    others = {name: {row["claim"]: row["ours"] for row in ledger["rows"]} for name, ledger in beside.items()}
    table = Table(title=report["title"], title_justify="left")
    for heading in ("claim", "what", "paper", "ours", "difference", "allowed", "verdict", *others):
        table.add_column(heading, justify="left" if heading in ("claim", "what", "verdict") else "right")
    for row in report["rows"]:
        extra = [_number(values.get(row["claim"])) for values in others.values()]
        numbers = [_number(row[name]) for name in ("paper", "ours", "difference")]
        what = f"{row['quantity']} ({row['unit']})"
        table.add_row(
            row["claim"] + "*" * (row["remark"] == "fitted"), what, *numbers, row["tolerance"], row["verdict"], *extra
        )
    console.print(table)
    cost = sum(report["cpu_seconds"].values())
    console.print(f"Reading: {report['reading']}. {report['runs']} runs, seed {report['seed']}, {cost:,.0f} CPU s.")
    _print_reasons(console, report["rows"])
    for name, ledger in [("this reading", report), *beside.items()]:
        within, claims = ledger["within_tolerance"], ledger["claims"]
        console.print(f"{name}: {within} of {claims} rows within tolerance, mean distance {ledger['distance']:.2f}")
    verdicts = list(verdicts_of_claims(report["rows"]).values())
    console.print(f"{verdicts.count('reproduced')} of {len(verdicts)} claims are reproduced in all their rows.")
    if report["not_run"]:
        console.print(f"Not run here: {', '.join(report['not_run'])}", soft_wrap=True)
    late = [row["claim"] for row in report["rows"] if row["remark"] == "set after a run"]
    if late:
        console.print(f"Bounds set after a first run: {', '.join(late)}", soft_wrap=True)
    if any(row["remark"] == "fitted" for row in report["rows"]):
        console.print("* fitted: a setting the paper does not state was chosen by these claims.")


def print_claims(console: Console, listed: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """What could be run, by experiment."""
    table = Table("experiment", "claim", "place", "what", "paper", "allowed")
    for experiment, rows in listed.items():
        for row in rows:
            what = f"{row['quantity']} ({row['unit']})"
            table.add_row(experiment, row["claim"], row["place"], what, _number(row["paper"]), row["tolerance"])
    console.print(table)
    claims = {row["part_of"] for rows in listed.values() for row in rows}
    console.print(f"{len(claims)} claims in {sum(map(len, listed.values()))} rows")


def _print_reasons(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        if row["verdict"] in ("explained", "differs"):
            reason = row["explanation"] or "no explanation"
            console.print(f"{row['claim']} {row['verdict']}: {reason}", soft_wrap=True)


def print_readings(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Readings of a paper by their distance to all its claims, nearest first."""
    shown = list(rows[0]["values"]) if rows else []
    table = Table("reading", "distance", "within", *shown, "why")
    for row in sorted(rows, key=lambda row: float(row["distance"])):
        values = [_number(row["values"][name]) for name in shown]
        within = f"{row['within_tolerance']}/{row['claims']}"
        table.add_row(row["reading"], f"{row['distance']:.3f}", within, *values, row["why"])
    console.print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:,.2f}"
