"""A live cluster is cut in two for longer than the patience and heals: nobody crashed, and nobody loses anything
silently. Judged by what the applications recorded, and a gap that names nothing excuses nothing here."""

import asyncio
from itertools import product

import pytest

from cubecast.check import Verdict
from cubecast.experiments.live_faults.cluster import ClusterConfig, LiveCluster
from cubecast.experiments.live_faults.recorded import Record, judge, load
from cubecast.experiments.live_faults.run import Accident, Fault, Happening, LiveSchedule, judged

PATIENCE = 1.0
RATE = 60.0


def strict(record: Record) -> Record:
    """As if gaps without names had not been told, nor that a subscription is complete again."""
    lines, ready = [], set()
    for line in record.lines:
        if (line[0] == "gap" and not line[3]) or (line[0] == "ready" and line[1] in ready):
            continue
        if line[0] == "ready":
            ready.add(line[1])
        lines.append(line)
    return Record(record.name, lines)


async def _suffer(config: ClusterConfig, faults: tuple[Fault, ...]) -> list[int]:
    async with LiveCluster(config) as cluster:
        await cluster.publish(RATE)
        schedule = LiveSchedule(1, config.members, faults, RATE)
        await Happening(cluster, schedule, asyncio.get_running_loop().time()).everything()
        await cluster.until_together(range(config.members))
        await cluster.drain()
        for member in cluster.living:
            await member.ask("end")
        lives = [status["incarnation"] for status in (await cluster.statuses()).values()]
        await cluster.conclude()
    return lives


def _config(directory, **settings) -> ClusterConfig:
    return ClusterConfig(
        members=4,
        seed=1,
        directory=directory,
        topics=("talk.0", "talk.1"),
        module="cubecast.experiments.live_faults.application",
        patience=PATIENCE,
        round_length=PATIENCE / 4,
        **settings,
    )


HALVES = tuple(Fault(1.0, Accident.STALL, one, other, 3 * PATIENCE) for one, other in product((0, 1), (2, 3)))
ALONE = tuple(Fault(1.0, Accident.STALL, 3, other, 3 * PATIENCE) for other in (0, 1, 2))
PAUSED = (Fault(1.0, Accident.STOP, 2, seconds=3 * PATIENCE),)


@pytest.mark.parametrize("faults", [HALVES, ALONE, pytest.param(PAUSED, marks=pytest.mark.slow)])
def test_what_a_living_process_misses_is_named(tmp_path, faults):
    config = _config(tmp_path)
    lives = asyncio.run(_suffer(config, faults))
    assert any(lives), "somebody was held faulty"
    findings = judge([strict(record) for record in load(config.records)])
    assert findings.mistakes == 0, findings.witnesses
    assert findings.gaps > 0 and findings.unnamed == 0
    report = judged(config, "cut off")
    assert report.verdict is Verdict.VALID and report.premises["P14"] > 0
