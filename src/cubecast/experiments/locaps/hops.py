"""§4.4.1: the two hop counts the thesis prints, on a line of brokers."""

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.locaps.latency import HOP, Point, subscription_latencies
from cubecast.experiments.parallel import Runner

SUBSCRIBER, PUBLISHER = 6, 0
BROKERS = SUBSCRIBER + 1
PIVOT = SUBSCRIBER - 2
"""Where the covering subscription branches off: with the smallest network that has it, at the pivot itself."""


def findings(runner: Runner) -> list[Finding]:
    settings = {"tree": "line", "faults": "0"}
    alone = Point("locaps", BROKERS, SUBSCRIBER, PUBLISHER, None, settings)
    covered = Point("locaps", BROKERS, SUBSCRIBER, PUBLISHER, PIVOT, settings)
    hops = [latency / HOP for latency in subscription_latencies(runner, [alone, covered])]
    return [Finding(claim(name), count) for name, count in zip(("LO-HOP-12", "LO-HOP-4"), hops, strict=True)]
