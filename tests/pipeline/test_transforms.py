"""Each transform on a handful of rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.testing import assertDataFrameEqual

from cubecast.pipeline.agreement import agreement
from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import FOOTER, REPLAYED, SEQUENCE
from cubecast.pipeline.judging import FILE, total_order
from cubecast.pipeline.layout import FLAGS, footers, pieces, tasks
from cubecast.pipeline.staging import Run
from cubecast.pipeline.verdict import PropertyVerdict, RunVerdict, Verification
from cubecast.trace.writer import table_of
from support.histories import parse_rows


def frame(spark, rows, schema):
    return spark.createDataFrame(pa.Table.from_batches([batch_of(rows, schema)]), schema=schema)


def test_footers_say_which_nodes_lie_where(spark, tmp_path: Path):
    rows = parse_rows("node 3\nsubscribe a\ncut a 1:0\nnode 5\nquiescent")
    path = tmp_path / "nodes.parquet"
    pq.write_table(table_of("r", rows), path, row_group_size=2)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    files = spark.createDataFrame([(0, "r", str(path), 3), (1, "q", str(tmp_path / "broken.parquet"), 3)], FILE)
    found = footers(files)
    where = {"run": 0, "path": str(path), "own": True} | dict.fromkeys(FLAGS, False)
    # Kinds from `cut` to `subscribe` may include `publish`: only reading tells whether a dependency is damaged.
    expected = [
        where | {"group": 0, "rows": 2, "low": 3, "high": 3, "deps": True, "cuts": True, "contents": True},
        where | {"group": 1, "rows": 1, "low": 5, "high": 5},
    ]
    assertDataFrameEqual(found.where("damage is null"), frame(spark, expected, FOOTER))
    (broken,) = found.where("damage is not null").collect()
    assert (broken["run"], broken["refusal"]) == (1, None)


def group(number: int, rows: int, low: int, high: int) -> dict[str, object]:
    where = {"run": 0, "path": "f", "group": number, "rows": rows, "low": low, "high": high}
    return where | {"own": True, **dict.fromkeys(FLAGS, False), "deps": number == 1}


def test_the_heaviest_task_comes_first():
    planned = tasks(pieces([group(n, rows, n, n) for n, rows in enumerate((10, 30, 20))]), {0: "r"}, parallelism=2)
    part = {"path": "f", "run": 0, "name": "r", "own": True, **dict.fromkeys(FLAGS, False)}
    assert planned == [
        [[part | {"deps": True, "groups": [1]}]],
        [[part | {"groups": [2]}]],
        [[part | {"groups": [0]}]],
    ]


def test_row_groups_that_share_a_node_are_one_piece():
    spans = [(0, 0), (0, 0), (1, 4), (3, 3), (5, 5)]
    found = pieces([group(number, 1, low, high) for number, (low, high) in enumerate(spans)])
    assert [[one["group"] for one in piece.groups] for piece in found] == [[0, 1], [2, 3], [4]]
    assert [piece.nodes_mixed for piece in found] == [False, True, False]


def sigma(node: int, **values: object) -> dict[str, object]:
    told = {"run": 0, "topic": "a", "node": node, "incarnation": 0, "ordinal": 0, "correct": True, "last_seq": 9}
    return told | {"publisher": [1 << 32], "cut": [0], "last": [0]} | values


def test_agreement_finds_who_stays_below(spark):
    replayed = [
        sigma(1, last=[5]),
        sigma(2, last=[3]),
        sigma(3, last=[0], cut=[5]),
        sigma(4, last=[7], correct=False),
        sigma(5, last=[0], publisher=[1 << 32], cut=[7]),
        {"run": 0, "node": 6, "incarnation": 0, "findings": []},
    ]
    found = agreement(frame(spark, replayed, REPLAYED), dict)
    told = found.selectExpr("run", "inline(findings)").select("run", "property", "node", "seq", "source", "counter")
    expected = [
        (0, "P4", 2, 9, 1, 5),
        (0, "P4u", 1, 9, 1, 7),
        (0, "P4u", 2, 9, 1, 7),
        (0, "P4u", 3, 9, 1, 7),
    ]
    assertDataFrameEqual(told, spark.createDataFrame(expected, told.schema))


def test_total_order_finds_pairs_circles_and_holes(spark):
    def sequence(run: int, node: int, counters: list[int]) -> dict[str, object]:
        who = {"run": run, "topic": "a", "node": node, "incarnation": 0, "ordinal": 0, "correct": True}
        size = len(counters)
        return who | {"publisher": [0] * size, "counter": counters, "seq": list(range(size))}

    rows = [sequence(0, 1, [1, 2, 3]), sequence(0, 2, [2, 3]), sequence(1, 1, [1, 2]), sequence(1, 2, [2, 1])]
    found = total_order(frame(spark, rows, SEQUENCE)).selectExpr("run", "inline(findings)")
    told = found.select("run", "property", "node", "counter", "other_counter")
    expected = [(1, "P9a", 2, 1, 2), (1, "P9b", 1, 2, 1), (1, "P9c", 2, 1, 2)]
    assertDataFrameEqual(told, spark.createDataFrame(expected, told.schema))


def test_verdicts_of_runs_are_joined(spark, tmp_path):
    run = Run(0, "r", "d", ("f",), ("P1",), None)
    verification = Verification(
        (
            RunVerdict(run, {"K0": PropertyVerdict("VALID"), "P1": PropertyVerdict("UNKNOWN")}),
            RunVerdict(run, {"K0": PropertyVerdict("VALID"), "P1": PropertyVerdict("VIOLATED", 3)}),
        )
    )
    assert verification.verdict == "VIOLATED"
    assert verification.properties == {"K0": PropertyVerdict("VALID"), "P1": PropertyVerdict("VIOLATED", 3)}
    verdicts = [("K0", "VALID", 0), ("P1", "UNKNOWN", 0), ("K0", "VALID", 0), ("P1", "VIOLATED", 3)]
    expected = [("r", "d", *one) for one in verdicts]
    verification.write(tmp_path / "out")
    found = spark.read.parquet(str(tmp_path / "out" / "verdicts"))
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))
