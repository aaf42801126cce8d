"""Both judges on what the swarm makes: incarnations, gaps, crashes, joins, and faults planted in the protocol.

The paths for large traces are taken because what counts as large is tiny here: blocks of causes, chunks, batches of
runs, and pruning.
"""

from pathlib import Path

import pytest

from cubecast.check.mutate import MUTATORS
from cubecast.pipeline import assemble, causality, layout, order
from cubecast.pipeline import verify as verifying
from cubecast.protocol.families import FAMILIES
from cubecast.sim.config import stream
from cubecast.sim.swarm import draw
from cubecast.sim.swarm_run import run
from cubecast.trace.reader import Trace
from support import planted
from support.agreeing import disagreements

WITH_LIVES = 6


@pytest.fixture
def tiny_blocks(monkeypatch):
    for module in (causality, order):
        monkeypatch.setattr(module, "CELLS_AT_ONCE", 40)
    monkeypatch.setattr(layout, "ROWS_PER_CHUNK", 50)
    monkeypatch.setattr(layout, "ROWS_PER_TASK", 100)
    monkeypatch.setattr(assemble, "CHECKS_WORTH_SAVING", 0)
    monkeypatch.setattr(verifying, "ROWS_PER_BATCH", 500)


def swarm_traces(protocol: str, seeds: range) -> list[Trace]:
    outcomes = (run(draw(protocol, seed), careful=False) for seed in seeds)
    return [Trace(one.info, one.events) for one in outcomes if not one.crash and len(one.events) < 4000]


def test_lives_and_losses_of_cubecast(tiny_blocks, tmp_path: Path):
    traces = swarm_traces("cubecast", range(1, 17))
    lives = [trace for trace in traces if any(event.incarnation for event in trace.events)]
    assert len(lives) >= WITH_LIVES and any(event.kind == "gap" for trace in traces for event in trace.events)
    assert not disagreements(None, tmp_path, traces)


@pytest.mark.parametrize("protocol", [name for name in FAMILIES if name != "cubecast"])
def test_every_other_family(tiny_blocks, tmp_path: Path, protocol: str):
    assert not disagreements(None, tmp_path, swarm_traces(protocol, range(1, 6)))


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "plant", [planted.excuse_too_wide, planted.one_message_per_source], ids=lambda one: one.__name__
)
def test_what_a_broken_protocol_leaves(tiny_blocks, tmp_path: Path, plant):
    with plant():
        traces = swarm_traces("cubecast", range(1, 9))
    assert not disagreements(None, tmp_path, traces)


def test_swarm_traces_broken_afterwards(tiny_blocks, tmp_path: Path):
    rng, mutants = stream(1, "mutants of swarm traces"), []
    for trace in swarm_traces("cubecast", range(1, 2)):
        for name in sorted(MUTATORS):
            if not MUTATORS[name].total_order and len(trace.events) < 1200:
                broken = MUTATORS[name].apply(trace.events, rng)
                mutants += [] if broken is None else [Trace(trace.info, broken)]
    assert len(mutants) > 20
    assert not disagreements(None, tmp_path, mutants)
