"""Figure 5.8a: everybody publishes one message within 1,000 u.t."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import sample

LATENCY = ("reception_latency", "mean")
HOP = 102.0
"""Processing, transmission and propagation of one packet that does not wait."""


def findings(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Iterator[Finding]:
    everybody = sample(runner, seeds, nodes=256, publishers="100%", queued_control=queued_control)
    quantity = "reception latency, SRPT over VCube-PS, N = 256"
    claim = Claim("PS-F58-256", "Figure 5.8a", quantity, 2.48, "ratio", Comparison.RELATIVE, 0.08)
    yield Finding(claim, everybody.ratio(*LATENCY))
    calm = sample(runner, seeds, nodes=64, publishers="100%", queued_control=queued_control)
    later = (calm.mean("srpt", *LATENCY) - calm.mean("vcube-ps", *LATENCY)) / HOP
    quantity = "SRPT is later while not saturated by, N = 64"
    yield Finding(Claim("PS-F58-128", "Figure 5.8a", quantity, 1, "hops", Comparison.RELATIVE, 0.15), later)
