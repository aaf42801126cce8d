"""What a broker tells people: its tables, which subscription covers which, and what one waits for."""

from random import Random

from cubecast.protocol.brokers.families import BrokerInspector
from cubecast.protocol.brokers.machine import BrokerParameters
from cubecast.protocol.brokers.tree import line
from cubecast.protocol.filters import parse
from protocol.brokers.broker_world import BrokerWorld


def test_tables_coverage_and_why_there_is_no_beginning():
    world = BrokerWorld(BrokerParameters(line(4), 1), Random(1), (1.0, 1.0))
    inspector = BrokerInspector(world.machines[2])
    for topic in ("t", "u"):
        world.publish(0, topic, {})
    world.subscribe(3, "t")
    world.run()
    told = [("crashes survived", "1 of any 3 brokers in a row"), ("neighbours", "1 3")]
    assert inspector.remarks() == [*told, ("tables", "2 advertisements, 1 subscriptions")]
    world.crash(0)
    for node in (1, 2, 3):
        world.suspect(node, 0)
    world.subscribe(2, "t", parse("price >= 10"))
    world.subscribe(2, "u")
    world.run(world.now + 100)
    assert inspector.remarks() == [
        *told,
        ("tables", "2 advertisements, 3 subscriptions"),
        ("suspected", "0"),
        ("t", "covered by subscription 1 of broker 3"),
        ("u", "no beginning yet: broker 0 has not answered for u"),
    ]
