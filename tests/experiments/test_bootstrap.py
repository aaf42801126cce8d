"""Intervals come from the runs that were made, and from nothing else."""

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean

import pytest

from cubecast.experiments.bootstrap import with_intervals
from cubecast.experiments.ledger import Claim, Comparison, Finding, Ledger
from cubecast.experiments.parallel import Figures, Point, PointFunction, Runner, here
from cubecast.experiments.reproduction import Effort, Experiment, Reproduction

MEAN = Claim("MEAN", "Fig. 1", "mean", 10.0, "", Comparison.RELATIVE, 0.5)
RATIO = Claim("RATIO", "Fig. 1", "ratio of paired runs", 2.0, "", Comparison.EXACT)
ALONE = Claim("ALONE", "Fig. 1", "one run", 1.0, "", Comparison.EXACT)


def draw(point: Point) -> Figures:
    return {"value": point["times"] * Random(point["seed"]).gauss(10, 2)}


def experiment_of(runs: int) -> Experiment:
    def experiment(effort: Effort, runner: Runner) -> Reproduction:
        seeds = range(effort.seed, effort.seed + runs)
        one, two = ([run["value"] for run in runner(draw, [_point(seed, k) for seed in seeds])] for k in (1, 2))
        (alone,) = runner(draw, [_point(effort.seed, 3)])
        ledger = Ledger(
            [
                Finding(MEAN, fmean(one)),
                Finding(RATIO, round(fmean(b / a for a, b in zip(one, two, strict=True)), 9)),
                Finding(ALONE, alone["value"]),
            ]
        )
        curves = {
            "times": [1, 2, 3],
            "value, mean": [fmean(one), fmean(two), None],
            "value, alone": [alone["value"]] * 3,
        }
        return Reproduction("e", "E", "", runs, effort.seed, ledger, series={"Fig. 1": curves})

    return experiment


def _point(seed: int, times: int) -> Point:
    return {"seed": seed, "times": times}


def intervals(runs: int, seed: int = 1) -> dict[str, tuple[float, float] | None]:
    report = with_intervals(experiment_of(runs), Effort(seed=seed), here)
    return {row["claim"]: row["interval"] for row in report["rows"]}


def test_most_intervals_contain_what_was_drawn_from():
    found = [intervals(20, seed)["MEAN"] for seed in range(0, 2000, 20)]
    assert all(between is not None for between in found)
    hits = sum(between[0] <= 10 <= between[1] for between in found if between is not None)
    assert 85 <= hits <= 99, "of 100 intervals of 95 %, a little less for 20 runs"


def test_a_report_says_what_its_points_cost():
    def slow(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
        for figures in here(function, points):
            yield figures | {"cpu_seconds": 2.0}

    report = with_intervals(experiment_of(3), Effort(), slow)
    assert list(report["cpu_seconds"].values()) == [14.0], "two settings with three runs and one with one"
    assert with_intervals(experiment_of(3), Effort(), here)["cpu_seconds"].keys() == report["cpu_seconds"].keys()


def test_pairs_stay_pairs_and_one_run_has_no_interval():
    found = intervals(20)
    assert found["RATIO"] is None, "every run has the same ratio, whichever are drawn"
    assert found["ALONE"] is None
    assert intervals(1)["MEAN"] is None


def test_points_of_curves_have_intervals_as_findings_do():
    report = with_intervals(experiment_of(20), Effort(), here)
    (between,) = (row["interval"] for row in report["rows"] if row["claim"] == "MEAN")
    mean = report["bands"]["Fig. 1"]["value, mean"]
    assert mean[0] == between
    assert mean[1] == pytest.approx([2 * end for end in between]), "the same runs, drawn alike"
    assert mean[2] is None, "there is no value"
    assert report["bands"]["Fig. 1"].keys() == {"value, mean"}, "one run has no interval"


def test_nothing_is_run_twice():
    points: list[Point] = []

    def counting(function: PointFunction, some: Sequence[Point]) -> Iterator[Figures]:
        points.extend(some)
        return here(function, some)

    first = with_intervals(experiment_of(5), Effort(), counting)
    assert len(points) == 11
    assert with_intervals(experiment_of(5), Effort(), here) == first, "and the same seed gives the same intervals"


@pytest.mark.parametrize("runs", [2, 7])
def test_more_than_one_run_is_enough(runs: int):
    between = intervals(runs)["MEAN"]
    assert between is not None
    assert between[0] < between[1]
