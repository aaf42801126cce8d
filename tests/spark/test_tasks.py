"""How ranges become tasks: no row twice, none left out, none too large, and few of them."""

import random

import pytest

from cubecast.spark.logs import Range, tasks


@pytest.mark.parametrize("seed", range(50))
def test_tasks_cover_each_range_once_and_in_order(seed):
    draw = random.Random(seed)
    most = draw.choice([1, 7, 100])
    ranges = []
    for number in range(draw.randrange(1, 40)):
        start = draw.randrange(1, 50)
        ranges.append(Range(f"log{number // 20}", f"t{number}", start, start + draw.choice([0, 1, 5, 30, 950])))
    made = tasks(ranges, most)
    seen = [(part.topic, offset) for task in made for part in task.ranges for offset in range(part.start, part.stop)]
    assert seen == [(one.topic, offset) for one in ranges for offset in range(one.start, one.stop)]
    assert all(sum(part.stop - part.start for part in task.ranges) <= most for task in made)
    assert all(len({part.log_id for part in task.ranges}) == 1 for task in made)


def test_a_thousand_small_topics_are_one_task():
    assert len(tasks([Range("log", f"t{number}", 1, 11) for number in range(1000)], 250_000)) == 1


def test_a_long_topic_becomes_tasks_of_one_length():
    made = tasks([Range("log", "t", 1, 1_000_002)], 250_000)
    sizes = [task.ranges[0].stop - task.ranges[0].start for task in made]
    assert len(sizes) == 5
    assert max(sizes) - min(sizes) <= 1


def test_what_was_planned_in_another_log_stays_whole():
    """What that log lacks is told once, for the whole of the range."""
    (task,) = tasks([Range("log", "t", 1, 1000, upto={0: (0, 999)}, is_moved=True)], 10)
    assert (task.ranges[0].start, task.ranges[0].stop) == (1, 1000)
