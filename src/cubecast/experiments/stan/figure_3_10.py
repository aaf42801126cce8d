"""Figure 3.10: the overlays stay what they were: clustering, path lengths, diameter, and whether they are connected."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting

TOLERANCES = {"clustering": 0.01, "path": 0.01, "diameter": 0.05}


def settings(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="fitness", repair=repair) for repair in (True, False)]


def findings(universe: str, repaired: Sequence[Figures], printed: Sequence[Figures]) -> Iterator[Finding]:
    """The figure's quantities under the printed rules; what they lose, and that pins bring it back."""
    for name, tolerance in TOLERANCES.items():
        before, after = (average(run[when][name] for run in printed) for when in ("initial", "final"))
        statement = f"{universe}: {name} after over before"
        claim = Claim(f"ST-FIT-{universe}-{name}", "Figure 3.10", statement, 1, "ratio", Comparison.RELATIVE, tolerance)
        pinned = average(run["final"][name] for run in repaired)
        yield Finding(claim, after / before, note=f"{before:.3f} → {after:.3f}, with pins {pinned:.3f}")
    weakly = 100 * min(run["final"]["weakly"] for run in printed)
    statement = f"{universe}: overlays that are weakly connected"
    yield Finding(Claim(f"ST-FIT-{universe}-weakly", "Figure 3.10", statement, 100, "%", Comparison.EXACT), weakly)
    lost, kept = (100 * average(run["final"]["reachable"] for run in runs) for runs in (printed, repaired))
    unpointed = average(run["final"]["unpointed"] for run in printed)
    pins = average(run["final"]["pinned"] for run in repaired)
    statement = f"{universe}: overlays in which all reach all, with pins"
    claim = Claim(f"ST-FIT-{universe}-reachable", "Figure 3.10", statement, 100, "%", Comparison.POINTS, 0.5)
    note = f"as printed {lost:.1f} %, {unpointed:.0f} subscriptions are in no view; {pins:.0f} pins"
    yield Finding(claim, kept, note=note)
