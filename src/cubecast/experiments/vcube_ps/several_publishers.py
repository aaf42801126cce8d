"""Figure 5.8a: everybody publishes one message within 1,000 u.t."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import SYSTEMS, Sample, busy

LATENCY = ("reception_latency", "mean")
CALM, CONTENDED = 64, 256
HOP = 102.0
"""Processing, transmission and propagation of one packet that does not wait."""


def measure(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> dict[int, Sample]:
    """The runs of each size."""
    return {nodes: busy(runner, seeds, nodes, queued_control=queued_control) for nodes in (CALM, CONTENDED)}


def findings(measured: Mapping[int, Sample]) -> Iterator[Finding]:
    yield Finding(claim("PS-F58-256"), measured[CONTENDED].ratio(*LATENCY))
    calm = measured[CALM]
    later = (calm.mean("srpt", *LATENCY) - calm.mean("vcube-ps", *LATENCY)) / HOP
    yield Finding(claim("PS-F58-128"), later)


def series(measured: Mapping[int, Sample]) -> dict[str, Any]:
    """Figure 5.8a, as far as sizes were run."""
    return {"nodes": sorted(measured)} | {
        f"reception latency, {system}": [measured[nodes].mean(system, *LATENCY) for nodes in sorted(measured)]
        for system in SYSTEMS
    }
