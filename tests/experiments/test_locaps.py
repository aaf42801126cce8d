"""The latencies of chapter 6, at sizes a test can afford; and what a wrong rule would give is seen."""

from dataclasses import replace

from cubecast.experiments.locaps.latency import leaf, on_binary_tree, subscription_latencies
from cubecast.experiments.locaps.reproduce import figure_6_3, findings_of_hops, reproduce
from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort


def test_all_claims_are_reproduced_at_quick_sizes():
    done = reproduce(Effort(quick=True), here)
    assert [row["verdict"] for row in done.ledger.rows()] == ["reproduced"] * 7
    assert {"LO-HOP-12", "LO-HOP-4", "LO-F61a", "LO-F61b", "LO-F62a", "LO-F62b", "LO-F63a"} == {
        finding.claim.name for finding in done.ledger.findings
    }


def test_without_covering_the_pivot_is_passed_and_the_claim_fails():
    point = on_binary_tree("locaps", 5, 0, leaf(5), faults=1, covering="false")
    assert subscription_latencies(here, [point]) == [500.0]


def test_a_curve_that_is_off_at_one_point_does_not_hold():
    figure = figure_6_3(here, 3, 1)
    assert figure.finding().within
    moved = replace(figure, ours={**figure.ours, "LoCaPS": [0.0, 150.0]})
    assert not moved.finding().within and moved.finding().ours == 50


def test_the_two_printed_hop_counts():
    assert [finding.ours for finding in findings_of_hops(here)] == [12, 4]
