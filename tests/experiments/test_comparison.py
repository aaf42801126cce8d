"""The systems side by side: what the figures say must be what each system is known to do."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cubecast.cli import main
from cubecast.experiments.comparison.compare import CHANNELS, COMPARISON, CRASH, DATAGRAMS, QUIET, SYSTEMS, compare
from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str], dict[str, Any]]:
    found = compare(Effort(quick=True), here)
    return {(row["system"], row["condition"]): row for row in found["rows"]}


def test_every_system_is_put_under_every_condition_that_fits_it(cells):
    assert {system for system, _ in cells} == set(SYSTEMS)
    without_datagrams = {system for system in SYSTEMS if (system, DATAGRAMS) not in cells}
    assert without_datagrams == {"locaps", "delta", "gryphon", "brisa"}
    assert {condition for _, condition in cells} == {QUIET, CHANNELS, DATAGRAMS, CRASH}


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_faults_everything_arrives(cells, system: str):
    quiet = cells[system, QUIET]
    assert quiet["complete"] == quiet["published"] == 1
    assert 0 < quiet["p50"] <= quiet["p99"]


def test_under_loss_and_a_crash_cubecast_delivers_all_and_in_causal_order(cells):
    for condition in (CHANNELS, DATAGRAMS, CRASH):
        cell = cells["cubecast", condition]
        assert (cell["complete"], cell["missed"], cell["P5"], cell["P7"]) == (1, 0, 0, 0)


def test_what_nothing_repairs_is_missing(cells):
    assert cells["vcube-ps", DATAGRAMS]["complete"] < 1
    assert cells["vcube-ps", CRASH]["complete"] < 1
    assert cells["delta", CRASH]["complete"] < 1


def test_only_epto_and_gryphon_s_root_give_one_order_to_all(cells):
    ordered = {system for system in SYSTEMS if cells[system, QUIET]["P9b"] == 0}
    assert "epto" in ordered
    assert not {"cubecast", "vcube-ps", "simple-gossip"} & ordered


def test_gossip_pays_in_copies_and_brokers_in_time(cells):
    assert cells["simple-gossip", QUIET]["copies"] > 2 * cells["cubecast", QUIET]["copies"]
    assert cells["delta", QUIET]["p50"] > cells["cubecast", QUIET]["p50"]


def test_a_newcomer_of_a_gapless_system_misses_nothing(cells):
    for system in ("cubecast", "locaps"):
        assert cells[system, QUIET]["missed"] == 0
        assert cells[system, QUIET]["joined"] > 0


def test_the_command_writes_what_a_report_draws(tmp_path: Path):
    arguments = ["compare", "vcube-ps", "epto", "--quick", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads((tmp_path / COMPARISON).read_text())
    done = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "report.html").read_text()
    assert "The systems side by side" in text
    assert "1 % of datagrams lost" in text.lower()


def test_an_unknown_system_is_one_line(tmp_path: Path):
    done = CliRunner().invoke(main, ["compare", "kafka", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "'kafka' is not compared; the systems are cubecast," in done.stderr
