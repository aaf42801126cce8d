"""A whole Spark, Java and all, killed under a stream out of a topic and one into another: each row is there once.

Much slower than the campaigns of test_kill_campaigns.py, which keep Spark's contract without Spark: they say what the
format does with kills, this one that Spark's contract is what they take it for. `KILLS` says how many kills.
"""

import os
from collections import Counter
from random import Random
from threading import Event

import pytest

from cubecast import sync
from support.commands import running_node
from support.spark_queries import COPY, SOURCE, spark_life

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("KILLS", "4"))
AT_ONCE = 100


@pytest.mark.parametrize("seed", [1])
def test_every_row_is_read_and_written_once(spark, tmp_path, seed):
    """Every other kill is a worker's, which Spark survives."""
    draw, published, killed = Random(seed), 0, Counter()
    with (
        running_node("--data", tmp_path / "log", "--log", ">") as node,
        sync.connect(node.address) as client,
    ):
        while killed.total() < KILLS:
            with spark_life(node.address, tmp_path) as life:
                while life.process.poll() is None and killed.total() < KILLS:
                    for _ in range(20):
                        numbers = range(published, published + AT_ONCE)
                        client.publish_batch(SOURCE, [b"%d" % number for number in numbers], wait="durable", timeout=60)
                        published += AT_ONCE
                    told = [life.line() for _ in range(draw.randrange(2, 6))]
                    if not told[-1]:
                        break  # a query has failed, which is no verdict: it goes on from its checkpoint
                    Event().wait(draw.random() * 0.2)
                    if killed.total() % 2:
                        killed["worker"] += life.kill_worker()
                    else:
                        killed["driver"] += 1
                        life.kill()
        with spark_life(node.address, tmp_path, "finish") as life:
            while life.line():
                pass
            assert life.process.wait(60) == 0, (tmp_path / "errors.txt").read_text()[-3000:]
        rows = spark.read.parquet(str(tmp_path / "rows")).collect()
        copied = client.read_log(COPY, timeout=60)["payload"].to_pylist()
    expected = Counter(range(published))
    assert killed["driver"] >= KILLS // 2, "no kill, nothing tried"
    assert Counter(int(bytes(row.payload)) for row in rows) == expected
    assert Counter(map(int, copied)) == expected
