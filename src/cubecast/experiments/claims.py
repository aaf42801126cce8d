"""The papers' claims from one table, `claims.csv`: what is printed, where, and how far off counts as reproduced.

An experiment asks for a claim by its row and measures; it says nothing of its own about values and tolerances. A row is
one number; a claim of a paper may have several rows.
"""

import csv
from functools import cache
from importlib.resources import files

from cubecast.experiments.ledger import Claim, Comparison


@cache
def _table() -> dict[str, tuple[str, Claim]]:
    """Experiment and claim by row, in the table's order."""
    text = files("cubecast.experiments").joinpath("claims.csv").read_text(encoding="utf-8")
    return {row["row"]: (row["experiment"], _claim(row)) for row in csv.DictReader(text.splitlines())}


def _claim(row: dict[str, str]) -> Claim:
    return Claim(
        row["row"],
        row["place"],
        row["quantity"],
        float(row["value"]),
        row["unit"],
        Comparison(row["comparison"]),
        float(row["tolerance"]),
        row["claim"],
        row["remark"],
    )


def claim(row: str) -> Claim:
    return _table()[row][1]


def claims_of(experiment: str) -> list[Claim]:
    return [claim for its, claim in _table().values() if its == experiment]
