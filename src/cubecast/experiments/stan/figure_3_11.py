"""Figure 3.11: lost messages slow it down."""

from collections.abc import Iterator, Mapping, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
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
    statement = f"{universe}: reduction after nine rounds with 10 % loss, over that without"
    claim = Claim("ST-LOSS", "Figure 3.11", statement, 1, "ratio", Comparison.POINTS, 0.1)
    yield Finding(claim, shares[0.1], note=", ".join(f"{100 * loss:g} %: {one:.2f}" for loss, one in shares.items()))
