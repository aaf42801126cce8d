"""Figure 3.1: causal information per message, compressed vector clocks against causal barriers.

The text gives neither the rate nor the number of messages. One hundred messages of as many random publishers, one per
mean propagation time, give both printed averages at once. (The text also says that a message had at most 31 indirect
dependencies; with fewer than 6 direct ones on average that is not compatible with an average of 47 entries.)
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cubecast.experiments.causal_aggregation.readings import MEAN_PROPAGATION, PRINTED_DEVIATION, positive_normal
from cubecast.experiments.causal_aggregation.results import Results
from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.sim.kernels.causal_broadcast import CausalKernel

NODES = 1024
MESSAGES = 100
MEAN_INTERVAL = MEAN_PROPAGATION


def run_rate_point(point: Mapping[str, Any]) -> dict[str, Any]:
    """`nodes` and `seed` in; what messages carry out."""
    nodes = int(point["nodes"])
    rng = np.random.default_rng([int(point["seed"]), nodes])
    times = np.full(nodes, np.inf)
    count = min(MESSAGES, nodes)
    times[rng.permutation(nodes)[:count]] = rng.exponential(MEAN_INTERVAL, count).cumsum()
    run = CausalKernel(nodes, aggregate=False).simulate(times, positive_normal(PRINTED_DEVIATION, (nodes, nodes), rng))
    assert run.complete()
    entries, direct = run.entries[run.published], run.direct_dependencies()[run.published]
    return {
        "nodes": nodes,
        "entries": float(entries.mean()),
        "barrier": float(direct.mean()),
        "most_indirect": int((entries - 1 - direct).max()),
    }


def findings(results: Results) -> Iterator[Finding]:
    if NODES in results.sizes:
        note = f"most indirect dependencies {results.mean(NODES, lambda run: run['most_indirect']):.0f} (paper 31)"
        yield Finding(claim("CAB-F31-vc"), results.mean(NODES, lambda run: run["entries"]), note=note)
        yield Finding(claim("CAB-F31-cb"), results.mean(NODES, lambda run: run["barrier"]))
