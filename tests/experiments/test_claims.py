"""One table has every claim of the papers, and no experiment says anything about values and tolerances of its own."""

import json
import re
from collections import Counter
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import cubecast.experiments
from cubecast.cli import main
from cubecast.errors import BadInput
from cubecast.experiments.ledger import Comparison, claim, claims_of
from cubecast.experiments.reproduction import EXPERIMENTS, choose, only

ROOM = Path(cubecast.experiments.__file__).parent
NUMBER_OF_CLAIMS = {"CAB": 55, "PS": 30, "PB": 4, "LO": 7, "ST": 6, "EP": 8, "BR": 26}
PINNED = "3e714d9100b9aee5"
"""Of every row's value, comparison and tolerance: they stand before a run, and change by a decision only."""


BESIDES = {"ST-GROWTH", "ST-CHURN", "ST-GREEDY", "ST-T31"}
"""Tables and figures of chapter 3 that have no number in its text, and that we evaluate (decision 0063)."""


def rows():
    return [one for experiment in dict.fromkeys(_experiments()) for one in claims_of(experiment)]


def _experiments():
    text = (ROOM / "claims.csv").read_text(encoding="utf-8")
    return [line.split(",")[2] for line in text.splitlines()[1:]]


def test_every_claim_of_the_papers_is_in_the_table():
    claims = {one.part_of for one in rows()} - BESIDES
    assert Counter(name.split("-")[0] for name in claims) == NUMBER_OF_CLAIMS
    names = [one.name for one in rows()]
    assert len(names) == len(set(names))


def test_values_and_tolerances_stand_before_a_run():
    stated = "\n".join(f"{one.name} {one.value} {one.comparison.value} {one.tolerance}" for one in rows())
    assert sha256(stated.encode()).hexdigest()[:16] == PINNED


def test_every_tolerance_can_fail_or_says_that_it_cannot():
    for one in rows():
        if one.comparison in (Comparison.RELATIVE, Comparison.POINTS):
            assert one.tolerance > 0, one.name
        if one.name.startswith("PS-T51") and one.value < 400:
            assert one.tolerance <= 15, one.name
        assert (one.remark == "by construction") == bool(re.fullmatch(r"CAB-T1-\d+-none", one.name))


def test_experiments_take_their_claims_from_the_table():
    for path in ROOM.rglob("*.py"):
        if path.name not in ("claims.py", "ledger.py"):
            assert not re.search(r"\bClaim\(", path.read_text()), path.name


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["LO-HOP-4"], {"locaps": {"LO-HOP-4"}}),
        (["PS-T51-0"], {"vcube-ps": {"PS-T51-0-vcube-ps", "PS-T51-0-srpt"}}),
        (["figure 5.11"], {"epto": {"EP-CHURN"}}),
    ],
)
def test_claims_and_places_name_what_to_run(names, expected):
    assert choose(names) == expected


def test_what_is_unknown_is_refused_and_says_where_the_names_are():
    with pytest.raises(BadInput, match=re.escape("unknown experiment, claim or place 'x'")):
        choose(["x"])


def test_readings_that_decide_a_number_are_printed():
    readings = {name: import_module(EXPERIMENTS[name]).READING for name in ("causal-aggregation", "vcube-ps")}
    assert re.search("leaf .*Table 5.1", readings["vcube-ps"])
    assert re.search("4.9 .*deviation of 25", readings["causal-aggregation"]), "the other trees have another one"


def test_a_list_names_every_row_and_runs_nothing():
    listed = json.loads(CliRunner().invoke(main, ["reproduce", "--list", "--json"]).stdout)["experiments"]
    assert {row["claim"] for its in listed.values() for row in its} == {
        one.name for experiment in EXPERIMENTS for one in claims_of(experiment)
    }
    shown = CliRunner().invoke(main, ["reproduce", "--list", "LO-HOP-12"]).stdout
    assert "1 claims in 1 rows" in shown


def test_a_report_is_cut_down_to_what_was_asked_for():
    row = {"claim": "a", "verdict": "differs"}
    report = {"rows": [row, row | {"claim": "b"}, row | {"claim": "c", "verdict": "not run"}]}
    cut = only(report, {"a", "c"})
    assert (cut["unexplained"], cut["not_run"], cut["claims"], cut["within_tolerance"]) == (["a"], ["c"], 1, 0)


def test_an_unknown_row_is_a_mistake_of_the_experiment():
    with pytest.raises(KeyError):
        claim("PS-F56z")
