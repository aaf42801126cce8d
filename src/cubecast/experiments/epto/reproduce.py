"""`cubecast reproduce epto`: spontaneous order, delay, short and drifting rounds, churn."""

from cubecast.experiments.claims import claims_of
from cubecast.experiments.epto import figures
from cubecast.experiments.epto.point import CLOCKS, Results, run_settings, setting
from cubecast.experiments.ledger import Finding, Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction

SIZES = (100, 200, 500)
QUICK_SIZES = SIZES[:2]
RUNS, QUICK_RUNS = 20, 2
SWEEP_RUNS = 10


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    plain = [setting(n, clock, rate) for n in sizes for clock in CLOCKS for rate in figures.RATES]
    sweeps = [*figures.less_cautious(sizes), *figures.settings_5_10(), *figures.settings_5_11()]
    results = Results(
        [
            *run_settings(runner, plain, seeds),
            *run_settings(runner, sweeps, seeds[:SWEEP_RUNS]),
        ]
    )
    return Reproduction(
        name="epto",
        title="EpTO, epidemic total order: thesis of M. Matos, §5.3",
        reading="acceptance and ties corrected, all else as printed; publications just before their round",
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(_findings(results, sizes), figures.explanations(results, sizes), claims_of("epto")),
        series={"Figure 5.9": figures.curves(results, sizes)},
    )


def _findings(results: Results, sizes: tuple[int, ...]) -> list[Finding]:
    return [
        *figures.findings_5_8(results, sizes),
        *figures.findings_5_9(results, sizes),
        *figures.findings_5_10(results),
        *figures.findings_5_11(results),
    ]
