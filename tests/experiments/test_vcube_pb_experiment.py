"""Figure 3's placements and hops; VCube-PB is quicker than a fixed tree by its extra hop."""

import pytest

from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort, find_experiment
from cubecast.experiments.vcube_pb import figure_3, figure_4


@pytest.mark.parametrize(
    ("placement", "expected", "hops"),
    [
        ("neighbours", [0, 1, 2, 4], 1.0),
        ("one per level", [0, 4, 6, 7], 2.0),
        ("all", list(range(8)), 12 / 7),
    ],
)
def test_placements_and_their_hops(placement, expected, hops):
    assert figure_3.subscribers(placement, 8, 1) == expected
    assert figure_3.run({"placement": placement, "nodes": 8, "seed": 1})["hops"] == pytest.approx(hops)


def test_a_share_of_the_nodes_has_the_publisher_among_them():
    drawn = figure_3.subscribers("25 %", 64, 3)
    assert len(drawn) == 16
    assert drawn[0] == figure_3.PUBLISHER


def test_a_fixed_tree_is_later_by_the_hop_to_its_root():
    curves = figure_4.Curves(here, [16], range(1, 9))
    own, fixed = (curves.mean(system, "25%", 16, "delivery") for system in figure_4.SYSTEMS)
    assert 12 < fixed - own < 20


def test_the_quick_ledger_has_all_rows_and_no_difference():
    done = find_experiment("vcube-pb")(Effort(quick=True, runs=6), here)
    assert done.ledger.unexplained() == []
    assert {row["claim"]: row["verdict"] for row in done.ledger.rows()} == {
        "PB-F3": "reproduced",
        "PB-F4-8": "reproduced",
        "PB-F4-2048": "not run",
        "PB-F5": "not run",
    }
