"""Figure 3: hops of one message to all subscribers, for five ways they lie in the cube.

"The first node of each level" is read as the chain through the largest cluster, in which each level is one hop more;
the other chain, one node of every cluster, is one hop long throughout.
"""

from collections.abc import Iterator, Sequence
from math import log2
from random import Random

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.protocol.families import find
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.delays import Constant
from cubecast.sim.network import Network
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.world import World
from cubecast.wire.codec import codec_of

PUBLISHER, TOPIC = 0, "t"
GROWING = ("all", "one per level", "25 %", "50 %")
CONSTANT = "neighbours"
STRAIGHT = 0.95
"""R² of a straight line over log N from which growth counts as logarithmic."""


def subscribers(placement: str, nodes: int, seed: int) -> list[int]:
    match placement:
        case "all":
            return list(range(nodes))
        case "neighbours":
            return [PUBLISHER, *(1 << bit for bit in range(dimension_of(nodes)))]
        case "one per level":
            return [PUBLISHER, *(nodes - (nodes >> level) for level in range(1, dimension_of(nodes) + 1))]
        case share:
            count = nodes * int(share.split()[0]) // 100
            others = Random(f"{seed}/{share}").sample(range(1, nodes), count - 1)
            return sorted([PUBLISHER, *others])


def run(point: Point) -> Figures:
    """One message; a hop takes one unit of time and nothing else takes any."""
    family, size = find("vcube-pb"), point["nodes"]
    members = {TOPIC: subscribers(point["placement"], size, point["seed"])}
    make = machines(family, point["seed"], size, range(size), members, {})
    network = Network(size, Constant(1.0), processing=0.0, transmission=0.0)
    world = World(list(range(size)), make, network, codec_of(family))
    begin_subscribed(world, family, members)
    world.at(0.0, world.publish, PUBLISHER, TOPIC, (b"",))
    world.start()
    world.run()
    received = world.statistics.reception
    assert len(received) == len(members[TOPIC]) - 1
    return {"hops": sum(received) / len(received)}


def curves(runner: Runner, sizes: Sequence[int], seeds: Sequence[int]) -> dict[str, list[float]]:
    """Mean hops over the sizes, by placement."""
    placements = (*GROWING, CONSTANT)
    points = [
        {"placement": placement, "nodes": nodes, "seed": seed}
        for placement in placements
        for nodes in sizes
        for seed in seeds
    ]
    hops = np.array([figures["hops"] for figures in runner(run, points)]).reshape(len(placements), len(sizes), -1)
    return dict(zip(placements, hops.mean(axis=2).tolist(), strict=True))


def findings(sizes: Sequence[int], drawn: dict[str, list[float]]) -> Iterator[Finding]:
    x = [log2(nodes) for nodes in sizes]
    fits = {placement: float(np.corrcoef(x, drawn[placement])[0, 1]) ** 2 for placement in GROWING}
    rising = all(drawn[placement] == sorted(drawn[placement]) for placement in GROWING)
    holds = rising and min(fits.values()) >= STRAIGHT and len(set(drawn[CONSTANT])) == 1
    note = "; ".join(f"{name}: {', '.join(f'{one:.2f}' for one in hops)}" for name, hops in drawn.items())
    yield Finding(claim("PB-F3"), min(fits.values()), holds, f"N = {sizes[0]} … {sizes[-1]}: {note}")
