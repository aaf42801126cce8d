"""`cubecast reproduce vcube-ps`: one publisher, many, message order, topics, churn, brokers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.experiments.claims import claims_of
from cubecast.experiments.ledger import Explanation, Finding, Ledger
from cubecast.experiments.parallel import Runner
from cubecast.experiments.reproduction import Effort, Reproduction
from cubecast.experiments.vcube_ps import (
    broker_trees,
    many_publishers,
    message_order,
    multiple_topics,
    several_publishers,
    single_publisher,
    subscriber_churn,
    table_5_1,
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
    "churn are per second; what VCube-PS pays for popular topics is a mean over the figure's numbers of messages, from "
    "the request on; pauses, the deviation of latencies, the length of a run under churn, the numbers of messages of "
    "Figure 5.10 and the number of publishers of Figure 5.12 are not stated and fitted"
)


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    order = range(effort.seed, effort.seed + ORDER_RUNS)
    alone = list(single_publisher.findings(runner, seeds))
    read, printed = _Part(), _Part()
    read.findings += message_order.findings(runner, order, message_order.FITTED)
    printed.findings += message_order.findings(runner, order, message_order.PRINTED)
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
    several = several_publishers.measure(runner, seeds, queued_control=queued_control)
    part.findings += several_publishers.findings(several)
    if not effort.quick:
        some = seeds[:PRINTED_RUNS] if queued_control else seeds
        lengths = table_5_1.measure(runner, some, queued_control=queued_control)
        part.explanations |= table_5_1.explanations(lengths)
        part.findings += table_5_1.findings(lengths)
        several[table_5_1.NODES] = lengths
    part.series["Figure 5.8a"] = several_publishers.series(several)


def _long(runner: Runner, seeds: Sequence[int], read: _Part, printed: _Part) -> None:
    """What takes minutes."""
    contended = many_publishers.measure(runner, seeds)
    read.explanations |= many_publishers.explanations(contended)
    read.findings += many_publishers.findings(contended)
    topics = multiple_topics.measure(runner, seeds)
    read.explanations |= multiple_topics.explanations(topics)
    read.findings += multiple_topics.findings(topics)
    read.series["Figure 5.10"] = multiple_topics.series(topics)
    printed.findings += multiple_topics.of_the_longest_run(topics)
    churn = subscriber_churn.measure(runner, seeds[0])
    read.explanations |= subscriber_churn.explanations(churn)
    read.findings += subscriber_churn.findings(churn)
    rare = subscriber_churn.measure(runner, seeds[0], subscriber_churn.PER_MINUTE)
    printed.findings += subscriber_churn.findings(rare)
    read.findings += broker_trees.findings(runner, seeds[:BROKER_RUNS], publishers=PUBLISHERS)
