"""Figure 3.15: what CrosspostFlood saves, before StaN and after it, and what it costs in hops."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting


def settings(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="crossposts")]


def findings(universe: str, runs: Sequence[Figures]) -> Iterator[Finding]:
    before, after = (100 * average(run[when]["saving"] for run in runs) for when in ("initial", "final"))
    hops, apart = (average(run["final"][name] for run in runs) for name in ("hops", "hops_apart"))
    floods = sum(run["final"]["floods"] for run in runs)
    yield Finding(claim("ST-XP"), after, note=f"before StaN {before:.1f} %; {floods:.0f} messages")
    yield Finding(claim("ST-XP-hops"), hops - apart, holds=hops <= apart * 1.01, note=f"{hops:.2f} against {apart:.2f}")
