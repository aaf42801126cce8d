"""Figure 3.7: physical links of a hundred processes on a grid, round by round."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures
from cubecast.experiments.stan.point import average, setting

SETTING = setting("grid")


def evolution(runs: Sequence[Figures]) -> list[float]:
    return [average(values) for values in zip(*(run["links"] for run in runs), strict=True)]


def beside_the_papers(links: Sequence[float]) -> dict[str, Sequence[float | None]]:
    """Round by round; the thesis prints the first and the last."""
    between: list[float | None] = [None] * (len(links) - 2)
    printed = [claim("ST-F37-initial").value, *between, claim("ST-F37").value]
    return {"links of a process on the grid, ours": links, "links of a process on the grid, paper": printed}


def findings(runs: Sequence[Figures]) -> Iterator[Finding]:
    links, logical = evolution(runs), average(run["logical"] for run in runs)
    note = f"round by round {', '.join(f'{one:.1f}' for one in links)}; logical links {logical:.1f} throughout"
    for name, ours in (("ST-F37-initial", links[0]), ("ST-F37", links[-1])):
        yield Finding(claim(name), ours, note=note)
