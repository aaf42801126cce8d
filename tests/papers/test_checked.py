"""The checked numbers of the repository are complete, and what is run again gives them again."""

import json
import os
import re
from pathlib import Path
from random import Random

import pytest

from cubecast.experiments.bootstrap import with_intervals
from cubecast.experiments.ledger import claims_of
from cubecast.experiments.parallel import here, in_processes
from cubecast.experiments.reproduction import EXPERIMENTS, Effort, find_experiment

CHECKED = Path(__file__).parents[2] / "docs" / "papers" / "checked"
SMALL = ("locaps", "vcube-pb")
"""Whose quick form takes a few seconds."""
NOT_YET = re.compile("ST-.*|BR-(T4|F41[0126789]).*")
"""Rows of which no full run has been written down."""
CLOSE = 1e-6
"""Machines may add in another order."""


def checked(name):
    return json.loads((CHECKED / f"{name}.json").read_text())


def same_again(experiment, rows, runner):
    known = checked("quick")[experiment]
    report = with_intervals(find_experiment(experiment), Effort(quick=True, seed=known["seed"]), runner)
    found = {row["claim"]: row for row in report["rows"]}
    for row in rows:
        assert found[row]["verdict"] == known["rows"][row]["verdict"], row
        assert found[row]["ours"] == pytest.approx(known["rows"][row]["ours"], rel=CLOSE), row


def test_every_claim_has_a_checked_number_of_a_full_run():
    full = checked("full")
    for experiment in EXPERIMENTS:
        rows = {claim.name for claim in claims_of(experiment) if not NOT_YET.fullmatch(claim.name)}
        assert full.get(experiment, {"rows": {}})["rows"].keys() == rows, experiment
    for known in full.values():
        assert all(known[what] for what in ("commit", "date", "machine", "runs", "cpu_seconds"))


@pytest.mark.parametrize(("name", "minutes"), [("full", 60), ("quick", 2)])
def test_what_was_checked_took_two_cores_no_longer_than_is_said(name, minutes):
    assert sum(known["cpu_seconds"] for known in checked(name).values()) < 2 * 60 * minutes


@pytest.mark.parametrize("experiment", SMALL)
def test_small_experiments_give_the_checked_numbers(experiment):
    same_again(experiment, checked("quick")[experiment]["rows"], here)


@pytest.mark.slow
def test_a_random_tenth_of_the_quick_claims_gives_the_checked_numbers():
    seed = int(os.environ.get("CHECKED_SEED", Random().randrange(10**6)))
    print(f"CHECKED_SEED={seed}")
    every = [(experiment, row) for experiment, known in checked("quick").items() for row in known["rows"]]
    drawn = Random(seed).sample(every, len(every) // 10)
    for experiment in sorted({experiment for experiment, _ in drawn}):
        same_again(experiment, [row for its, row in drawn if its == experiment], in_processes)
