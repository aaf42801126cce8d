"""Figures 5.6 and 5.7: one message of one publisher to random subscribers of 4,096 nodes."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import sample

LATENCY = ("reception_latency", "mean")


def findings(runner: Runner, seeds: Sequence[int]) -> Iterator[Finding]:
    quarter = sample(runner, seeds, nodes=4096, publishers="1", subscribers="25%")
    for system, name, value in (("vcube-ps", "PS-F56a", 533), ("srpt", "PS-F56a-srpt", 720)):
        claim = Claim(
            name, "Figure 5.6a", f"{system} latency, 25 % subscribers", value, "u.t.", Comparison.RELATIVE, 0.05
        )
        note = f"± {quarter.deviation(system, *LATENCY):.1f} from run to run"
        yield Finding(claim, quarter.mean(system, *LATENCY), note=note)
    claim = Claim("PS-F56b", "Figure 5.6b", "PUB packets, SRPT over VCube-PS", 1.79, "ratio", Comparison.RELATIVE, 0.05)
    yield Finding(claim, quarter.ratio("messages_sent"))
    yield from _subscribers(runner, seeds)


def _subscribers(runner: Runner, seeds: Sequence[int]) -> Iterator[Finding]:
    few, third, all_of_them = (
        sample(runner, seeds, nodes=4096, publishers="1", subscribers=share) for share in ("10%", "30%", "100%")
    )
    growth = 100 * (all_of_them.mean("vcube-ps", *LATENCY) / few.mean("vcube-ps", *LATENCY) - 1)
    quantity = "VCube-PS latency, 100 % subscribers over 10 %"
    yield Finding(Claim("PS-F57a", "Figure 5.7a", quantity, 36, "% higher", Comparison.POINTS, 4), growth)
    latencies = [one.mean("srpt", *LATENCY) for one in (few, third, all_of_them)]
    quantity = "SRPT latency varies at most"
    spread = 100 * (max(latencies) / min(latencies) - 1)
    yield Finding(Claim("PS-F57a-srpt", "Figure 5.7a", quantity, 2.7, "%", Comparison.AT_MOST, 1), spread)
    claim = Claim("PS-F57b", "Figure 5.7b", "relays of SRPT, 30 % subscribers", 779, "nodes", Comparison.RELATIVE, 0.05)
    yield Finding(claim, third.mean("srpt", "false_positives"))
