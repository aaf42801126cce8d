"""Worlds made by hand, each for a correction that random ones hardly ever need."""

from random import Random

from cubecast.protocol.brokers.machine import BrokerParameters
from cubecast.protocol.brokers.tree import BrokerTree, line
from protocol.brokers.broker_world import BrokerWorld

HOP = 10.0


def world_of(tree: BrokerTree, faults: int, patience: float = 1000.0, remove_after: float = 1e6) -> BrokerWorld:
    parameters = BrokerParameters(tree, faults, patience=patience, remove_after=remove_after)
    return BrokerWorld(parameters, Random(1), (HOP, HOP))


def slow(world: BrokerWorld, node: int, factor: float) -> None:
    """In both directions, to everybody."""
    for peer in world.parameters.tree.neighbours:
        if peer != node:
            world.slow[frozenset((node, peer))] = factor


def effect_before_an_undecided_cause() -> BrokerWorld:
    """C10: broker 2 is slow, and broker 1 doubts it. Of the partial markers that tell where the subscription of broker
    5 begins, that of broker 3 comes soon and that of broker 2 late. An event of broker 0, which goes around broker 2,
    and its effect come in between."""
    world = world_of(BrokerTree([(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)]), 1)
    world.publish(0, "t", {})
    world.subscribe(4, "t")
    world.publish(4, "t", {})
    world.run()
    begin = world.now
    world.at(begin + 1, lambda: slow(world, 2, 100))
    world.at(begin + 5, lambda: world.suspect(1, 2))
    world.at(begin + 30, lambda: world.subscribe(5, "t"))
    world.at(begin + 55, lambda: world.publish(0, "t", {}))
    world.at(begin + 120, lambda: world.publish(4, "t", {}))
    return world


def a_late_number_behind_an_early_one() -> BrokerWorld:
    """C3: broker 5 doubts broker 0 and goes around it, which orders what passes in another way than broker 1 does. The
    numbers it gives late come to broker 2 before anything else, since broker 2 was cut off from broker 1. No broker
    asks for anything because time passed."""
    world = world_of(BrokerTree([(0, 1), (0, 4), (0, 5), (1, 2)]), 2, patience=1e9)
    world.publish(4, "t", {})
    world.publish(5, "t", {})
    world.subscribe(2, "t")
    world.run()
    begin, link = world.now, frozenset((1, 2))
    world.at(begin, lambda: world.suspect(5, 0))
    world.at(begin, lambda: world.cut_off.add(link))
    for one, other in ((1, 2), (2, 1)):
        world.at(begin, lambda n=one, p=other: world.suspect(n, p))
        world.at(begin + 300, lambda n=one, p=other: world.trust(n, p))
    world.at(begin + 30, lambda: world.publish(5, "t", {}))
    world.at(begin + 70, lambda: world.publish(4, "t", {}))
    world.at(begin + 100, lambda: world.trust(5, 0))
    world.at(begin + 290, lambda: world.cut_off.clear())
    return world


def a_bypassed_broker_that_catches_up() -> BrokerWorld:
    """C6: broker 0 doubts broker 1 and goes around it. Broker 1 gets the event later, gives it a number for broker 3,
    and publishes. No broker asks for anything because time passed."""
    world = world_of(line(4), 1, patience=1e9)
    for node in (0, 1):
        world.publish(node, "t", {})
    world.subscribe(3, "t")
    world.run()
    begin = world.now
    world.at(begin, lambda: world.suspect(0, 1))
    world.at(begin + 50, lambda: world.publish(0, "t", {}))
    world.at(begin + 200, lambda: world.trust(0, 1))
    world.at(begin + 300, lambda: world.publish(1, "t", {}))
    return world


def sent_between_crash_and_suspicion() -> BrokerWorld:
    """C7: broker 2 asked already when broker 0 still sends to broker 1, which crashed."""
    world = world_of(line(3), 1)
    world.publish(0, "t", {})
    world.subscribe(2, "t")
    world.run()
    begin = world.now
    world.at(begin, lambda: world.crash(1))
    world.at(begin + 10, lambda: world.suspect(2, 1))
    world.at(begin + 50, lambda: world.publish(0, "t", {}))
    world.at(begin + 100, lambda: world.suspect(0, 1))
    return world


