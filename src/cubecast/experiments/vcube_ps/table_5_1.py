"""Table 5.1: nodes by the mean length of their output queue; 1,024 nodes, everybody publishes.

The printed groups follow from two readings the text does not state. A packet counts itself when it looks at the queue:
then a node of the single tree with k children sees (k + 1) / 2, which puts 448, 60 and 3 nodes into the groups up to 2,
4 and 8, as printed. And acknowledgements do not wait in the output queue: with them every queue of VCube-PS is longer
than 16.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Evidence, Explanation, Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import QUEUE_GROUPS, Sample, busy

NODES = 1024
LONGEST = 32
"""Upper end of the longest queues of VCube-PS."""
GROUPS = (0, 2, 4, 8, 16, 32, 8192)
"""The printed groups of nodes, by the upper end of their queue length; the one up to 4,096 is empty."""


def measure(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Sample:
    return busy(runner, seeds, NODES, queued_control=queued_control)


def _counts(measured: Sample, group: int, system: str) -> list[int]:
    """Nodes in the group, by run."""
    k = QUEUE_GROUPS.index(group)
    return [figures["queue_groups"][k] for figures in measured.runs[system]]


def findings(measured: Sample) -> Iterator[Finding]:
    for group in GROUPS:
        for system in measured.runs:
            yield Finding(claim(f"PS-T51-{group}-{system}"), fmean(_counts(measured, group, system)))


def explanations(measured: Sample) -> dict[str, Explanation]:
    """The printed counts are whole numbers that add up to all nodes."""
    printed = claim(f"PS-T51-{LONGEST}-vcube-ps")
    counts = _counts(measured, LONGEST, "vcube-ps")
    few = 100 * sum(count <= printed.value + printed.tolerance for count in counts) / len(counts)
    return {
        printed.name: Explanation(
            "The table counts one simulation, and how many nodes have so long a queue differs most from run to run: "
            "many of ours have as few.",
            printed.value,
            60,
            [Evidence("runs within the tolerance (%)", few, 20, 100)],
        )
    }
