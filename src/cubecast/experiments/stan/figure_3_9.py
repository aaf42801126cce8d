"""Figure 3.9: links before over links after, and how they grow with the topics of a process."""

from collections.abc import Iterator, Mapping, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average


def findings(runs: Mapping[str, Sequence[Figures]]) -> Iterator[Finding]:
    """By universe. The text has one factor for all Wikipedia universes."""
    for name, its in runs.items():
        ratio = average(run["ratio"] for run in its)
        before, after = (average(run["per_topic"][which] for run in its) for which in (0, 1))
        note = f"{name}: links per further topic {before:.2f} → {after:.2f}"
        if name.startswith("W"):
            yield Finding(claim(f"ST-F39-{name}"), ratio, note=note)
        else:
            yield Finding(claim(f"ST-F39-{name}"), ratio, holds=ratio > 1, note=note)
