"""How many hops pass until a subscription begins: the numbers of the paper's examples and of its three figures."""

from random import Random

import pytest

from cubecast.errors import BadInput, LocalProtocolError
from cubecast.protocol.brokers.delta import Delta
from cubecast.protocol.brokers.gryphon import Gryphon
from cubecast.protocol.brokers.locaps import Local
from cubecast.protocol.brokers.machine import BrokerParameters, topic_filter
from cubecast.protocol.brokers.packets import Subscribe, SubscriptionId
from cubecast.protocol.brokers.tree import BrokerTree, binary, line
from cubecast.protocol.filters import parse
from protocol.brokers.broker_world import BrokerWorld, Seen

HOP = (1.0, 1.0)


def world_of(tree: BrokerTree, faults: int = 0, make=None) -> BrokerWorld:
    parameters = BrokerParameters(tree, faults)
    return BrokerWorld(parameters, Random(1), HOP) if make is None else BrokerWorld(parameters, Random(1), HOP, make)


def delta(tree: BrokerTree) -> BrokerWorld:
    return world_of(tree, make=lambda node, parameters: Delta(node, parameters.tree))


def gryphon(tree: BrokerTree) -> BrokerWorld:
    return world_of(tree, make=lambda node, parameters: Gryphon(node, parameters.tree))


def hops(world: BrokerWorld, node: int, wanted: str | None = None) -> float:
    """From subscribing to the cut being known, when nothing else goes on."""
    world.run()
    began = world.now
    world.subscribe(node, "t", *([parse(wanted)] if wanted else []))
    seen: Seen = world.subscriptions[-1]
    world.run()
    assert seen.confirmed is not None
    return seen.confirmed - began


def advertised(world: BrokerWorld, publisher: int) -> BrokerWorld:
    world._do(publisher, world.machines[publisher].advertise(world.now, "t"))
    return world


def test_twelve_hops_without_a_pivot_and_four_with_one():
    """§4.4.1: the publisher is six hops away; a covering subscription branches off two hops from the subscriber."""
    tree = BrokerTree([*((n, n + 1) for n in range(6)), (4, 7)])  # publisher 0, subscriber 6, the other one 7
    assert hops(advertised(world_of(tree), 0), 6) == 12
    world = advertised(world_of(tree), 0)
    assert hops(world, 7) == 10
    assert hops(world, 6, "price >= 10") == 4


@pytest.mark.parametrize("depth", [5, 6])
def test_locaps_follows_the_publishers_distance_and_delta_the_diameter(depth: int):
    """Figure 6.1: a publisher five hops from a leaf."""
    tree = binary(depth)
    leaf = (1 << depth) - 1
    publisher = tree.path(leaf, 0)[4]
    assert hops(advertised(world_of(tree), publisher), leaf) == 10
    assert hops(delta(tree), leaf) == 4 * depth


def test_gryphon_climbs_to_the_root_and_back():
    assert hops(gryphon(binary(5)), 31) == 10


@pytest.mark.parametrize("faults", range(5))
def test_a_covered_subscription_waits_for_f_brokers_and_not_for_the_publisher(faults: int):
    """Figure 6.3: covered by one of the same leaf broker; two hops for each fault that is survived."""
    tree = binary(5)
    world = advertised(world_of(tree, faults), 0)
    assert hops(world, 31) == 10
    assert hops_of_second(world, 31) == 2 * faults


def hops_of_second(world: BrokerWorld, node: int) -> float:
    """Another subscription of the same broker that the first one covers."""
    machine, began = world.machines[node], world.now
    second = SubscriptionId(node, 0, 99)
    machine._tables.locals[second] = Local("t")
    machine._substrate.now = world.now
    machine._substrate.post((Subscribe(second, topic_filter("t", parse("price >= 10")).to_wire()), None))
    world._do(node, machine._effects())
    while not machine._tables.settled(second):
        assert world.step(), "it never began"
    return world.now - began


def test_trees_that_are_none_are_refused():
    for edges, why in (
        ([(0, 1), (1, 2), (2, 0)], "cycle"),
        ([(0, 1), (2, 3)], "no link"),
        ([(1, 1)], "itself"),
        ([], "one"),
    ):
        with pytest.raises(BadInput, match=why):
            BrokerTree(edges)
    assert len(line(1)) == 1 and line(4).path(0, 3) == (1, 2, 3)


def test_an_event_outside_its_advertisement_is_refused_and_nothing_published():
    world = world_of(line(2))
    machine = world.machines[0]
    world._do(0, machine.advertise(0.0, "t", "price >= 10"))
    with pytest.raises(LocalProtocolError, match="outside what 't' is advertised with"):
        machine.publish(0.0, "t", [b"x"], {"price": 5})
    world.run()
    assert not machine.waiting() and not world.causes
