"""Means, deviations, confidence intervals and percentiles."""

import math
import statistics

import pytest
from pyspark.testing import assertDataFrameEqual

from cubecast.pipeline.metrics.results import (
    NORMAL_QUANTILE,
    describe,
    histogram,
    over_runs,
    student_quantile,
    student_within,
)
from cubecast.pipeline.metrics.source import header_of

VALUES = "run string, metric string, value double"


def test_describe_by_hand(spark) -> None:
    values = spark.createDataFrame([("r", "m", float(x)) for x in range(1, 101)] + [("s", "m", 7.0)], VALUES)
    one, single = describe(values).orderBy("run").collect()
    assert (one["count"], one["mean"], one["min"], one["max"]) == (100, 50.5, 1.0, 100.0)
    assert (one.p50, one.p90, one.p99) == (50.0, 90.0, 99.0)
    deviation = statistics.stdev(range(1, 101))
    assert one["std"] == pytest.approx(deviation)
    assert one.ci99 == pytest.approx(statistics.NormalDist().inv_cdf(0.995) * deviation / 10)
    assert (single["count"], single.p99, single["std"], single.ci99) == (1, 7.0, None, None)


def test_the_normal_quantile_is_the_one_of_99_percent() -> None:
    assert pytest.approx(statistics.NormalDist().inv_cdf(0.995)) == NORMAL_QUANTILE


def test_histogram_shares(spark) -> None:
    values = spark.createDataFrame([("r", "m", x) for x in (1.0, 1.0, 1.0, 2.0)], VALUES)
    found = histogram(values)
    assertDataFrameEqual(
        found, spark.createDataFrame([("r", "m", 1.0, 3, 0.75), ("r", "m", 2.0, 1, 0.25)], found.schema)
    )


def test_over_runs_uses_students_t() -> None:
    """Runs 1, 2, 3: mean 2, deviation 1, t(2 degrees, 99 %) = 9.925, half width 9.925 / √3."""
    several, single = over_runs({("b", "m"): [5.0], ("a", "m"): [1.0, 2.0, 3.0]})
    assert {name: several[name] for name in ("setting", "runs", "mean", "std", "min", "max")} == {
        "setting": "a",
        "runs": 3,
        "mean": 2.0,
        "std": 1.0,
        "min": 1.0,
        "max": 3.0,
    }
    assert several["ci99"] == pytest.approx(9.92484 / math.sqrt(3), rel=1e-5)
    assert (single["runs"], single["mean"], single["ci99"]) == (1, 5.0, None)


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 63.6567), (2, 9.92484), (3, 5.84091), (4, 4.60409), (9, 3.24984), (39, 2.70791)]
)
def test_students_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees, 0.99) == pytest.approx(quantile, rel=1e-5)
    assert student_within(quantile, degrees) == pytest.approx(0.99, abs=1e-6)


def test_runs_that_differ_in_their_seed_share_a_setting() -> None:
    info = {"run": "a", "protocol": "p", "seed": 1, "nodes": 8, "parameters": {"x": 1, "seed": 1}}
    same = header_of({**info, "run": "b", "seed": 2, "parameters": {"x": 1, "seed": 2}})
    other = header_of({**info, "parameters": {"x": 2, "seed": 1}})
    assert header_of(info).setting == same.setting != other.setting


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"transmission_time": 1}, 1.0),
        ({"network": {"transmission": 0.5}}, 0.5),
        ({"transmission": 0}, None),
        ({"network": "loopback"}, None),
        (None, None),
    ],
)
def test_transmission_time_is_stated_or_unknown(parameters, expected) -> None:
    assert header_of({"run": "a", "protocol": "p", "parameters": parameters}).transmission_time == expected
