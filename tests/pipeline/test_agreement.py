"""The look at all topics at once lets none pass that a closer look finds something in, and few that are level."""

import random

import pyarrow as pa
import pytest

from cubecast.pipeline.agreement import COLUMNS, VECTORS, grouped, shortfalls, suspected, topic_groups
from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import REPLAYED


class Nothing:
    """Message tables of a run in which no cut is implied."""

    def topic(self, name):
        return self

    def rank(self, keys):
        return [-1]


def table(draw: random.Random, topics: int, level: bool) -> pa.Table:
    rows = []
    for topic in range(topics):
        publishers = draw.sample(range(5), draw.randrange(1, 4))
        ends = {one: draw.randrange(1, 6) for one in publishers}
        for node in range(draw.randrange(1, 5)):
            told = (
                ends if level else {one: draw.randrange(1, end + 1) for one, end in ends.items() if draw.random() < 0.9}
            )
            row = {"run": topic % 2, "topic": f"t{topic // 2}", "node": node, "incarnation": 0, "ordinal": 0}
            row |= {"correct": draw.random() < 0.8, "subscribed": 1, "last_seq": 9}
            cut = [draw.randrange(3) for _ in told]
            rows.append(row | {"publisher": [one << 32 for one in told], "cut": cut, "last": list(told.values())})
    draw.shuffle(rows)
    return pa.Table.from_batches([batch_of(rows, REPLAYED)]).select([*COLUMNS, *VECTORS])


def found(table: pa.Table) -> list[tuple]:
    return sorted((one.property, one.topic, one.node, one.message) for one in shortfalls(table, Nothing))


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_passed_over(seed):
    whole = table(random.Random(seed), 12, level=False)
    parts = [whole.take(pa.array(rows)).combine_chunks() for rows in grouped_rows(whole)]
    closely = sorted(one for part in parts for one in found(part))
    assert sorted(one for _, part in suspected(whole) for one in found(part)) == closely
    assert closely


@pytest.mark.parametrize("seed", range(10))
def test_level_topics_are_not_looked_at(seed):
    assert list(suspected(table(random.Random(seed), 12, level=True))) == []


def grouped_rows(whole: pa.Table):
    return grouped(pa.array(range(whole.num_rows)).to_numpy(), topic_groups(whole))
