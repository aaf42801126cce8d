"""Figure 5.8: how far the order of first reception is the total order, without EpTO; and with it (§5.3).

Read as the longest common subsequence of what a process receives, in the order it stands in the balls, with the total
order, as a share of all events; of the best process of a run.
"""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.epto.point import CLOCKS, Results, setting
from cubecast.experiments.ledger import Finding

RATES = (0.01, 0.1, 0.5)


def findings(results: Results, sizes: Sequence[int]) -> Iterator[Finding]:
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
