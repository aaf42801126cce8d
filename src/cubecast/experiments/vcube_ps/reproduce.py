"""`cubecast reproduce vcube-ps`: one publisher, many, message order, topics, churn, brokers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.experiments.ledger import Explanation, Finding, Ledger, claims_of
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.vcube_ps.publishers import (
    FITTED,
    PRINTED,
    TABLE_5_1_NODES,
    explanations_of_many,
    explanations_of_table_5_1,
    findings_of_many,
    findings_of_one,
    findings_of_order,
    findings_of_several,
    findings_of_table_5_1,
    measure_of_many,
    measure_of_several,
    measure_of_table_5_1,
    series_of_several,
)
from cubecast.experiments.vcube_ps.topics import (
    PER_MINUTE,
    explanations_of_churn,
    explanations_of_topics,
    findings_of_brokers,
    findings_of_churn,
    findings_of_topics,
    measure_of_churn,
    measure_of_crowd,
    measure_of_topics,
    of_the_longest_run,
    series_of_topics,
)

RUNS, QUICK_RUNS = 40, 3
PRINTED_RUNS = 2
"""Of Table 5.1 as printed, beside the claims: acknowledgements wait too, a run has millions of packets."""
ORDER_RUNS = 8
"""Whatever else is asked for: two are not enough for shares of 256 messages, and one takes a second."""
BROKER_RUNS = 6
PUBLISHERS = 26


READING = (
    "acknowledgements do not wait in the output queue (subscriptions do); a packet counts itself in the queue it joins "
    "and a leaf of the single tree, which queues its own publication only, counts as having none (Table 5.1); rates of "
    "churn are per second, among 4,096 nodes; what VCube-PS pays for popular topics is a mean over the figure's "
    "numbers of messages, from the request on; pauses, the deviation of latencies, the length of a run under churn, "
    "the numbers of messages of Figure 5.10 and the number of publishers of Figure 5.12 are not stated and fitted"
)


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    order = range(effort.seed, effort.seed + ORDER_RUNS)
    alone = list(findings_of_one(runner, seeds))
    read, printed = _Part(), _Part()
    read.findings += findings_of_order(runner, order, FITTED)
    printed.findings += findings_of_order(runner, order, PRINTED)
    _load(effort, runner, seeds, read, queued_control=False)
    _load(effort, runner, seeds, printed, queued_control=True)
    if not effort.quick:
        _long(runner, seeds, read, printed)
    return Reproduction(
        name="vcube-ps",
        title="VCube-PS against single-rooted trees: thesis 2019, §5.6",
        reading=READING,
        runs=runs,
        seed=effort.seed,
        ledger=Ledger([*alone, *read.findings], read.explanations, claims_of("vcube-ps")),
        beside={"as printed": Ledger([*alone, *printed.findings])},
        series=read.series,
    )


@dataclass
class _Part:
    """What was found under one reading."""

    findings: list[Finding] = field(default_factory=list)
    explanations: dict[str, Explanation] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)


def _load(effort: Effort, runner: Runner, seeds: Sequence[int], part: _Part, *, queued_control: bool) -> None:
    several = measure_of_several(runner, seeds, queued_control=queued_control)
    part.findings += findings_of_several(several)
    if not effort.quick:
        some = seeds[:PRINTED_RUNS] if queued_control else seeds
        lengths = measure_of_table_5_1(runner, some, queued_control=queued_control)
        part.explanations |= explanations_of_table_5_1(lengths)
        part.findings += findings_of_table_5_1(lengths)
        several[TABLE_5_1_NODES] = lengths
    part.series["Figure 5.8a"] = series_of_several(several)


def _long(runner: Runner, seeds: Sequence[int], read: _Part, printed: _Part) -> None:
    """What takes minutes."""
    contended = measure_of_many(runner, seeds)
    read.explanations |= explanations_of_many(contended)
    read.findings += findings_of_many(contended)
    topics = measure_of_topics(runner, seeds)
    read.explanations |= explanations_of_topics(topics)
    read.findings += findings_of_topics(topics)
    read.series["Figure 5.10"] = series_of_topics(topics)
    printed.findings += of_the_longest_run(topics)
    churn = measure_of_churn(runner, seeds[0])
    read.explanations |= explanations_of_churn(churn, measure_of_crowd(runner, seeds[0]))
    read.findings += findings_of_churn(churn)
    rare = measure_of_churn(runner, seeds[0], PER_MINUTE)
    printed.findings += findings_of_churn(rare)
    read.findings += findings_of_brokers(runner, seeds[:BROKER_RUNS], publishers=PUBLISHERS)
