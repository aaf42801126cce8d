"""What is likely and not promised: both judges count the same, and tell a rate with an interval, no verdict."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cubecast.check import check_directory
from cubecast.check.verdict import Rate
from cubecast.cli import main
from cubecast.pipeline.verify import verify
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory

IMPATIENT = {"threshold": "1", "period": "40", "idle": "10"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """EpTO in a hurry, which leaves holes, and with time."""
    directory = tmp_path_factory.mktemp("measured")
    for name, settings in (("hurry", IMPATIENT), ("time", {})):
        config = SimConfig(
            "epto", nodes=20, publishers="100%", window=1000, propagation="planetlab", settings=settings, messages=3
        )
        simulate_to_directory(config, directory / name, packets=False)
    return [directory / "hurry", directory / "time"]


def test_both_judges_measure_the_same(runs: list[Path]):
    hurry, time = (check_directory(run).to_json()["measured"]["P4"] for run in runs)
    assert hurry["kept"] < hurry["of"] and time["kept"] == time["of"] > 1000
    for run, expected in zip(runs, (hurry, time), strict=True):
        assert verify(None, [run]).to_json()["measured"]["P4"] == expected
    both = verify(None, runs)
    assert both.verdict == "VALID", "safety is certain, whatever is missing"
    assert both.to_json()["measured"]["P4"]["of"] == hurry["of"] + time["of"]


def test_spark_measures_the_same(spark, runs: list[Path]):
    assert verify(spark, runs).measured == verify(None, runs).measured


def test_people_see_the_rate(runs: list[Path]):
    result = CliRunner().invoke(main, ["check", str(runs[0])])
    assert result.exit_code == 0 and "Measured, not promised:" in result.stdout and "95 % confidence" in result.stdout


def test_the_interval_is_wilsons():
    assert Rate(10, 10).interval == pytest.approx((0.722, 1.0), abs=0.001)
    assert Rate(81, 263).interval == pytest.approx((0.2553, 0.3662), abs=0.0001)
    assert Rate(0, 0).rate is None and Rate(0, 0).interval is None
