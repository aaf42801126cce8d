"""`cubecast reproduce vcube-pb`: hops, latency against a fixed tree, and messages with causal dependencies."""

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.vcube_pb import figure_3, figure_4

SIZES = tuple(1 << d for d in range(3, 12))
QUICK_SIZES = SIZES[:5]
RUNS, QUICK_RUNS = 40, 10
LARGE_RUNS = 3
"""Of all sizes at most in the figures whose runs have millions of packets; N = 8 has the full number."""


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    hops = figure_3.curves(runner, sizes, seeds[:QUICK_RUNS])
    few, many = figure_4.Curves(runner, sizes[:1], seeds), figure_4.Curves(runner, sizes, seeds[:LARGE_RUNS])
    smallest = [finding for finding in figure_4.findings(few) if finding.claim.name == f"PB-F4-{sizes[0]}"]
    others = [finding for finding in figure_4.findings(many) if finding.claim.name != f"PB-F4-{sizes[0]}"]
    return Reproduction(
        name="vcube-pb",
        title="VCube-PB against a fixed tree: SBRC 2017, §6",
        reading="the root of the fixed tree does not publish; nobody subscribes or unsubscribes meanwhile",
        runs=runs,
        seed=effort.seed,
        ledger=Ledger([*figure_3.findings(sizes, hops), *smallest, *others], claims=claims_of("vcube-pb")),
        series={
            "Figure 3": {"nodes": list(sizes)} | {f"hops, {name}": values for name, values in hops.items()},
            "Figure 4": many.series("delivery"),
            "Figure 5": many.series("dependent"),
        },
    )
