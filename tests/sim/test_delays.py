"""Propagation delays hit the moments they name; what cannot be is refused."""

from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, pstdev, quantiles

import pytest

from cubecast.errors import BadInput
from cubecast.sim.network import PLANETLAB, parse_delay

DRAWS = 40_000


def sample(text: str) -> list[float]:
    delay = parse_delay(text, Random(1), 4)
    return [delay(0, 1) for _ in range(DRAWS)]


def test_constant():
    assert set(sample("constant:100")) == {100.0}


def test_normal_hits_mean_and_deviation():
    values = sample("normal:100:25")
    assert fmean(values) == pytest.approx(100, abs=0.6)
    assert pstdev(values) == pytest.approx(25, abs=0.5)


def test_normal_is_cut_off_at_zero():
    values = sample("normal:10:50")
    assert min(values) > 0
    assert fmean(values) > 10, "drawing again moves the mean"


def test_uniform_hits_its_moments_and_stays_inside():
    values = sample("uniform:10:20")
    assert fmean(values) == pytest.approx(15, abs=0.1)
    assert pstdev(values) == pytest.approx(10 / 12**0.5, abs=0.05)
    assert min(values) >= 10 and max(values) <= 20


def test_quantiles_interpolate_between_their_points():
    values = sorted(sample("quantiles:0=10,0.5=20,1=100"))
    assert values[DRAWS // 2] == pytest.approx(20, abs=0.7)
    assert values[DRAWS // 4] == pytest.approx(15, abs=0.3)
    assert values[3 * DRAWS // 4] == pytest.approx(60, abs=1.5)
    assert fmean(values) == pytest.approx(0.5 * 15 + 0.5 * 60, abs=0.6)


def test_planetlab_hits_the_published_percentiles_and_comes_close_to_mean_and_deviation():
    """Published: mean 157, deviation 119, percentiles 5/50/95 = 15/125/366."""
    mean, square = 0.0, 0.0
    for (p, a), (q, b) in pairwise(PLANETLAB):
        mean += (q - p) * (a + b) / 2
        square += (q - p) * (a * a + a * b + b * b) / 3
    assert mean == pytest.approx(156.95)
    assert (square - mean**2) ** 0.5 == pytest.approx(118.98, abs=0.01)
    values = sample("planetlab")
    cuts = quantiles(values, n=20)
    assert cuts[0] == pytest.approx(15, abs=2)
    assert cuts[9] == pytest.approx(125, abs=3)
    assert cuts[18] == pytest.approx(366, abs=13)  # three standard errors of this many draws
    assert fmean(values) == pytest.approx(157, rel=0.02)
    assert pstdev(values) == pytest.approx(119, rel=0.02)


def test_a_matrix_gives_every_pair_its_own_delay(tmp_path: Path):
    path = tmp_path / "latency.csv"
    path.write_text("0,1,2\n3,0,4\n5,6,0\n")
    delay = parse_delay(f"matrix:{path}", Random(1), 3)
    assert [delay(i, j) for i in range(3) for j in range(3) if i != j] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(BadInput, match="4 nodes need"):
        parse_delay(f"matrix:{path}", Random(1), 4)


@pytest.mark.parametrize(
    "text",
    [
        *("", "constant", "constant:0", "constant:-1", "constant:x", "constant:1:2", "normal:100", "normal:100:-1"),
        *("normal:-5:1", "uniform:20:10", "uniform:0:1", "gauss:1:2", "quantiles:", "quantiles:0=5", "planetlab:3"),
        *("quantiles:0=5,1=3", "quantiles:0.1=5,1=9", "quantiles:0=0,1=9", "quantiles:0=5,0.5=x,1=9", "matrix:missing"),
        *("constant:nan", "normal:nan:1", "normal:100:nan", "uniform:1:nan", "constant:inf", "uniform:1:inf"),
    ],
)
def test_impossible_delays_are_refused(text: str):
    with pytest.raises(BadInput):
        parse_delay(text, Random(1), 4)


def test_a_matrix_that_is_none_is_refused(tmp_path: Path):
    for text in ("0,1\n2", "0,-1\n2,0\n", "0,x\n1,0\n"):
        path = tmp_path / "latency.csv"
        path.write_text(text)
        with pytest.raises(BadInput):
            parse_delay(f"matrix:{path}", Random(1), 2)
