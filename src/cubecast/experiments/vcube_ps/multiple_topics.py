"""Figure 5.10: 128 topics of 256 nodes, drawn for each message uniformly or by Zipf's law.

What Zipf's law costs SRPT is decided by where the roots of the popular topics fall: in most runs nothing, in a few,
where two share a node, several times the latency. VCube-PS pays at the source: a publication waits there for the
acknowledgements of the one before it on its topic. That wait counts here, from the request to the last hop.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare

MESSAGES = 64
"""Of each of 256 nodes: 2^14."""
ZIPF = 0.825
VCUBE_RUNS = 2
"""At most: what VCube-PS pays hardly differs between runs, and one has 17 million packets."""


def run(point: Point) -> Figures:
    """Mean reception latency, and when publications began on average."""
    config = SimConfig(
        protocol=point["system"],
        nodes=256,
        publishers="100%",
        topics=128,
        zipf=point["zipf"],
        workload="poisson:500",
        messages=MESSAGES,
        queued_control=False,
        seed=point["seed"],
    )
    simulation = prepare(config)
    figures = simulation.run()
    births = simulation.world.statistics.births.values()
    return {"latency": figures["reception_latency"]["mean"], "begun": fmean(births)}


def findings(runner: Runner, seeds: Sequence[int]) -> Iterator[Finding]:
    single = {zipf: _runs(runner, "srpt", zipf, seeds) for zipf in (0.0, ZIPF)}
    own = {zipf: _runs(runner, "vcube-ps", zipf, seeds[:VCUBE_RUNS]) for zipf in (0.0, ZIPF)}
    even = fmean(figures["latency"] for figures in single[0.0])
    higher = [100 * (figures["latency"] / even - 1) for figures in single[ZIPF]]
    spread = f"{min(higher):.1f} … {max(higher):.1f} in {len(higher)} runs"
    error = stdev(higher) / len(higher) ** 0.5 if len(higher) > 1 else 0.0
    yield Finding(claim("PS-F510-srpt"), fmean(higher), note=f"{spread}, standard error {error:.1f}")
    # SRPT sends at once, so with the same seed its publications begin when they were asked for.
    waits = {
        zipf: [mine["begun"] - asked["begun"] for mine, asked in zip(runs, single[zipf], strict=False)]
        for zipf, runs in own.items()
    }
    latency = {
        zipf: fmean(figures["latency"] + wait for figures, wait in zip(runs, waits[zipf], strict=True))
        for zipf, runs in own.items()
    }
    asked, evenly = fmean(waits[ZIPF]), fmean(waits[0.0])
    note = f"of it waiting for acknowledgements at the source {asked:.0f} u.t., uniform {evenly:.0f}"
    yield Finding(claim("PS-F510-ps"), 100 * (latency[ZIPF] / latency[0.0] - 1), note=note)


def _runs(runner: Runner, system: str, zipf: float, seeds: Sequence[int]) -> list[Figures]:
    return list(runner(run, [{"system": system, "zipf": zipf, "seed": seed} for seed in seeds]))
