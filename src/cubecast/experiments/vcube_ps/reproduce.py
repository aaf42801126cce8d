"""`cubecast reproduce vcube-ps`: one publisher, many, message order, topics, churn, brokers."""

from collections.abc import Iterator, Sequence

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


def reproduce(effort: Effort, runner: Runner) -> Reproduction:
    runs = effort.runs or (QUICK_RUNS if effort.quick else RUNS)
    seeds = range(effort.seed, effort.seed + runs)
    alone = list(single_publisher.findings(runner, seeds))
    explanations: dict[str, Explanation] = {}
    order = range(effort.seed, effort.seed + ORDER_RUNS)
    others = list(message_order.findings(runner, order, message_order.FITTED))
    if not effort.quick:
        others += _long(runner, seeds, explanations)
    return Reproduction(
        name="vcube-ps",
        title="VCube-PS against single-rooted trees: thesis 2019, §5.6",
        reading=(
            "acknowledgements do not wait in the output queue (subscriptions do); a packet counts itself in the queue "
            "it joins; rates of churn are per second; pauses, the deviation of latencies, the length of a run under "
            "churn and the number of publishers of Figure 5.12 are not stated and fitted"
        ),
        runs=runs,
        seed=effort.seed,
        ledger=Ledger(
            [*alone, *_load(effort, runner, seeds, explanations, queued_control=False), *others],
            explanations,
            claims_of("vcube-ps"),
        ),
        beside={
            "as printed": Ledger(
                [
                    *alone,
                    *_load(effort, runner, seeds, {}, queued_control=True),
                    *message_order.findings(runner, order, message_order.PRINTED),
                ]
            )
        },
    )


def _load(
    effort: Effort,
    runner: Runner,
    seeds: Sequence[int],
    explanations: dict[str, Explanation],
    *,
    queued_control: bool,
) -> Iterator[Finding]:
    yield from several_publishers.findings(runner, seeds, queued_control=queued_control)
    if not effort.quick:
        some = seeds[:PRINTED_RUNS] if queued_control else seeds
        lengths = table_5_1.measure(runner, some, queued_control=queued_control)
        explanations |= table_5_1.explanations(lengths)
        yield from table_5_1.findings(lengths)


def _long(runner: Runner, seeds: Sequence[int], explanations: dict[str, Explanation]) -> Iterator[Finding]:
    """What takes minutes; the explanations that go with it are added to those."""
    contended = many_publishers.measure(runner, seeds)
    explanations |= many_publishers.explanations(contended)
    yield from many_publishers.findings(contended)
    topics = multiple_topics.measure(runner, seeds)
    explanations |= multiple_topics.explanations(topics)
    yield from multiple_topics.findings(topics)
    churn = subscriber_churn.measure(runner, seeds[0])
    explanations |= subscriber_churn.explanations(churn)
    yield from subscriber_churn.findings(churn)
    yield from broker_trees.findings(runner, seeds[:BROKER_RUNS], publishers=PUBLISHERS)
