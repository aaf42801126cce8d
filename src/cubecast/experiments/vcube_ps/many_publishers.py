"""Figure 5.8a at its right end: 4,096 nodes, of which a quarter or all publish once within 1,000 u.t."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import run_kernel

NODES = 4096


def measure(runner: Runner, seeds: Sequence[int]) -> dict[str, float]:
    """How much later a message arrives when all publish, in percent, by where packets wait."""
    base = {"protocol": "vcube-ps", "nodes": NODES}
    higher = {}
    for queue in ("node", "link"):
        points = [
            base | {"share": share, "per_link": queue == "link", "seed": seed}
            for share in (1.0, 0.25)
            for seed in seeds
        ]
        latencies = [figures["reception_latency"]["mean"] for figures in runner(run_kernel, points)]
        everybody, some = fmean(latencies[: len(seeds)]), fmean(latencies[len(seeds) :])
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
