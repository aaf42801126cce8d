"""Figure 3's placements and hops; VCube-PB is quicker than a fixed tree by its extra hop."""

from dataclasses import replace

import numpy as np
import pytest

from cubecast.experiments.parallel import here
from cubecast.experiments.reproduction import Effort, find_experiment
from cubecast.experiments.vcube_pb.reproduce import PUBLISHER, SHARES, SYSTEMS, Curves, run_of_figure_3, subscribers
from cubecast.protocol.families import find
from cubecast.protocol.hypercube.causal_aggregation import Tree
from cubecast.sim.kernels.causal_broadcast import CausalKernel, Queue
from cubecast.sim.network import Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.world import World
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of


@pytest.mark.parametrize(
    ("placement", "expected", "hops"),
    [
        ("neighbours", [0, 1, 2, 4], 1.0),
        ("one per level", [0, 4, 6, 7], 2.0),
        ("all", list(range(8)), 12 / 7),
    ],
)
def test_placements_and_their_hops(placement, expected, hops):
    assert subscribers(placement, 8, 1) == expected
    assert run_of_figure_3({"placement": placement, "nodes": 8, "seed": 1})["hops"] == pytest.approx(hops)


def test_a_share_of_the_nodes_has_the_publisher_among_them():
    drawn = subscribers("25 %", 64, 3)
    assert len(drawn) == 16
    assert drawn[0] == PUBLISHER


def test_a_fixed_tree_is_later_by_the_hop_to_its_root():
    curves = Curves(here, [16], range(1, 9))
    own, fixed = (curves.mean(system, SHARES[0], 16, "delivery") for system in SYSTEMS)
    assert 12 < fixed - own < 20


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_kernel_delivers_when_the_machines_do(system):
    """Receivers take one packet per unit of time, and acknowledgements none; a link has its own delay."""
    nodes, rng = 32, np.random.default_rng(7)
    delays = rng.uniform(10, 20, (nodes, nodes))
    times = np.full(nodes, np.inf)
    times[3:19] = rng.uniform(0, 30, 16)
    family, members = find(system), {"t": list(range(nodes))}
    network = Network(
        nodes, lambda a, b: delays[a, b], processing=0.0, transmission=0.0, queued_control=False, reception=1.0
    )
    make, rows = machines(family, 1, nodes, members["t"], members, {}), []

    def made(node, incarnation):
        machine = make(node, incarnation)
        if system == "srpt":
            machine.topics["t"].root = 0
        return machine

    world = World(members["t"], made, network, codec_of(family), recorder=Recorder(rows, packets=False))
    begin_subscribed(world, family, members)
    for node in range(3, 19):
        world.at(float(times[node]), world.publish, node, "t", (b"",))
    world.start()
    assert world.run()
    expected = np.full((nodes, nodes), np.inf)
    for row in rows:
        if row.kind == Kind.DELIVER:
            expected[row.node, row.source] = row.time
    tree = Tree.SOURCE if system == "vcube-pb" else Tree.SINGLE
    m, k = np.meshgrid(np.arange(nodes), np.arange(nodes), indexing="ij")
    place = k ^ (m if tree is Tree.SOURCE else 0)
    sender = np.where(place == 0, m, k ^ (place & -place))
    free = CausalKernel(nodes, False, tree, queue=Queue.NONE, processing=0.0, transmission=0.0)
    own = delays[sender, k]
    run = replace(free, reception=1.0).simulate(times, own)
    there = np.isfinite(times)
    np.testing.assert_array_equal(run.delivery_times[:, there], expected[:, there])
    later = run.reception_latency - free.simulate(times, own).reception_latency
    assert np.nanmax(later) > 6, "a packet that waits for nobody takes one unit for each of six hops"


def test_the_quick_ledger_has_all_rows_and_no_difference():
    done = find_experiment("vcube-pb")(Effort(quick=True), here)
    assert done.ledger.unexplained() == []
    assert {row["claim"]: row["verdict"] for row in done.ledger.rows()} == {
        "PB-F3": "reproduced",
        "PB-F4-8": "reproduced",
        "PB-F4-2048": "not run",
        "PB-F5": "not run",
    }
