"""Figure 4.3: how many dependencies a message has, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.ledger import Claim, Comparison, Finding

NODES = 256
# (name, from, to): % of the messages, tolerance in points
PAPER = {("none", 0, 0): (27.0, 3), ("1-4", 1, 4): (28.5, 4), ("5-9", 5, 9): (16.8, 4), ("gt12", 13, NODES): (23.0, 5)}
MOST = 54


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for (name, first, last), (value, points) in PAPER.items():
        ours = results.mean(NODES, lambda run, a=first, b=last: share(run["dependencies"], a, b))  # type: ignore[misc]
        quantity = f"messages with {'more than 12' if name == 'gt12' else name} dependencies, N = {NODES}"
        yield Finding(Claim(f"CAB-F43-{name}", "Fig. 4.3", quantity, value, "%", Comparison.POINTS, points), ours)
    most = Claim(
        "CAB-F43-max", "Fig. 4.3", f"most dependencies, N = {NODES}", MOST, "entries", Comparison.RELATIVE, 0.20
    )
    yield Finding(most, results.mean(NODES, lambda run: len(run["dependencies"]) - 1))
