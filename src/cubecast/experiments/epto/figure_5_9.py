"""Figure 5.9: what order costs in delay, and how that grows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.epto.figure_5_8 import RATES
from cubecast.experiments.epto.point import CLOCKS, Results, setting
from cubecast.experiments.ledger import Evidence, Explanation, Finding
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
