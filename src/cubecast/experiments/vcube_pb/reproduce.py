"""`cubecast reproduce vcube-pb`: hops, latency against a fixed tree, and messages with causal dependencies."""

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.vcube_pb import figure_3, figure_4

SIZES = tuple(1 << d for d in range(3, 12))
QUICK_SIZES = SIZES[:5]
RUNS, HOP_RUNS = 40, 10
BUSY_RUNS = 2
"""Beside the claims: acknowledgements that take time, by the machine, with millions of packets."""


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = effort.runs or RUNS
    seeds = range(effort.seed, effort.seed + runs)
    hops = figure_3.curves(runner, sizes, seeds[:HOP_RUNS])
    curves = figure_4.Curves(runner, sizes, seeds)
    explanations = {} if effort.quick else figure_4.explanations(runner, curves, effort.seed)
    return Reproduction(
        name="vcube-pb",
        title="VCube-PB against a fixed tree: SBRC 2017, §6",
        reading=(
            "the root of the fixed tree does not publish; acknowledgements do not take their receivers' time; nobody "
            "subscribes or unsubscribes meanwhile"
        ),
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(
            [*figure_3.findings(sizes, hops), *figure_4.findings(curves)], explanations, claims_of("vcube-pb")
        ),
        beside={
            "acknowledgements take time": Ledger(list(figure_4.beside(runner, curves, seeds[:BUSY_RUNS]))),
        },
        series={
            "Figure 3": {"nodes": list(sizes)} | {f"hops, {name}": values for name, values in hops.items()},
            "Figure 4": curves.series("delivery"),
            "Figure 5": curves.series("dependent"),
        },
    )
