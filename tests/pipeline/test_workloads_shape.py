"""Degrees, power laws, correlation, the grid model and Zipf loads."""

import math

import numpy as np
import pytest
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.chance import draw
from cubecast.pipeline.workloads.powerlaw import (
    degree_histogram,
    fit_power_law,
    hurwitz_zeta,
    subscribers_per_topic,
    subscriptions_per_user,
)
from cubecast.pipeline.workloads.profile import (
    correlation_summary,
    jackknife,
    profile,
    sample_topics,
    topic_correlation,
    write_subscriptions,
)
from cubecast.pipeline.workloads.synthetic import (
    GridModel,
    synthetic_subscriptions,
    topic_points,
    truncated_pareto,
    user_positions,
)
from cubecast.pipeline.workloads.zipf import ZipfLoad, walker, zipf_load, zipf_probabilities

PAIRS = "user string, topic string"
SMALL = GridModel(users=300, topics=60, most_points=40, least_radius=0.05)


def test_degrees_by_hand(spark) -> None:
    log = spark.createDataFrame([("u", "a"), ("v", "a"), ("v", "b"), ("w", "a")], PAIRS)
    per_topic, per_user = subscribers_per_topic(log), subscriptions_per_user(log)
    assertDataFrameEqual(per_topic, spark.createDataFrame([("a", 3), ("b", 1)], per_topic.schema))
    assertDataFrameEqual(per_user, spark.createDataFrame([("u", 1), ("v", 2), ("w", 1)], per_user.schema))
    counted = degree_histogram(per_user)
    assertDataFrameEqual(counted, spark.createDataFrame([(1, 2), (2, 1)], counted.schema))


def test_hurwitz_zeta_of_known_values() -> None:
    assert hurwitz_zeta(2.0, np.array([1.0]))[0] == pytest.approx(math.pi**2 / 6, rel=1e-12)
    assert hurwitz_zeta(4.0, np.array([1.0]))[0] == pytest.approx(math.pi**4 / 90, rel=1e-12)
    assert hurwitz_zeta(2.0, np.array([2.0, 3.0])) == pytest.approx([math.pi**2 / 6 - 1, math.pi**2 / 6 - 1.25])


def planted(exponent: float, least: int, size: int, seed: int) -> np.ndarray:
    """Draws from the exact discrete law, by inverting its distribution function on a long table."""
    support = np.arange(least, 200_000, dtype=float)
    cumulated = np.cumsum(support**-exponent)
    return support[np.searchsorted(cumulated / cumulated[-1], np.random.default_rng(seed).random(size))].astype(int)


@pytest.mark.parametrize("exponent", [2.2, 2.7, 3.4])
def test_a_planted_exponent_is_recovered(exponent: float) -> None:
    values, counts = np.unique(planted(exponent, 1, 20_000, seed=4), return_counts=True)
    law = fit_power_law(values.tolist(), counts.tolist(), least=1)
    assert law.exponent == pytest.approx(exponent, abs=4 * law.error)
    assert law.error < 0.05
    assert law.tail == 20_000
    assert law.distance < 0.01


def test_where_the_law_begins_is_found() -> None:
    """Below 8 the values are uniform; only the tail follows the law."""
    noise = np.random.default_rng(1).integers(1, 8, 20_000)
    values, counts = np.unique(np.concatenate([noise, planted(2.5, 8, 20_000, seed=2)]), return_counts=True)
    law = fit_power_law(values.tolist(), counts.tolist())
    assert 8 <= law.least <= 12
    assert law.exponent == pytest.approx(2.5, abs=0.1)


def test_what_is_no_power_law_is_far_from_it() -> None:
    law = fit_power_law(list(range(1, 101)), [100] * 100, least=1)
    assert law.distance > 0.2


@pytest.mark.parametrize(("values", "counts"), [([], []), ([0, 1], [3, 4])])
def test_a_power_law_needs_whole_numbers_from_one(values, counts) -> None:
    with pytest.raises(BadInput):
        fit_power_law(values, counts)


