"""The chapter's claims hold in its quick form; the queue groups are cut as Table 5.1 prints them."""

from statistics import fmean

import pytest

from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort, find_experiment
from cubecast.experiments.vcube_ps.point import QUEUE_GROUPS, run_kernel, run_point
from cubecast.experiments.vcube_ps.publishers import findings_of_one
from cubecast.experiments.vcube_ps.topics import (
    TOPICS_MESSAGES,
    explanations_of_churn,
    explanations_of_topics,
    findings_of_topics,
    measure_of_topics,
    of_the_longest_run,
    run_of_churn,
    series_of_topics,
)

VALUES = (lambda one: one["reception_latency"]["mean"], lambda one: one["queue_groups"][1])


def test_one_publication_costs_what_is_printed():
    findings = list(findings_of_one(here, [1, 2]))
    assert [finding.claim.name for finding in findings if not finding.within] == []
    assert len(findings) == 6


@pytest.mark.slow
def test_the_quick_reproduction_finds_every_claim_within_its_tolerance():
    done = find_experiment("vcube-ps")(Effort(runs=2, quick=True, seed=1), here)
    assert done.ledger.unexplained() == []
    assert {finding.claim.name for finding in done.ledger.findings} >= {"PS-F56a", "PS-F57b", "PS-F58-256", "PS-564-0"}


def test_queue_groups_of_a_single_tree_follow_from_the_number_of_children():
    """With time to rest between publications, a node with k children sees (k + 1) / 2 packets, a leaf none."""
    point = {"protocol": "srpt", "nodes": 32, "publishers": "100%", "window": 1e6, "seed": 3}
    groups = dict(zip(QUEUE_GROUPS, run_point(point)["queue_groups"], strict=False))
    assert [groups[0], groups[2], groups[4]] == [16, 8 + 4 + 2, 1 + 1]


@pytest.mark.parametrize("system", ["vcube-ps", "srpt"])
def test_the_kernel_has_the_queues_and_latencies_of_the_machines(system):
    seeds = range(1, 31)
    setting = {"protocol": system, "nodes": 64}
    machines = [run_point(setting | {"publishers": "100%", "queued_control": False, "seed": seed}) for seed in seeds]
    kernel = [run_kernel(setting | {"share": 1.0, "seed": seed}) for seed in seeds]
    latency, groups = ([fmean(value(one) for one in runs) for runs in (machines, kernel)] for value in VALUES)
    assert latency[0] == pytest.approx(latency[1], rel=0.02)
    assert groups[0] == pytest.approx(groups[1], abs=2.0)


def test_churn_has_false_positives_and_a_root_that_cannot_follow():
    fast = {"nodes": 512, "subscribers": 500, "session": 3_000.0, "time": 2_000.0, "seed": 1}
    own = run_of_churn({"system": "vcube-ps", **fast, "session": 6_000.0, "time": 1_000.0})
    single = run_of_churn({"system": "srpt", **fast})
    calm = run_of_churn({"system": "srpt", **fast, "session": None})
    assert own["false"] > 0
    assert single["latency"] > 1.2 * calm["latency"]


def crowded(latency: float, wait: float) -> dict:
    return {"calm": {"latency": 500.0, "wait": 0.5}, "crowded": {"latency": latency, "wait": wait}}


@pytest.mark.parametrize(
    ("wait", "crowd", "explains"),
    [
        (0.7, crowded(550.0, 10.2), True),
        (30.0, crowded(550.0, 10.2), False),
        (0.7, crowded(900.0, 10.2), False),
        (0.7, crowded(505.0, 1.0), False),
    ],
    ids=["as the waits", "waits are long already", "grows faster than by waits", "nothing waits"],
)
def test_a_growth_that_follows_the_waits_explains_one_that_does_not(wait, crowd, explains):
    explained = explanations_of_churn({"fast": {"wait": wait}}, crowd)["PS-F511b"]
    assert explained.holds(1.0) is explains
    assert not explained.holds(1.9), "more than the printed waits make"


def latencies_by_hand(function, points):
    """With popular topics 10 % more for VCube-PS in short runs and 20 % in the longest; for SRPT in one run of two."""
    for point in points:
        more = 0.1 if point["system"] == "vcube-ps" else 0.5 * (point["seed"] == 2)
        if point["system"] == "vcube-ps" and point["messages"] == TOPICS_MESSAGES:
            more = 0.2
        yield {"latency": 100 * (1 + more * (point["zipf"] > 0)), "wait": 0.0}


def test_popular_topics_cost_vcube_ps_a_mean_over_runs_of_all_lengths():
    measured = measure_of_topics(latencies_by_hand, [1, 2])
    ours = {finding.claim.name: finding.ours for finding in findings_of_topics(measured)}
    assert ours == pytest.approx({"PS-F510-srpt": 25.0, "PS-F510-ps": 12.5})
    assert [finding.ours for finding in of_the_longest_run(measured)] == pytest.approx([20.0])
    drawn = series_of_topics(measured)
    assert drawn["messages"] == [256, 1024, 4096, 16384]
    assert drawn["latency from the request on, vcube-ps Zipf"] == pytest.approx([110, 110, 110, 120])
    assert not explanations_of_topics(measured)["PS-F510-srpt"].holds(25.0), "shorter pauses cost as much here"
