"""Figure 3.10: the overlays stay what they were: clustering, path lengths, diameter, and whether they are connected."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting

MEASURES = ("clustering", "path", "diameter")
LONGER = 6
"""The thesis gives no TTL; ours is 4 elsewhere."""


def settings(universe: str) -> list[dict[str, object]]:
    return [setting(universe, measure="fitness", repair=repair) for repair in (True, False)]


def with_longer_walks(universe: str) -> dict[str, object]:
    return setting(universe, measure="fitness", repair=False, ttl=LONGER)


def explanations(runs: Sequence[Sequence[Figures]]) -> dict[str, Explanation]:
    """From the runs of `settings` and of `with_longer_walks`."""
    repaired, _, longer = (
        average(run["final"]["diameter"] / run["initial"]["diameter"] for run in its) for its in runs
    )
    return {
        "ST-FIT-L8-diameter": Explanation(
            "The diameter depends on the TTL, which the thesis does not state, and on members that hardly anybody "
            "points to: it grows by less than the tolerance with longer walks, and with pins.",
            1.05,
            1.08,
            [
                Evidence(f"with TTL {LONGER}", longer, 0.95, 1.05),
                Evidence("with pins", repaired, 0.95, 1.05),
            ],
        )
    }


def findings(universe: str, repaired: Sequence[Figures], printed: Sequence[Figures]) -> Iterator[Finding]:
    """The figure's quantities under the printed rules; what they lose, and that pins bring it back."""
    for name in MEASURES:
        before, after = (average(run[when][name] for run in printed) for when in ("initial", "final"))
        pinned = average(run["final"][name] for run in repaired)
        yield Finding(
            claim(f"ST-FIT-{universe}-{name}"),
            after / before,
            note=f"{before:.3f} → {after:.3f}, with pins {pinned:.3f}",
        )
    weakly = 100 * min(run["final"]["weakly"] for run in printed)
    yield Finding(claim(f"ST-FIT-{universe}-weakly"), weakly)
    lost, kept = (100 * average(run["final"]["reachable"] for run in runs) for runs in (printed, repaired))
    unpointed = average(run["final"]["unpointed"] for run in printed)
    pins = average(run["final"]["pinned"] for run in repaired)
    note = f"as printed {lost:.1f} %, {unpointed:.0f} subscriptions are in no view; {pins:.0f} pins"
    yield Finding(claim(f"ST-FIT-{universe}-reachable"), kept, note=note)
