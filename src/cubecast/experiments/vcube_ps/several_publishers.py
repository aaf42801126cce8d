"""Figure 5.8a: everybody publishes one message within 1,000 u.t."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import busy

LATENCY = ("reception_latency", "mean")
HOP = 102.0
"""Processing, transmission and propagation of one packet that does not wait."""


def findings(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Iterator[Finding]:
    everybody = busy(runner, seeds, 256, queued_control=queued_control)
    yield Finding(claim("PS-F58-256"), everybody.ratio(*LATENCY))
    calm = busy(runner, seeds, 64, queued_control=queued_control)
    later = (calm.mean("srpt", *LATENCY) - calm.mean("vcube-ps", *LATENCY)) / HOP
    yield Finding(claim("PS-F58-128"), later)
