"""Figures 5.6 and 5.7: one message of one publisher to random subscribers of 4,096 nodes."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import sample

LATENCY = ("reception_latency", "mean")


def findings(runner: Runner, seeds: Sequence[int]) -> Iterator[Finding]:
    quarter = sample(runner, seeds, nodes=4096, publishers="1", subscribers="25%")
    for system, name in (("vcube-ps", "PS-F56a"), ("srpt", "PS-F56a-srpt")):
        note = f"± {quarter.deviation(system, *LATENCY):.1f} from run to run"
        yield Finding(claim(name), quarter.mean(system, *LATENCY), note=note)
    yield Finding(claim("PS-F56b"), quarter.ratio("messages_sent"))
    yield from _subscribers(runner, seeds)


def _subscribers(runner: Runner, seeds: Sequence[int]) -> Iterator[Finding]:
    few, third, all_of_them = (
        sample(runner, seeds, nodes=4096, publishers="1", subscribers=share) for share in ("10%", "30%", "100%")
    )
    growth = 100 * (all_of_them.mean("vcube-ps", *LATENCY) / few.mean("vcube-ps", *LATENCY) - 1)
    yield Finding(claim("PS-F57a"), growth)
    latencies = [one.mean("srpt", *LATENCY) for one in (few, third, all_of_them)]
    spread = 100 * (max(latencies) / min(latencies) - 1)
    yield Finding(claim("PS-F57a-srpt"), spread)
    yield Finding(claim("PS-F57b"), third.mean("srpt", "false_positives"))
