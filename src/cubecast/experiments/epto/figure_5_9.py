"""Figure 5.9: what order costs in delay, and how that grows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.experiments.epto.figure_5_8 import RATES
from cubecast.experiments.epto.point import CLOCKS, Results, setting
from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.protocol.epidemic.epto_parameters import EptoParameters


def delay(results: Results, chosen: Mapping[str, Any]) -> float:
    return results.mean(chosen, lambda run: run["delay"])


def less_cautious(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """The logical clock with a threshold of TTL + 1 instead of the printed 2 · TTL."""
    return [setting(n, CLOCKS[1], threshold=EptoParameters().ttl_of(n) + 1) for n in sizes]


def findings(results: Results, sizes: Sequence[int]) -> Iterator[Finding]:
    for clock in CLOCKS:
        busy = [setting(n, clock) for n in sizes]
        first = [_mean_ratio(results, one, "first_reception") for one in busy]
        last = [_mean_ratio(results, one, "last_reception") for one in busy]
        claim = Claim(
            f"EP-DELAY-{clock}",
            "Figure 5.9",
            f"delay over that of an unordered epidemic (2 to 4), {clock} clock",
            3,
            "ratio",
            Comparison.POINTS,
            1.5,
        )
        note = (
            f"delay {', '.join(f'{delay(results, one):.0f}' for one in busy)} for n = {', '.join(map(str, sizes))}; "
            f"over mean first reception {_list(first)}; over the last process's {_list(last)}"
        )
        if clock == CLOCKS[1]:
            less = less_cautious(sizes)
            ratios = _list([_mean_ratio(results, one, "first_reception") for one in less])
            clean = 100 * min(results.mean(one, lambda run: run["clean"]) for one in less)
            note += f"; with a threshold of TTL + 1 {ratios} and {clean:.1f} % of the processes without a hole"
        yield Finding(claim, max(first, key=lambda ratio: abs(ratio - 3)), note=note)
    yield _growth(results, sizes)


def _growth(results: Results, sizes: Sequence[int]) -> Finding:
    growths = {}
    for clock in CLOCKS:
        grown = delay(results, setting(sizes[-1], clock)) / delay(results, setting(sizes[0], clock))
        growths[f"{clock}, n {sizes[0]} → {sizes[-1]}"] = grown
        for n in sizes:
            busier = delay(results, setting(n, clock, 0.5)) / delay(results, setting(n, clock, 0.1))
            growths[f"{clock}, n = {n}, r 0.1 → 0.5"] = busier
    claim = Claim(
        "EP-SCALE", "Figure 5.9", "delay, five times the processes or events", 2, "ratio", Comparison.AT_MOST, 0.4
    )
    note = "; ".join(f"{name}: {growth:.2f}" for name, growth in growths.items())
    return Finding(claim, max(growths.values()), note=note)


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
