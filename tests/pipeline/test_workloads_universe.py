"""From logs to universes, on logs small enough to check by eye."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.testing import assertDataFrameEqual

from cubecast.errors import BadInput
from cubecast.pipeline.workloads.table import LogFormat, format_of, read_log
from cubecast.pipeline.workloads.universe import (
    Extra,
    Members,
    Size,
    UniverseRules,
    median_size,
    members,
    prune,
    seed_topics,
    universe,
    universe_size,
)

PAIRS = "user string, topic string"


def pairs(spark, text: str):
    """ "ann:a,b bob:b" → (ann, a), (ann, b), (bob, b)."""
    rows = [
        (user, topic) for one in text.split() for user, _, topics in [one.partition(":")] for topic in topics.split(",")
    ]
    return spark.createDataFrame(rows, PAIRS)


def names(frame) -> set[str]:
    return {row[0] for row in frame.collect()}


@pytest.fixture(scope="module")
def crowd(spark):
    """200 users, 40 topics; user u has the topics u mod 40, u mod 7 and u mod 3."""
    rows = {(f"u{u}", f"t{u % m}") for u in range(200) for m in (40, 7, 3)}
    return spark.createDataFrame(sorted(rows), PAIRS).cache()


def test_members_subscribe_to_a_seed_topic_and_add_one_of_their_own(spark) -> None:
    log = pairs(spark, "ann:a,b,c bob:b cas:c,d")
    chosen = spark.createDataFrame([("b",)], "topic string")
    picked = {seed: dict(tuple(row) for row in members(log, chosen, Extra.RANDOM, seed).collect()) for seed in range(8)}
    assert all(set(one) == {"ann", "bob"} and one["bob"] == "b" for one in picked.values())
    assert {one["ann"] for one in picked.values()} == {"a", "b", "c"}


def test_a_member_may_add_the_topic_of_its_own_name(spark) -> None:
    log = pairs(spark, "ann:bob,x bob:x,ann cas:cas")
    rules = UniverseRules(seeds=1, least_subscribers=1, extra=Extra.OWN)
    seed = next(s for s in range(50) if names(seed_topics(log, 1, s)) == {"x"})
    assertDataFrameEqual(universe(log, rules, seed), pairs(spark, "ann:bob,x bob:x,ann"))


def test_pruning_drops_small_topics_and_is_final(spark) -> None:
    log = pairs(spark, "ann:a,b bob:a cas:c")
    once = prune(log, 2)
    assertDataFrameEqual(once, pairs(spark, "ann:a bob:a"))
    assertDataFrameEqual(prune(once, 2), once)


def test_a_universe_with_all_topics_as_seeds_is_the_pruned_log(spark, crowd) -> None:
    assertDataFrameEqual(universe(crowd, UniverseRules(seeds=1000), seed=1), prune(crowd, 30))


def test_a_universe_is_closed_over_members_and_topics(crowd) -> None:
    """Everything inside is a subscription of the log; a member keeps all its subscriptions to topics inside."""
    inside = {tuple(row) for row in universe(crowd, UniverseRules(seeds=3, least_subscribers=2), seed=5).collect()}
    log = {tuple(row) for row in crowd.collect()}
    seeds = names(seed_topics(crowd, 3, seed=5))
    users, topics = {u for u, _ in inside}, {t for _, t in inside}
    assert inside == {(u, t) for u, t in log if u in users and t in topics}
    assert users <= {u for u, t in log if t in seeds}
    assert len(seeds) == 3
    assert all(sum(t == topic for _, t in inside) >= 2 for topic in topics)


def test_admitting_all_subscribers_gives_a_larger_universe(crowd) -> None:
    few = universe(crowd, UniverseRules(3, 2), seed=5).select("user").distinct().count()
    many = universe(crowd, UniverseRules(3, 2, members=Members.ALL), seed=5).select("user").distinct().count()
    assert few < many


def test_the_seed_decides_and_partitions_do_not(crowd) -> None:
    rules = UniverseRules(seeds=2, least_subscribers=2)
    first = universe(crowd, rules, seed=3)
    assertDataFrameEqual(universe(crowd.repartition(7, "topic"), rules, seed=3), first)
    seeds = [frozenset(names(seed_topics(crowd, 2, seed=s))) for s in range(6)]
    assert len(set(seeds)) > 1


def test_the_median_universe_is_by_topics_per_user() -> None:
    sizes = [Size(1, 10, 10), Size(2, 10, 50), Size(3, 0, 0), Size(4, 10, 20)]
    assert median_size(sizes) == Size(4, 10, 20)
    with pytest.raises(BadInput, match="every universe is empty"):
        median_size([Size(3, 0, 0)])


def test_a_universe_has_a_size(spark) -> None:
    log = pairs(spark, "ann:a,b bob:a cas:c")
    assert universe_size(log, UniverseRules(3, 1), seed=1) == Size(1, 3, 3)


@pytest.mark.parametrize(("seeds", "least"), [(0, 30), (5, 0)])
def test_impossible_rules_are_refused(seeds: int, least: int) -> None:
    with pytest.raises(BadInput):
        UniverseRules(seeds, least)


LOG = [("ann", "a", 1), ("bob", "b", 2), ("ann", "a", 3)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_logs_of_every_format_give_their_pairs(spark, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        path.write_text("item,user,time\n" + "".join(f"{item},{user},{time}\n" for user, item, time in LOG))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"user": u, "item": i, "time": t}) + "\n" for u, i, t in LOG))
    else:
        spark.createDataFrame(LOG, "user string, item string, time int").write.parquet(str(path))
    pairs = read_log(spark, LogFormat(path))
    assertDataFrameEqual(pairs.found, spark.createDataFrame([one[:2] for one in LOG], PAIRS))
    pairs.release()
    once = universe(pairs.found, UniverseRules(seeds=5, least_subscribers=1), seed=1)
    assertDataFrameEqual(once, spark.createDataFrame([("ann", "a"), ("bob", "b")], PAIRS))


MALFORMED = [
    ("log.csv", "user,item,time\nann,a,1\nbob\ncas,c,3\n", 3),
    ("log.csv", "user,item\nann,a\n\nbob,b,b\n", 4),
    ("log.csv", "user,item\nann,a\n,b\n", 3),
    ("log.csv.gz", "user,item\nann,a\nbob,b\ncas,\n", 4),
    ("log.jsonl", '{"user": "ann", "item": "a"}\n{"user": "bob"}\n', 2),
    ("log.jsonl", '{"user": "ann", "item": 7}\n{ not json\n["bob", "b"]\n', 2),
    ("log.parquet", [("ann", "a"), ("bob", None), (None, "c")], 2),
]


@pytest.mark.parametrize(("name", "content", "row"), MALFORMED)
def test_rows_that_are_no_pair_are_refused_with_file_and_row_or_left_out(
    spark, tmp_path: Path, name: str, content, row: int
) -> None:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table(dict(zip(("user", "item"), zip(*content, strict=True), strict=True))), path)
    else:
        (gzip.open if name.endswith(".gz") else open)(path, "wt").write(content)
    with pytest.raises(BadInput, match=f"{name}, row {row}: this is no pair of user and item") as refused:
        read_log(spark, LogFormat(path))
    assert "\n" not in str(refused.value)
    pairs = read_log(spark, LogFormat(path, skip=True))
    users = {tuple(one) for one in pairs.found.collect()}
    assert users <= {("ann", "a"), ("ann", "7"), ("bob", "b"), ("cas", "c")}
    assert len(users) >= 1 and pairs.skipped >= 1
    pairs.release()


def test_columns_may_have_other_names(spark, tmp_path: Path) -> None:
    path = tmp_path / "edits.csv"
    path.write_text("editor.id,page\n7,Main\n")
    assertDataFrameEqual(
        read_log(spark, LogFormat(path, "editor.id", "page")).found, spark.createDataFrame([("7", "Main")], PAIRS)
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("log.csv", "who,what\nann,a\n", "has no column user and no column item; it has who, what"),
        ("log.csv", "user,item\n", "holds no subscription"),
        ("log.csv", "", "no column user"),
        ("log.parquet", "this is not parquet", "cannot be read as parquet"),
        ("log.json", "{ not json", "row 1: this is no pair"),
        ("log.xls", "", "does not say its format"),
    ],
)
def test_bad_logs_are_one_clear_line(spark, tmp_path: Path, name: str, content: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(BadInput, match=complaint) as refused:
        read_log(spark, LogFormat(path))
    assert "\n" not in str(refused.value)


def test_a_missing_log_is_named(spark, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no log"):
        read_log(spark, LogFormat(tmp_path / "nothing.csv"))


def test_formats_are_told_by_name(tmp_path: Path) -> None:
    assert format_of(Path("a.csv.gz")) == "csv"
    assert format_of(Path("a.ndjson")) == "json"
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "part-0.snappy.parquet").touch()
    assert format_of(tmp_path) == "parquet"