def test_correlation_is_pearsons(spark) -> None:
    matrix = {"a": [1, 1, 1, 0, 0, 0], "b": [1, 1, 0, 0, 0, 0], "c": [0, 0, 0, 0, 1, 1], "d": [1, 0, 0, 1, 1, 0]}
    rows = [(f"u{i}", topic) for topic, column in matrix.items() for i, one in enumerate(column) if one]
    log = spark.createDataFrame([*rows, *((f"u{i}", "everybody") for i in range(6))], PAIRS)
    exact = np.corrcoef(list(matrix.values()))
    found = {(row.topic_a, row.topic_b): row.correlation for row in topic_correlation(log, users=6).collect()}
    names = list(matrix)
    sharing = {("a", "b"), ("a", "d"), ("b", "d"), ("c", "d")}
    assert set(found) == sharing
    for one, other in sharing:
        assert found[one, other] == pytest.approx(exact[names.index(one), names.index(other)])
    summary = correlation_summary(log, users=6)
    assert (summary.topics, summary.pairs, summary.sharing) == (4, 6, 4)
    assert summary.mean == pytest.approx(exact[np.triu_indices(4, 1)].mean())
    assert summary.mean_of_sharing == pytest.approx(np.mean(list(found.values())))
    leave_out = [np.delete(np.delete(exact, one, 0), one, 1)[np.triu_indices(3, 1)].mean() for one in range(4)]
    error = math.sqrt(3 / 4 * sum((one - np.mean(leave_out)) ** 2 for one in leave_out))
    assert summary.interval == pytest.approx((summary.mean - 1.96 * error, summary.mean + 1.96 * error))


def test_intervals_hold_what_they_are_of_most_of_the_time() -> None:
    """Correlated columns of a known mean: it lies within 95 % intervals of samples about as often."""
    rng = np.random.default_rng(1)
    within = []
    for _ in range(100):
        common = rng.normal(size=400)
        columns = rng.choice([0.3, 1.0], 40)[:, None] * common + rng.normal(size=(40, 400))
        exact = np.corrcoef(columns)
        low, high = jackknife((exact.sum(axis=0) - 1).tolist())
        loading = np.array([0.3, 1.0]) / np.sqrt(1 + np.array([0.3, 1.0]) ** 2)
        within.append(low < loading.mean() ** 2 < high)
    assert 0.85 < np.mean(within) <= 1
    laws = [np.unique(planted(2.5, 1, 2000, seed), return_counts=True) for seed in range(20)]
    fits = [fit_power_law(values.tolist(), counts.tolist(), least=1).interval for values, counts in laws]
    assert sum(low < 2.5 < high for low, high in fits) >= 17
    assert jackknife([0.1, 0.1]) is None


def test_a_sample_of_topics_keeps_their_subscribers(spark) -> None:
    log = spark.createDataFrame([(f"u{i}", f"t{i % 5}") for i in range(20)], PAIRS)
    some = sample_topics(log, 2, seed=3)
    assert some.select("topic").distinct().count() == 2
    assert some.count() == 8


def test_draws_are_uniform_and_depend_on_seed_purpose_and_name(spark) -> None:
    draws = spark.range(20_000).select(draw(1, "a", F.col("id")).alias("a"), draw(1, "b", F.col("id")).alias("b"))
    (row,) = draws.agg(F.avg("a"), F.stddev_pop("a"), F.corr("a", "b"), F.min("a"), F.max("a")).collect()
    assert row[0] == pytest.approx(0.5, abs=0.01)
    assert row[1] == pytest.approx(math.sqrt(1 / 12), abs=0.01)
    assert abs(row[2]) < 0.03
    assert 0 <= row[3] < row[4] < 1


def test_the_grid_model_subscribes_to_topics_within_the_radius(spark) -> None:
    """Against the dumb way: every user compared with every identifier."""
    users = user_positions(spark, SMALL, seed=7).collect()
    points = topic_points(spark, SMALL, seed=7).collect()
    near = {
        (f"u{user.user}", f"t{point.topic}")
        for user in users
        for point in points
        if (user.x - point.x) ** 2 + (user.y - point.y) ** 2 <= user.radius**2
    }
    found = [tuple(row) for row in synthetic_subscriptions(spark, SMALL, seed=7).collect()]
    assert len(found) == len(set(found))
    assert set(found) == near


def test_the_grid_model_is_a_function_of_its_seed(spark) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    first = synthetic_subscriptions(spark, SMALL, seed=7).collect()
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "5")
        again = synthetic_subscriptions(spark, SMALL, seed=7).collect()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    other = synthetic_subscriptions(spark, SMALL, seed=8).collect()
    assert sorted(first) == sorted(again) != sorted(other)


