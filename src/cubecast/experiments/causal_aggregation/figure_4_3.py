"""Figure 4.3: how many dependencies a message has, 256 nodes."""

from collections.abc import Iterator

from cubecast.experiments.causal_aggregation.results import Results, share
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding

NODES = 256
# dependencies of a message, from and to
GROUPS = {"none": (0, 0), "1-4": (1, 4), "5-9": (5, 9), "gt12": (13, NODES)}


def findings(results: Results) -> Iterator[Finding]:
    if NODES not in results.sizes:
        return
    for name, (first, last) in GROUPS.items():
        ours = results.mean(NODES, lambda run, a=first, b=last: share(run["dependencies"], a, b))  # type: ignore[misc]
        yield Finding(claim(f"CAB-F43-{name}"), ours)
    yield Finding(claim("CAB-F43-max"), results.mean(NODES, lambda run: len(run["dependencies"]) - 1))
