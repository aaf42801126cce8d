"""Spark raises no alarm on clean runs of any protocol there is: all of them in one verification."""

from dataclasses import replace
from pathlib import Path

import pytest

from cubecast.pipeline.verify import verify
from cubecast.protocol.families import FAMILIES, find
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
from support.random_runs import draw_config

HORIZON = 60_000.0
EVERYBODY_SUBSCRIBES = ("causal-broadcast", "timer-bundling")


def clean_config(protocol: str, seed: int) -> SimConfig:
    """A settled group of at most 16 nodes without faults, drawn from the seed."""
    drawn = draw_config(seed)
    nodes = min(drawn.nodes, 16)
    everybody = protocol in EVERYBODY_SUBSCRIBES
    family = find(protocol)
    return replace(
        drawn,
        protocol=protocol,
        nodes=nodes,
        subscribers="100%" if everybody else str(min(nodes, int(drawn.subscribers))),
        publishers=str(min(nodes, int(drawn.publishers))),
        settings={"brokers": str(1 + seed % nodes)} if protocol == "srpt-b" else {},
        until=None if family.rests(family.chosen({})) else HORIZON,
    )


def write_runs(place: Path, runs: int) -> None:
    for protocol in FAMILIES:
        for seed in range(runs):
            simulate_to_directory(clean_config(protocol, seed), place / protocol / str(seed), packets=seed % 4 == 0)


def alarms(spark, place: Path) -> list[str]:
    verification = verify(spark, [place])
    assert len(verification.runs) > 0
    return [f"{one.run.directory}: {one.verdict}" for one in verification.runs if one.verdict != "VALID"]


def test_no_alarm_on_clean_runs(spark, tmp_path):
    write_runs(tmp_path, 4)
    assert alarms(spark, tmp_path) == []


@pytest.mark.slow
def test_no_alarm_on_a_thousand_clean_runs_of_every_protocol(spark, tmp_path):
    write_runs(tmp_path, 1000)
    assert alarms(spark, tmp_path) == []