def test_radii_and_points_follow_their_power_laws(spark) -> None:
    model = GridModel(users=20_000, topics=20_000, points_exponent=2.5, radius_exponent=3.0)
    (row,) = (
        user_positions(spark, model, seed=1)
        .agg(F.min("radius"), F.max("radius"), F.avg((F.col("radius") > 0.02).cast("int")))
        .collect()
    )
    assert 0.01 <= row[0] < row[1] <= 0.5
    assert row[2] == pytest.approx(0.25, abs=0.01)  # P(radius > 2·least) = 2^(1 − 3), the cut at 0.5 aside
    counts = topic_points(spark, model, seed=1).groupBy("topic").agg(F.count("*").alias("degree"))
    rows = degree_histogram(counts).collect()
    law = fit_power_law([row["degree"] for row in rows], [row["count"] for row in rows], least=4)
    assert law.exponent == pytest.approx(2.5, abs=0.1)


def test_truncated_pareto_ends_where_it_should(spark) -> None:
    ends = spark.range(2).select(truncated_pareto(F.col("id").cast("double"), 2.0, 1.0, 10.0).alias("value"))
    assert [row.value for row in ends.collect()] == pytest.approx([1.0, 10.0])


@pytest.mark.parametrize(
    "wrong", [{"users": 0}, {"points_exponent": 1.0}, {"least_radius": 0.0}, {"least_radius": 0.9}, {"most_points": 0}]
)
def test_impossible_grids_are_refused(wrong) -> None:
    with pytest.raises(BadInput):
        GridModel(**{"users": 5, "topics": 5, **wrong})


def test_neighbours_on_the_grid_correlate(spark, tmp_path) -> None:
    frame = write_subscriptions(synthetic_subscriptions(spark, SMALL, seed=7), tmp_path / "u")
    found = profile(frame, seed=1, topics_compared=30)
    assert (found.users, found.topics) == (frame.select("user").distinct().count(), 60)
    assert found.per_topic.mean == pytest.approx(found.subscriptions / found.topics)
    assert found.correlation.mean > 0.02
    assert found.to_json()["subscribers_per_topic"]["power_law"]["exponent"] > 1


def test_an_empty_workload_has_no_profile(spark) -> None:
    with pytest.raises(BadInput, match="empty"):
        profile(spark.createDataFrame([], PAIRS), seed=1)


@pytest.mark.parametrize("exponent", [0.0, 0.825, 1.5])
def test_the_alias_table_is_exact(exponent: float) -> None:
    wanted = zipf_probabilities(100, exponent)
    keep, other = walker(wanted.copy())
    chances = keep / 100
    np.add.at(chances, other, (1 - keep) / 100)
    assert chances == pytest.approx(wanted)


def test_zipf_frequencies(spark) -> None:
    load = ZipfLoad(publications=40_000, topics=128, publishers=256, window=500.0)
    frame = zipf_load(spark, load, seed=1).cache()
    counts = {row.rank: row["count"] for row in frame.groupBy("rank").count().collect()}
    wanted = zipf_probabilities(128, 0.825) * 40_000
    assert set(counts) <= set(range(1, 129))
    chi_squared = sum((counts.get(i + 1, 0) - wanted[i]) ** 2 / wanted[i] for i in range(128))
    assert chi_squared < 127 + 5 * math.sqrt(2 * 127)
    (ends,) = frame.agg(F.min("time"), F.max("time"), F.min("publisher"), F.max("publisher"), F.count("*")).collect()
    assert 0 <= ends[0] < ends[1] < 500
    assert tuple(ends)[2:] == (0, 255, 40_000)


def test_a_load_is_a_function_of_its_seed(spark) -> None:
    load = ZipfLoad(publications=500, topics=10, publishers=4, window=10.0, exponent=1.0)
    first = zipf_load(spark, load, seed=1)
    head = zipf_load(spark, ZipfLoad(100, 10, 4, 10.0, 1.0), seed=1)
    assertDataFrameEqual(first.where("publication < 100"), head)
    assert first.exceptAll(zipf_load(spark, load, seed=2)).count() > 400


@pytest.mark.parametrize("wrong", [{"topics": 0}, {"window": 0.0}, {"exponent": -1.0}])
def test_impossible_loads_are_refused(wrong) -> None:
    with pytest.raises(BadInput):
        ZipfLoad(**{"publications": 1, "topics": 1, "publishers": 1, "window": 1.0, **wrong})
