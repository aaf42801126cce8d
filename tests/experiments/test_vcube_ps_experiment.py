"""The chapter's claims hold in its quick form; the queue groups are cut as Table 5.1 prints them."""

from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort, find_experiment
from cubecast.experiments.vcube_ps.point import QUEUE_GROUPS, run_point


def test_the_quick_reproduction_finds_every_claim_within_its_tolerance():
    done = find_experiment("vcube-ps")(Effort(runs=2, quick=True, seed=1), here)
    assert done.ledger.unexplained() == []
    assert {row["claim"] for row in done.ledger.rows()} >= {"PS-F56a", "PS-F56b", "PS-F57b", "PS-F58-256"}


def test_queue_groups_of_a_single_tree_follow_from_the_number_of_children():
    """With time to rest between publications, a node with k children sees (k + 1) / 2 packets, a leaf none."""
    point = {"protocol": "srpt", "nodes": 32, "publishers": "100%", "window": 1e6, "seed": 3}
    groups = dict(zip(QUEUE_GROUPS, run_point(point)["queue_groups"], strict=False))
    assert [groups[0], groups[2], groups[4]] == [16, 8 + 4 + 2, 1 + 1]
