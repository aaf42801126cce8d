"""`cubecast reproduce epto`: spontaneous order, delay, short and drifting rounds, churn.

Figures 5.8 to 5.11 of §5.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.experiments.epto.point import CLOCKS, PERIOD, Results, run_settings, setting
from cubecast.experiments.ledger import Evidence, Explanation, Finding, Ledger, claim, claims_of
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.protocol.epidemic.epto_parameters import EptoParameters

RATES = (0.01, 0.1, 0.5)


def findings_5_8(results: Results, sizes: Sequence[int]) -> Iterator[Finding]:
    best = {
        (n, clock, rate): 100 * results.mean(setting(n, clock, rate), lambda run: run["spontaneous"])
        for n in sizes
        for clock in CLOCKS
        for rate in RATES[1:]
    }
    tenth = ", ".join(f"{best[n, CLOCKS[0], 0.1]:.0f}" for n in sizes)
    half = ", ".join(f"{best[n, CLOCKS[0], 0.5]:.0f}" for n in sizes)
    note = f"global clock, n = {', '.join(map(str, sizes))}: {half} with r = 0.5, {tenth} with r = 0.1"
    yield Finding(claim("EP-F58"), max(best.values()), note=note)
    runs = [run for n in sizes for clock in CLOCKS for rate in RATES for run in _orderly(results, n, clock, rate)]
    yield Finding(claim("EP-ORDER"), 100 * sum(runs) / len(runs), note=f"{len(runs)} runs")


def _orderly(results: Results, processes: int, clock: str, rate: float) -> list[float]:
    return results.each(setting(processes, clock, rate), lambda run: run["clean"] == 1.0 and not run["inversions"])


# Figure 5.9: what order costs in delay, and how that grows.


def delay(results: Results, chosen: Mapping[str, Any]) -> float:
    return results.mean(chosen, lambda run: run["delay"])


def less_cautious(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """The logical clock with a threshold of TTL + 1 instead of the printed 2 · TTL."""
    return [setting(n, CLOCKS[1], threshold=EptoParameters().ttl_of(n) + 1) for n in sizes]


def findings_5_9(results: Results, sizes: Sequence[int]) -> Iterator[Finding]:
    for clock in CLOCKS:
        busy = [setting(n, clock) for n in sizes]
        first = [_mean_ratio(results, one, "first_reception") for one in busy]
        last = [_mean_ratio(results, one, "last_reception") for one in busy]
        note = (
            f"delay {', '.join(f'{delay(results, one):.0f}' for one in busy)} for n = {', '.join(map(str, sizes))}; "
            f"over mean first reception {_list(first)}; over the last process's {_list(last)}"
        )
        yield Finding(claim(f"EP-DELAY-{clock}"), max(first, key=lambda ratio: abs(ratio - 3)), note=note)
    yield _growth(results, sizes)


def explanations(results: Results, sizes: Sequence[int]) -> dict[str, Explanation]:
    less = less_cautious(sizes)
    ratios = [_mean_ratio(results, one, "first_reception") for one in less]
    clean = 100 * min(results.mean(one, lambda run: run["clean"]) for one in less)
    last = [_mean_ratio(results, setting(n, CLOCKS[1]), "last_reception") for n in sizes]
    printed = claim("EP-DELAY-logical")
    low, high = printed.value - printed.tolerance, printed.value + printed.tolerance
    return {
        printed.name: Explanation(
            "The printed oracle waits for 2 · TTL with a logical clock, and even over the last reception no unordered "
            "epidemic makes 4 of that. With a threshold of TTL + 1 the ratio is the printed one and all events still "
            "arrive everywhere.",
            high,
            10,
            [
                Evidence("over the last process's reception, at least", min(last), 4, 10),
                Evidence("with TTL + 1, smallest", min(ratios), low, high),
                Evidence("with TTL + 1, largest", max(ratios), low, high),
                Evidence("processes without a hole with TTL + 1 (%)", clean, 99.9, 100),
            ],
        )
    }


def _growth(results: Results, sizes: Sequence[int]) -> Finding:
    growths = {}
    for clock in CLOCKS:
        grown = delay(results, setting(sizes[-1], clock)) / delay(results, setting(sizes[0], clock))
        growths[f"{clock}, n {sizes[0]} → {sizes[-1]}"] = grown
        for n in sizes:
            busier = delay(results, setting(n, clock, 0.5)) / delay(results, setting(n, clock, 0.1))
            growths[f"{clock}, n = {n}, r 0.1 → 0.5"] = busier
    note = "; ".join(f"{name}: {growth:.2f}" for name, growth in growths.items())
    return Finding(claim("EP-SCALE"), max(growths.values()), note=note)


def _mean_ratio(results: Results, chosen: Mapping[str, Any], baseline: str) -> float:
    return results.mean(chosen, lambda run: run["delay"] / run[baseline])


def _list(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def curves(results: Results, sizes: Sequence[int]) -> dict[str, Any]:
    return {"nodes": list(sizes)} | {
        f"delay, {clock} clock, r = {rate}": [delay(results, setting(n, clock, rate)) for n in sizes]
        for clock in CLOCKS
        for rate in RATES
    }


# Figure 5.10: processes without holes when rounds are too short for the network, or drift.

PROCESSES = 100
PERIODS = (62.0, 42.0, 25.0, 15.0, 8.0)
DRIFTS = (1.0, 1.2, 1.5, 2.0)
MARKEDLY = 5.0
"""Points below 100 %."""


def settings_5_10() -> list[dict[str, Any]]:
    return [
        *(setting(PROCESSES, clock, period=period) for clock in CLOCKS for period in PERIODS),
        *(setting(PROCESSES, clock, drift=drift) for clock in CLOCKS for drift in DRIFTS),
    ]


def clean(results: Results, clock: str, **changes: Any) -> float:
    return 100 * results.mean(setting(PROCESSES, clock, **changes), lambda run: run["clean"])


def findings_5_10(results: Results) -> Iterator[Finding]:
    by_period = {period: clean(results, CLOCKS[0], period=period) for period in PERIODS}
    first_bad = max((period for period, share in by_period.items() if share < 100 - MARKEDLY), default=0.0)
    yield Finding(
        claim("EP-PERIOD"),
        min(period for period in PERIODS if period > first_bad) / PERIOD,
        holds=all(share >= 100 - MARKEDLY for period, share in by_period.items() if period > PERIOD / 3)
        and all(share < 100 - MARKEDLY for period, share in by_period.items() if period < PERIOD / 3),
        note="; ".join(
            f"{clock}: {_shares({period: clean(results, clock, period=period) for period in PERIODS})}"
            for clock in CLOCKS
        ),
    )
    note = "; ".join(
        f"{clock}: {_shares({drift: clean(results, clock, drift=drift) for drift in DRIFTS})}" for clock in CLOCKS
    )
    yield Finding(claim("EP-DRIFT"), clean(results, CLOCKS[0], drift=1.0), note=note)


def _shares(shares: dict[float, float]) -> str:
    return ", ".join(f"{key:g}: {share:.1f} %" for key, share in shares.items())


# Figure 5.11: half of the processes are replaced, a share of them every δ; what the others deliver, and when.

CHURN = (0.0, 0.05, 0.1, 0.2, 0.5)


def settings_5_11() -> list[dict[str, Any]]:
    """Without churn it is a setting of Figure 5.9."""
    return [_setting(churn) for churn in CHURN if churn]


def _setting(churn: float) -> dict[str, Any]:
    return setting(PROCESSES, CLOCKS[0], churn=churn)


def findings_5_11(results: Results) -> Iterator[Finding]:
    orderly = {
        churn: all(results.each(_setting(churn), lambda run: run["clean"] == 1.0 and not run["inversions"]))
        for churn in CHURN
    }
    survived = 0.0
    for churn, well in orderly.items():
        if not well:
            break
        survived = churn
    calm = delay(results, _setting(0.0))
    note = "delay " + ", ".join(
        f"{100 * churn:g} %: {100 * (delay(results, _setting(churn)) / calm - 1):+.1f} %" for churn in CHURN[1:]
    )
    yield Finding(claim("EP-CHURN"), 100 * survived, note=note)


SIZES = (100, 200, 500)
QUICK_SIZES = SIZES[:2]
RUNS, QUICK_RUNS = 20, 2
SWEEP_RUNS = 10


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    sizes = QUICK_SIZES if effort.quick else SIZES
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    plain = [setting(n, clock, rate) for n in sizes for clock in CLOCKS for rate in RATES]
    sweeps = [*less_cautious(sizes), *settings_5_10(), *settings_5_11()]
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
        ledger=Ledger(_findings(results, sizes), explanations(results, sizes), claims_of("epto")),
        series={"Figure 5.9": curves(results, sizes)},
    )


def _findings(results: Results, sizes: tuple[int, ...]) -> list[Finding]:
    return [
        *findings_5_8(results, sizes),
        *findings_5_9(results, sizes),
        *findings_5_10(results),
        *findings_5_11(results),
    ]
