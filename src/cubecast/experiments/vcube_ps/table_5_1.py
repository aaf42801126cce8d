"""Table 5.1: nodes by the mean length of their output queue; 1,024 nodes, everybody publishes.

The printed groups follow from two readings the text does not state. A packet counts itself when it looks at the queue:
then a node of the single tree with k children sees (k + 1) / 2, which puts 448, 60 and 3 nodes into the groups up to 2,
4 and 8, as printed. And acknowledgements do not wait in the output queue: with them every queue of VCube-PS is longer
than 16.
"""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import QUEUE_GROUPS, busy

NODES = 1024
GROUPS = (0, 2, 4, 8, 16, 32, 8192)
"""The printed groups of nodes, by the upper end of their queue length; the one up to 4,096 is empty."""


def findings(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Iterator[Finding]:
    measured = busy(runner, seeds, NODES, queued_control=queued_control)
    for group in GROUPS:
        k = QUEUE_GROUPS.index(group)
        for system, runs in measured.runs.items():
            ours = sum(figures["queue_groups"][k] for figures in runs) / len(seeds)
            yield Finding(claim(f"PS-T51-{group}-{system}"), ours)
