"""EpTO over random schedules: whatever the network does, the order holds; what it costs is holes, and they are told."""

from dataclasses import replace
from random import Random

import pytest

from cubecast.protocol.epidemic.epto_parameters import Clock, EptoParameters, Expired, Rule
from support.gossip import GossipWorld, Nature

SCHEDULES = 60


def schedule(seed: int, **changes: object) -> GossipWorld:
    """A run drawn from the seed alone: small worlds, bad networks, churn, wrong clocks, every switch."""
    rng = Random(seed)
    period = rng.uniform(10, 400)
    parameters = EptoParameters(
        period=period,
        drift=rng.choice((0.0, 0.1, rng.uniform(0, 1.8))),
        clock=rng.choice((Clock.LOGICAL, Clock.HYBRID)),
        fanout=rng.choice((0, 0, rng.randint(1, 6))),
        ttl=rng.choice((0, 0, rng.randint(1, 6))),
        threshold=rng.choice((0, 0, rng.randint(1, 8))),
        relays=rng.choice((0, 1, 2, 2, 3)),
        expired=rng.choice((Expired.ORDER, Expired.ORDER, Expired.DROP)),
        idle=rng.choice((50, 5, 0)),
    )
    parameters = replace(parameters, **changes)
    nature = Nature(
        latency=rng.choice((lambda r: r.uniform(1, 100), lambda r: r.expovariate(1 / 120), lambda r: r.uniform(1, 2))),
        loss=rng.choice((0.0, 0.1, rng.uniform(0, 0.6))),
        skew=rng.choice((0.0, rng.uniform(0, 500))),
    )
    world = GossipWorld(rng.randint(4, 25), parameters, nature, seed)
    churn = rng.choice((0.0, rng.uniform(0, 0.4)))
    for k in range(rng.randint(5, 15)):
        for node in world.nodes:
            if rng.random() < 0.3:
                world.after(k * period + rng.uniform(0, period), lambda n=node: world.publish(n, rng.choice((1, 1, 3))))
            if node >= len(world.nodes) // 2 and rng.random() < churn:
                world.after(k * period + rng.uniform(0, period), lambda n=node: world.replace(n))
    world.run()
    return world


@pytest.mark.parametrize("part", range(5))
def test_safety_and_validity(part: int):
    """Total order, integrity and validity are certain (thesis 5.2.6, propositions 1, 2 and 4)."""
    events = 0
    for seed in range(part * SCHEDULES // 5, (part + 1) * SCHEDULES // 5):
        world = schedule(seed)
        found = {
            "inversions": world.inversions(),
            "duplicates": world.duplicates(),
            "inventions": world.inventions(),
            "own events lost": world.lost_own(),
            "gaps told twice or wrongly": world.told_twice_or_wrongly(),
            "backwards": world.sources_out_of_order(),
        }
        assert not any(found.values()), f"seed {seed}: {found}"
        assert not any(life.machine.waiting() for life in world.lives if life.alive), f"seed {seed}"
        events += sum(len(life.delivered) for life in world.lives)
    assert events > 4_000, "nothing happened, so nothing was shown"


def test_holes_are_told_where_gossip_reaches():
    """Impatient processes make holes; each that a living publisher's events leave is told, those at the end too."""
    holes = told = judged = 0
    for seed in range(24):
        changes = {"fanout": 0, "ttl": 0, "relays": 2, "expired": Expired.ORDER, "threshold": 1 + seed % 3, "idle": 10}
        world = schedule(seed, **changes)
        if world.nature.loss <= 0.1:
            judged += 1
            holes += sum(map(len, world.holes().values()))
            told += sum(map(len, world.holes().values())) - world.untold()
            assert world.untold(of_the_living=True) == 0, f"seed {seed}"
    print(f"{judged} schedules, {holes} holes, {told} told")
    assert judged > 10 and told > 500 and told > 0.8 * holes, f"{judged} schedules, {holes} holes, {told} told"


@pytest.mark.parametrize(
    ("changes", "symptom"),
    [
        ({"ties": Rule.PRINTED, "clock": Clock.LOGICAL}, "inversions"),
        ({"identity": Rule.PRINTED}, "inventions"),
        ({"clock": Clock.GLOBAL}, "lost_own"),
    ],
    ids=["ties", "identity", "local clocks as global"],
)
def test_printed_rules_are_found_out(changes: dict[str, object], symptom: str):
    assert any(getattr(schedule(seed, **changes), symptom)() for seed in range(60))
