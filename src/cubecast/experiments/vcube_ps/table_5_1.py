"""Table 5.1: nodes by the mean length of their output queue; 1,024 nodes, everybody publishes.

The printed groups follow from two readings the text does not state. A packet counts itself when it looks at the queue:
then a node of the single tree with k children sees (k + 1) / 2, which puts 448, 60 and 3 nodes into the groups up to 2,
4 and 8, as printed. And acknowledgements do not wait in the output queue: with them every queue of VCube-PS is longer
than 16.
"""

from collections.abc import Iterator, Sequence

from cubecast.experiments.ledger import Claim, Comparison, Finding
from cubecast.experiments.parallel import Runner
from cubecast.experiments.vcube_ps.point import QUEUE_GROUPS, sample

NODES = 1024
# group (upper end of the queue length): nodes of VCube-PS, nodes of SRPT
PAPER = {0: (0, 512), 2: (0, 448), 4: (0, 60), 8: (495, 3), 16: (510, 0), 32: (19, 0), 8192: (0, 1)}


def findings(runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Iterator[Finding]:
    measured = sample(runner, seeds, nodes=NODES, publishers="100%", queued_control=queued_control)
    for group, printed in PAPER.items():
        for system, value in zip(measured.runs, printed, strict=True):
            k = QUEUE_GROUPS.index(group)
            ours = sum(figures["queue_groups"][k] for figures in measured.runs[system]) / len(seeds)
            below = QUEUE_GROUPS[k - 1] if k else 0
            quantity = f"{system}: nodes with a queue of {f'({below}, {group}]' if k else '0'}"
            claim = Claim(
                f"PS-T51-{group}-{system}", "Table 5.1", quantity, value, "nodes", Comparison.POINTS, 0.15 * NODES
            )
            yield Finding(claim, ours)
