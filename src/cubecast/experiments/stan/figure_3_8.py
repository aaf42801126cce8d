"""Figure 3.8: how much each process gains, by the links it had."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average


def findings(wikipedia: Sequence[Figures], livejournal: Sequence[Figures]) -> Iterator[Finding]:
    improved, fewer = (100 * average(run["improved"] for run in runs) for runs in (wikipedia, livejournal))
    before, after = (average(run["large"][which] for run in wikipedia) for which in (0, 1))
    worse = max(run["worse_at_most"] for run in wikipedia)
    more = f"of those that get more links none had more than {worse}" if worse else "nobody gets more links"
    note = f"the 2 % with most links: {before:.0f} → {after:.0f} (text: 600 loses 400); {more}"
    yield Finding(claim("ST-F38"), improved, note=note)
    yield Finding(claim("ST-F38-L8"), fewer, holds=fewer < improved, note=f"L8 {fewer:.1f} %, W8 {improved:.1f} %")
