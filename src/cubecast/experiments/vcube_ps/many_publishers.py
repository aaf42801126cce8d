"""Figure 5.8a at its right end: 4,096 nodes, of which a quarter or all publish once within 1,000 u.t.

Run by the kernel of causal broadcast without aggregation: where everybody publishes once and acknowledgements do not
queue, its packets and their times are those of VCube-PS.
"""

from collections.abc import Iterator

import numpy as np

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.sim.kernels.causal_broadcast import CausalKernel, Queue

NODES = 4096
WINDOW, PROPAGATION = 1000.0, 100.0


def run(point: Point) -> Figures:
    nodes = point["nodes"]
    rng = np.random.default_rng([point["seed"], nodes])
    times = np.full(nodes, np.inf)
    publishers = rng.permutation(nodes)[: round(nodes * point["share"])]
    times[publishers] = rng.uniform(0, WINDOW, len(publishers))
    kernel = CausalKernel(nodes, aggregate=False, queue=Queue(point["queue"]))
    done = kernel.simulate(times, np.full((nodes, nodes), PROPAGATION))
    return {"latency": float(np.nanmean(done.reception_latency))}


def measure(runner: Runner, seed: int) -> dict[str, float]:
    """How much later a message arrives when all publish, in percent, by where packets wait."""
    higher = {}
    for queue in ("node", "link"):
        points = [{"nodes": NODES, "share": share, "queue": queue, "seed": seed} for share in (0.25, 1.0)]
        some, everybody = (figures["latency"] for figures in runner(run, points))
        higher[queue] = 100 * (everybody / some - 1)
    return higher


def findings(higher: dict[str, float]) -> Iterator[Finding]:
    yield Finding(claim("PS-F58-4096"), higher["node"], note=f"with a queue per link {higher['link']:.1f}")


def explanations(higher: dict[str, float]) -> dict[str, Explanation]:
    printed = claim("PS-F58-4096")
    low, high = printed.value - printed.tolerance, printed.value + printed.tolerance
    return {
        printed.name: Explanation(
            "Everybody sends about as many packets as there are nodes, four per unit of time, through an output queue "
            "that serves one: the wait that follows is not in the figure. With a queue per link the increase is the "
            "printed one, but then Table 5.1, whose groups are those of a queue per node, is not.",
            high,
            250,
            [Evidence("the same with a queue per link (%)", higher["link"], low, high)],
        )
    }
