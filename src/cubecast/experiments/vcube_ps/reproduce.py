"""`cubecast reproduce vcube-ps`: one publisher, several publishers, queue lengths."""

from collections.abc import Iterator, Sequence

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Finding, Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.vcube_ps import several_publishers, single_publisher, table_5_1

RUNS, QUICK_RUNS = 40, 3
TABLE_RUNS = 2
"""Runs of the 1,024-node table at most: a run has 2.1 million packets, and the groups hardly differ between seeds."""


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    alone = list(single_publisher.findings(runner, seeds))
    return Reproduction(
        name="vcube-ps",
        title="VCube-PS against single-rooted trees: thesis 2019, §5.6.2 and §5.6.3",
        reading="acknowledgements do not wait in the output queue; a packet counts itself in the queue it joins",
        runs=runs,
        seed=effort.seed,
        ledger=Ledger([*alone, *_load(effort, runner, seeds, queued_control=False)], claims=claims_of("vcube-ps")),
        beside={"acknowledgements queue too": Ledger([*alone, *_load(effort, runner, seeds, queued_control=True)])},
    )


def _load(effort: Effort, runner: Runner, seeds: Sequence[int], *, queued_control: bool) -> Iterator[Finding]:
    yield from several_publishers.findings(runner, seeds, queued_control=queued_control)
    if not effort.quick:
        yield from table_5_1.findings(runner, seeds[:TABLE_RUNS], queued_control=queued_control)
