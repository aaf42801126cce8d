"""`cubecast reproduce locaps`: hop counts of §4.4.1 and Figures 6.1 to 6.3."""

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Ledger
from cubecast.experiments.locaps import figures, hops
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction

DEPTHS, QUICK_DEPTHS = (5, 6, 7, 8, 9), (5, 6)
MOST_FAULTS = 4
DEPTH_OF_FAULTS = 5
"""Figure 6.3 is the same for every depth; with f = 4 a broker's neighbourhood is nine hops wide, which here is all."""
SUBSCRIBERS = 1000


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    depths = QUICK_DEPTHS if effort.quick else DEPTHS
    drawn = [
        figures.figure_6_1a(runner, depths),
        figures.figure_6_1b(runner, depths[-1]),
        figures.figure_6_2a(runner, depths[-1], SUBSCRIBERS, effort.seed),
        figures.figure_6_2b(runner, depths),
        figures.figure_6_3(runner, DEPTH_OF_FAULTS, MOST_FAULTS),
    ]
    return Reproduction(
        name="locaps",
        title="LoCaPS against Delta and Gryphon: thesis of F. Pedrosa, §4.4.1 and chapter 6",
        reading=(
            "50 ms per hop and nothing else; latency is from asking to knowing the cut; a covering subscription is at "
            "the same leaf; 512 brokers with diameter 18 contradict each other, 512 leaves (1,023 brokers) have it"
        ),
        runs=1,
        seed=effort.seed,
        ledger=Ledger([*hops.findings(runner), *(figure.finding() for figure in drawn)], claims=claims_of("locaps")),
        series={figure.claim.place: figure.series() for figure in drawn},
    )
