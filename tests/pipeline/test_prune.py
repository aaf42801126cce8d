"""Pruned causes imply the others: the closure stays what it was, and replay has less to look at."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench.synthetic_traces import Fault, Shape, node_table

from cubecast.pipeline import assemble as pruning
from cubecast.pipeline.assemble import RunSummary, assemble, summaries
from cubecast.pipeline.findings import batch_of
from cubecast.pipeline.frames import LOG
from cubecast.pipeline.logs import log_rows
from cubecast.pipeline.rows import rows_of
from cubecast.trace.writer import table_of
from support.model_traces import clean_trace
from support.random_traces import random_trace


def assembled(table: pa.Table) -> RunSummary:
    rows = rows_of(table.set_column(0, "run", pa.array(np.zeros(table.num_rows, np.int32))))
    found, _ = summaries(pa.Table.from_batches([batch_of(log_rows(rows), LOG)]))
    summary = found[0]
    assemble(summary)
    return summary


@pytest.mark.parametrize("seed", range(12))
def test_the_closure_stays(seed: int, monkeypatch: pytest.MonkeyPatch):
    trace = clean_trace(seed) if seed % 2 else random_trace(seed)
    table = table_of("r", trace.events)
    full = assembled(table).messages
    monkeypatch.setattr(pruning, "CHECKS_WORTH_SAVING", 0)
    pruned = assembled(table).messages
    for name in full.topics:
        assert np.array_equal(full.topics[name].closure, pruned.topics[name].closure)


def test_only_the_round_before_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pruning, "CHECKS_WORTH_SAVING", 0)
    shape = Shape(nodes=16, rounds=40)
    table = pa.concat_tables(node_table("r", shape, node, []) for node in range(shape.nodes))
    topic = assembled(table).messages.topics["t"]
    assert len(topic.cause_counter) <= shape.per_round * shape.messages
    assert len(topic) == shape.messages


def test_synthetic_traces_are_what_they_say(tmp_path: Path):
    shape = Shape(nodes=20, rounds=30)
    assert node_table("r", shape, 17, []).num_rows == shape.messages + 3
    assert node_table("r", shape, 17, ["lose"]).num_rows == shape.messages + 2
    assert Fault(3, "swap").node == 3
