"""Aggregation in whole worlds: with it and without, every link as slow as ever, and no queues."""

from collections import Counter
from random import Random

import pytest

from cubecast.protocol.cubecast.packets import Ack, Convoy
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.families import find
from cubecast.sim.network import Network
from cubecast.sim.scenario import machines
from cubecast.sim.world import World
from cubecast.wire.codec import codec_of


class Counted(Network):
    """Links with a delay of their own each, the same for every packet; nothing waits for its transmission."""

    def __init__(self, size, delays):
        super().__init__(size, lambda source, destination: delays[source, destination], 1.0, 0.0)
        self.sent = Counter()

    def carry(self, now, source, destinations, packet):
        self.sent[type(packet)] += len(destinations)
        super().carry(now, source, destinations, packet)


def run(seed, aggregation):
    """A random reactive conversation; (packets by kind, time of every delivery)."""
    rng = Random(seed)
    size = rng.choice((8, 16, 16))
    nodes = sorted(rng.sample(range(size), rng.randint(3, size)))
    members = sorted(rng.sample(nodes, rng.randint(2, len(nodes))))
    delays = {(i, j): rng.uniform(1, 200) for i in nodes for j in nodes}
    chatty = rng.choice((0.0, 0.05, 0.15))
    given = {"aggregation": aggregation, "window": "1000", "max_batch": "1", "retry": "1000000.0"}
    family = find("cubecast")
    make = machines(family, seed, size, nodes, {"t": members}, given)
    world = World(nodes, make, Counted(size, delays), codec_of(family), careful=seed % 5 == 0)
    for node in members:
        world.subscriptions[node].add("t")
    times = {}

    def note(now, node, effect):
        times[node, effect.message] = now
        answer = Random(f"{seed} {node} {effect.message}")  # the same in both worlds, in whatever order
        if effect.message.source != node and effect.message.counter < 4 and answer.random() < chatty:
            world.at(now + answer.uniform(0, 100), world.publish, node, "t", (b"re",))

    world.on_deliver = note
    for _ in range(rng.randint(10, 50)):
        world.at(rng.uniform(0, 250), world.publish, rng.choice(members), "t", (b"x",))
    world.start()
    world.run()
    return world.network.sent, times


@pytest.mark.parametrize("block", range(2))
def test_fewer_packets_and_nothing_later(block):
    convoys = 0
    for seed in range(block * 15, block * 15 + 15):
        without, earlier = run(seed, "off")
        with_, times = run(seed, "on")
        assert times.keys() == earlier.keys(), seed
        late = [key for key in times if times[key] > earlier[key] + 1e-6]
        assert not late, (seed, late[0], times[late[0]], earlier[late[0]])
        assert with_[Publication] + with_[Convoy] <= without[Publication], seed
        assert with_[Ack] <= without[Ack], seed
        convoys += with_[Convoy]
    print(f"{convoys} convoys")
    assert convoys > 50
