"""Options of the format: one line that says what to write."""

import random

import pytest

from cubecast.errors import BadInput
from cubecast.spark.options import read_options
from cubecast.spark.stream import water_filling

GOOD = {"nodes": "127.0.0.1:1", "topics": "a"}


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"topics": "a"}, r'\.option\("nodes", "HOST:PORT"\)'),
        ({"nodes": "127.0.0.1:1"}, r'\.option\("topics", "a,b"\)'),
        ({**GOOD, "pattern": ">"}, "either"),
        ({**GOOD, "topic": "a"}, "has no option 'topic' here; it has nodes, cluster"),
        ({**GOOD, "topics": "a.*"}, "wildcards"),
        ({**GOOD, "columns": "offset,body"}, "no column 'body'; there are topic, offset"),
        ({**GOOD, "since": "yesterday"}, "write beginning, now, a time"),
        ({**GOOD, "where": "price >"}, "filter"),
        ({**GOOD, "failOnDataLoss": "no"}, "true or false"),
        ({**GOOD, "maxDelay": "soon"}, "maxDelay: write a number of seconds"),
        ({**GOOD, "tokenFile": "nowhere/token"}, "cannot read nowhere/token"),
        ({**GOOD, "topics": "a,b", "since": "7"}, "belongs to one topic"),
        ({**GOOD, "rowsPerPartition": "0"}, "1 or more"),
        ({**GOOD, "maxRowsPerBatch": "many"}, "1 or more"),
        ({**GOOD, "minRowsPerBatch": "few"}, "1 or more"),
        ({**GOOD, "minRowsPerBatch": "9", "maxRowsPerBatch": "8"}, "at most as many as maxRowsPerBatch, 8"),
        ({**GOOD, "pollSeconds": "soon"}, "number of seconds"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given, hint):
    with pytest.raises(BadInput, match=hint) as refused:
        read_options(given)
    assert "\n" not in str(refused.value)


def test_names_of_options_are_spelled_in_any_case():
    options = read_options({"NODES": "a:1, b:2", "topics": "x, y", "rowsperpartition": "5", "columns": "offset,topic"})
    assert (options.nodes, options.topics, options.rows_per_partition) == (("a:1", "b:2"), ("x", "y"), 5)
    assert options.schema == "offset bigint, topic string"


def test_water_filling_gives_short_topics_all_and_the_others_alike():
    idle = {f"idle.{number}": 1 for number in range(999)}
    admitted = water_filling({"hot": 1_000_000, **idle}, 10_000)
    assert admitted == {"hot": 9_001, **idle}
    assert water_filling({"a": 10, "b": 10, "c": 10}, 1) == {"a": 0, "b": 0, "c": 1}, "some progress is made"
    for seed in range(100):
        draw = random.Random(seed)
        backlog = {f"{number}": draw.randrange(50) for number in range(draw.randrange(1, 20))}
        most = draw.randrange(1, 300)
        admitted = water_filling(backlog, most)
        assert sum(admitted.values()) == min(most, sum(backlog.values())), f"seed {seed}"
        cut_short = [admitted[topic] for topic in backlog if admitted[topic] < backlog[topic]]
        assert not cut_short or max(admitted.values()) - min(cut_short) <= 1, f"seed {seed}"


def test_beside_a_hot_topic_no_others_lag_grows():
    """999 topics get a message now and then; batches hold a little more than comes, and the hot one catches up."""
    draw, idle = random.Random(1), [f"idle.{number}" for number in range(999)]
    backlog = {"hot": 1_000_000, **dict.fromkeys(idle, 0)}
    for _ in range(100):
        before = backlog["hot"]
        backlog["hot"] += 8_000
        for topic in draw.sample(idle, 500):
            backlog[topic] += 1
        for topic, many in water_filling(backlog, 10_000).items():
            backlog[topic] -= many
        assert max(backlog[topic] for topic in idle) == 0
        assert backlog["hot"] < before