def only_one_branch_has_it(arrives_late: bool = False) -> BrokerWorld:
    """C7: broker 1 crashed when its event was on the way to broker 0 and not to broker 2. Broker 0 publishes an effect;
    nothing is on its own way to broker 2 that it could send again."""
    world = world_of(line(3), 1)
    world.publish(1, "t", {})
    for node in (0, 2):
        world.subscribe(node, "t")
    world.publish(0, "t", {})
    world.run()
    begin, late = world.now, 20.0 if arrives_late else 1.0
    world.at(begin, lambda: world.slow.update({frozenset((0, 1)): late}))
    world.at(begin, lambda: world.cut_off.add(frozenset((1, 2))))
    world.at(begin, lambda: world.publish(1, "t", {}))
    world.at(begin + 1, lambda: world.crash(1))
    for node in (0, 2):
        world.at(begin + 50, lambda n=node: world.suspect(n, 1))
    world.at(begin + 300, lambda: world.publish(0, "t", {}))
    return world


def the_branch_that_has_it_gets_it_late() -> BrokerWorld:
    return only_one_branch_has_it(arrives_late=True)


def an_effect_by_a_new_publisher() -> BrokerWorld:
    """C12: broker 3 does not know of the subscription of broker 2 when its client reads an event and answers."""
    world = world_of(BrokerTree([(0, 1), (1, 2), (1, 3)]), 0)
    world.publish(0, "t", {})
    for node in (2, 3):
        world.subscribe(node, "t")
    world.run()
    world.publish(0, "t", {})
    world.run()
    world.publish(3, "t", {})
    return world


def two_publishers_behind_a_pivot() -> BrokerWorld:
    """C15: where the subscription of broker 5 begins, brokers 3 and 2 tell, broker 2 late, which is slow and doubted.
    The publisher at broker 6, which answers an event of broker 0, tells itself before that; broker 0 tells last."""
    world = world_of(BrokerTree([(0, 1), (1, 2), (2, 3), (2, 6), (3, 4), (3, 5)]), 1)
    for node in (0, 6):
        world.publish(node, "t", {})
    for node in (4, 6):
        world.subscribe(node, "t")
    world.run()
    begin = world.now
    world.at(begin, lambda: slow(world, 2, 20))
    for node, trusts in ((3, 100), (1, 150), (6, 150)):
        world.at(begin, lambda n=node: world.suspect(n, 2))
        world.at(begin + trusts, lambda n=node: world.trust(n, 2))
    world.at(begin + 20, lambda: world.publish(0, "t", {}))
    world.at(begin + 25, lambda: world.subscribe(5, "t"))
    world.at(begin + 35, lambda: world.slow.update({frozenset((0, 1)): 1000.0}))
    world.at(begin + 42, lambda: world.publish(6, "t", {}))
    return world


def an_end_that_overtakes() -> BrokerWorld:
    """Broker 3 is slow, and broker 2 doubts it: it hears of a subscription before it hears of an event and of the end
    of its publisher, which went around it to the broker of the subscription."""
    world = world_of(BrokerTree([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (3, 6)]), 1)
    world.publish(0, "t", {})
    world.subscribe(6, "t")
    world.run()
    begin = world.now
    world.at(begin, lambda: slow(world, 3, 100))
    world.at(begin + 1, lambda: world.suspect(2, 3))
    world.at(begin + 10, lambda: world.publish(0, "t", {}))
    world.at(begin + 20, lambda: world.subscribe(5, "t"))
    world.at(begin + 30, lambda: world.unadvertise(0, "t"))
    world.at(begin + 200, lambda: world.trust(2, 3))
    return world


def a_publishers_broker_that_dies_far_away() -> BrokerWorld:
    """Broker 6 has an event of broker 0 and does not know whether its subscription begins before it. Broker 3, which
    would tell, is dead; broker 0, which could, dies, and broker 6 is too far away to hear of that from itself."""
    world = world_of(BrokerTree([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6)]), 1, remove_after=5000.0)
    world.publish(0, "t", {})
    world.subscribe(5, "t")
    world.run()
    begin = world.now
    for node, time in ((3, 0.0), (0, 45.0)):
        world.at(begin + time, lambda n=node: world.crash(n))
        for peer in world.parameters.tree.within(node, 3):
            world.at(begin + time + 20, lambda n=node, p=peer: world.suspect(p, n))
    world.at(begin + 30, lambda: world.publish(0, "t", {}))
    world.at(begin + 40, lambda: world.subscribe(6, "t"))
    return world
