"""Figure 5.12: VCube-PS against trees of 256 brokers with 15 subscribers each; 4,096 nodes, 128 messages.

The text does not say how many publish. Below about 22 nobody waits and both are alike, from there on the root of the
brokers' tree, which sends 23 packets per message, cannot follow; 26 publishers with five messages each are fitted. How
long the root falls behind differs from run to run: 9 to 26 % in the first five.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate

MESSAGES = 128
SYSTEMS: dict[str, dict[str, str]] = {"vcube-ps": {}, "srpt-b": {"brokers": "256"}}


def run(point: Point) -> Figures:
    config = SimConfig(
        protocol=point["system"],
        nodes=4096,
        publishers=str(point["publishers"]),
        messages=round(MESSAGES / point["publishers"]),
        workload="poisson:500",
        queued_control=False,
        settings=SYSTEMS[point["system"]],
        seed=point["seed"],
    )
    return {"latency": simulate(config)["reception_latency"]["mean"]}


def findings(runner: Runner, seeds: Sequence[int], *, publishers: int) -> Iterator[Finding]:
    points = [{"system": system, "publishers": publishers, "seed": seed} for system in SYSTEMS for seed in seeds]
    latencies = [figures["latency"] for figures in runner(run, points)]
    own, brokers = fmean(latencies[: len(seeds)]), fmean(latencies[len(seeds) :])
    note = f"{own:.0f} against {brokers:.0f} u.t., {publishers} publishers"
    yield Finding(claim("PS-F512"), 100 * (1 - own / brokers), note=note)
