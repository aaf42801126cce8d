"""Chapter 4 of M. Matos's thesis at small sizes: what the points measure, and that every claim has its finding."""

import pytest

from cubecast.experiments.brisa import churn, comparison, structure
from cubecast.experiments.brisa.reproduce import reproduce
from cubecast.experiments.brisa.scene import Scene, quantile
from cubecast.experiments.ledger import claims_of
from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort

NODES = 48


def test_a_flood_brings_everybody_more_copies_with_larger_views():
    small, large = (structure.flood({"nodes": NODES, "view": view, "expansion": 1, "seed": 1}) for view in (4, 10))
    assert 1 < small["median"] < large["median"]


def test_a_tree_has_one_parent_for_everybody_and_leaves():
    figures = structure.shape({"nodes": NODES, "settings": {"view": 4}, "seed": 1})
    links = sum(share * count for count, share in enumerate(figures["children_share"])) * NODES
    assert round(links, 6) == NODES - 1
    assert 20 < figures["leaves"][0] < 90 and figures["depth"][2] < 15


def test_parents_that_fail_are_counted_and_everybody_left_gets_everything():
    (point, *_) = churn.points((NODES,), (5,), range(1, 2), 4.0, 1000.0)
    figures = churn.run(point)
    assert figures["complete"]
    failed = 0.05 * NODES
    assert 0.3 * failed < figures["lost"] < 3 * failed, "as many as failed processes have children"
    assert figures["orphans"] == figures["lost"]


def test_latencies_of_the_systems_are_those_of_their_way_to_spread():
    base = {"nodes": 24, "messages": 50, "size": 100, "seed": 1}
    seconds = {
        name: comparison.disseminate(base | {"system": it})["seconds"] for name, it in comparison.SYSTEMS.items()
    }
    assert all(abs(seconds[name] - 9.8) < 0.3 for name in ("SimpleTree", "Brisa", "SimpleGossip"))
    assert 17 < seconds["TAG"] < 21, "one message per pull of 0.4 s"


def test_packets_that_cost_a_shared_machine_time_slow_gossip_down():
    base = {"nodes": 24, "messages": 50, "size": 100, "seed": 1, "system": "simple-gossip"}
    quiet, busy = (comparison.disseminate(base | {"packet_cost": cost})["seconds"] for cost in (0.0, 60.0))
    assert busy > 1.2 * quiet


def test_planetlab_pairs_keep_their_delay():
    scene = Scene("hyparview", 4, seed=1, network="planetlab")
    delay = scene.world.network.propagation
    assert delay(1, 2) == delay(2, 1) == delay(1, 2) != delay(1, 3)
    drawn = [delay(one, other) for one in range(60) for other in range(one)]
    assert 32 < quantile(drawn, 0.5) < 50


@pytest.mark.slow
def test_every_claim_of_the_chapter_is_found_or_said_not_to_be_run():
    """The whole of `reproduce brisa --quick`, with points of a size that takes no time."""

    def tiny(function, points):
        small = {"nodes": 32, "messages": 16}
        return here(function, [{**one, **{key: small[key] for key in small if key in one}} for one in points])

    done = reproduce(Effort(quick=True), tiny)
    found = {finding.claim.name for finding in done.ledger.findings}
    missing = {one.name for one in done.ledger.not_run}
    assert found | missing == {one.name for one in claims_of("brisa")} and not found & missing
    assert {name for name in missing if "-512-" not in name and "-5-" not in name} <= {
        *("BR-F47-DAG", "BR-F48-DAG", "BR-F415", "BR-F419"),
        *("BR-T41-128-3-tree-soft", "BR-T41-128-3-DAG-soft"),
    }


def churned(lost: int, hard: int, *, soft: int = 0) -> dict:
    return {"lost": lost / 10, "orphans": 1.0, "minutes": 10.0, "complete": True} | {
        "hard_delays": [1.0] * hard,
        "soft_delays": [1.0] * soft,
    }


def test_soft_repairs_are_a_share_of_the_lost_parents():
    runs = {(128, 3, "tree"): [churned(60, 6, soft=54)], (128, 3, "DAG"): [churned(40, 2, soft=1), churned(60, 3)]}
    found = {finding.claim.name: finding for finding in churn.findings(runs)}
    assert (found["BR-T41-128-3-tree-soft"].ours, found["BR-T41-128-3-DAG-soft"].ours) == (90, 95)
    assert "100 parents lost; of orphans 1 had a soft repair and 5 a hard one" in found["BR-T41-128-3-DAG-soft"].note


def test_a_printed_share_of_few_repairs_explains_what_they_may_have_by_chance():
    explained = churn.explanations({(128, 5, "tree"): [churned(60, 6)]})["BR-T41-128-5-tree-soft"]
    assert explained.holds(90.0)
    assert not churn.explanations({(128, 5, "tree"): [churned(60, 3)]})["BR-T41-128-5-tree-soft"].holds(95.0)
