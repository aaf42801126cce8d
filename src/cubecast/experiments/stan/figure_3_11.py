"""Figure 3.11: lost messages slow it down."""

from collections.abc import Iterator, Mapping, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.figure_3_7 import evolution
from cubecast.experiments.stan.point import setting

LOSSES = (0.0, 0.1, 0.15, 0.2)
ROUND = 9


def settings(universe: str) -> list[dict[str, object]]:
    return [setting(universe, loss=loss) for loss in LOSSES]


def findings(universe: str, runs: Mapping[float, Sequence[Figures]]) -> Iterator[Finding]:
    links = {loss: evolution(its) for loss, its in runs.items()}
    whole = links[0.0][0] - links[0.0][ROUND]
    shares = {loss: (curve[0] - curve[ROUND]) / whole for loss, curve in links.items()}
    yield Finding(
        claim("ST-LOSS"), shares[0.1], note=", ".join(f"{100 * loss:g} %: {one:.2f}" for loss, one in shares.items())
    )
