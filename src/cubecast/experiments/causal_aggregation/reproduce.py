"""`cubecast reproduce causal-aggregation`: the chapter under the chosen reading, and under the printed parameters."""

from cubecast.experiments.causal_aggregation.chapter import QUICK_SIZES, SIZES, all_findings, run_chapter, run_rates
from cubecast.experiments.causal_aggregation.explanations import explanations
from cubecast.experiments.causal_aggregation.figures import latencies, latencies_of_pairs, one_tree_or_many
from cubecast.experiments.causal_aggregation.readings import CHOSEN, PRINTED_DEVIATION, PUBLISHED
from cubecast.experiments.causal_aggregation.tables import savings_by_size
from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction

NAME = "causal-aggregation"
RUNS, QUICK_RUNS = 30, 20
READING = (
    f"{CHOSEN.name}: {CHOSEN.why}, where publications have a tree each; Figure 3.1 and the single tree of Figures 4.8 "
    f"and 4.9 keep the printed deviation of {PRINTED_DEVIATION:g} (as all trees do under the reading beside); a packet "
    "of exactly 100 bytes counts as smaller (Table 4.3)"
)


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    rates = run_rates(runs, effort.seed, runner, sizes)
    chosen = run_chapter(CHOSEN, runs, effort.seed, runner, sizes)
    published = run_chapter(PUBLISHED, runs, effort.seed, runner, sizes)
    return Reproduction(
        name=NAME,
        title="Causal aggregation broadcast: thesis 2019, Figure 3.1 and chapter 4; ICPP 2018",
        reading=READING,
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(all_findings(rates, chosen), explanations(chosen, runner, effort.seed), claims_of(NAME)),
        beside={PUBLISHED.name: Ledger(all_findings(rates, published))},
        series={
            "Table 4.1": savings_by_size({CHOSEN.name: chosen, PUBLISHED.name: published}),
            "Figure 4.4": latencies(chosen),
            "Figure 4.5": latencies_of_pairs(chosen),
            "Figures 4.8 and 4.9": one_tree_or_many(chosen),
        },
    )
