"""Figure 3.15: what CrosspostFlood saves, before StaN and after it, and what it costs in hops."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting


def settings(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="crossposts")]


def findings(universe: str, runs: Sequence[Figures]) -> Iterator[Finding]:
    before, after = (100 * average(run[when]["saving"] for run in runs) for when in ("initial", "final"))
    hops, apart = (average(run["final"][name] for run in runs) for name in ("hops", "hops_apart"))
    statement = f"{universe}: processes that save more than 10 % of their messages"
    claim = Claim("ST-XP", "Figure 3.15a", statement, 20, "%", Comparison.AT_LEAST)
    floods = sum(run["final"]["floods"] for run in runs)
    yield Finding(claim, after, note=f"before StaN {before:.1f} %; {floods:.0f} messages")
    claim = Claim(
        "ST-XP-hops", "Figure 3.15b", f"{universe}: no more hops than SimpleFlood", 0, "hops", Comparison.SHAPE
    )
    yield Finding(claim, hops - apart, holds=hops <= apart * 1.01, note=f"{hops:.2f} against {apart:.2f}")
