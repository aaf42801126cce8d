"""Figure 3.7: physical links of a hundred processes on a grid, round by round."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting

SETTING = setting("grid")


def evolution(runs: Sequence[Figures]) -> list[float]:
    return [average(values) for values in zip(*(run["links"] for run in runs), strict=True)]


def findings(runs: Sequence[Figures]) -> Iterator[Finding]:
    links, logical = evolution(runs), average(run["logical"] for run in runs)
    note = f"round by round {', '.join(f'{one:.1f}' for one in links)}; logical links {logical:.1f} throughout"
    for name, statement, value, ours in (
        ("ST-F37-initial", "links of a process, before", 25, links[0]),
        ("ST-F37", "links of a process, after eight rounds", 15, links[-1]),
    ):
        claim = Claim(name, "Figure 3.7", statement, value, "links", Comparison.RELATIVE, 0.15)
        yield Finding(claim, ours, note=note)
