"""The kernel does what the machines of VCube-PS and SRPT do, reception for reception."""

from dataclasses import replace

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.protocol.families import find
from cubecast.sim.kernels.tree_flood import Messages, TreeFlood
from cubecast.sim.network import Constant, Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.world import World
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of


class LinkQueues(Network):
    def carry_one(self, now, source, destination, packet):
        if not packet.publication:
            return super().carry_one(now, source, destination, packet)
        free = self.__dict__.setdefault("free_link", {})
        self.free_at[source] = free.get((source, destination), 0.0)
        copies = super().carry_one(now, source, destination, packet)
        free[source, destination] = self.free_at[source]
        return copies


def draw(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.choice([2, 4, 8, 16, 32]))
    own_trees = bool(rng.random() < 0.5)
    kernel = TreeFlood(
        nodes,
        acknowledged=own_trees,
        per_link=own_trees and bool(rng.random() < 0.3),
        processing=float(rng.choice([0.0, 1.0, 2.5])),
        transmission=float(rng.choice([1.0, 4.0])),
        propagation=float(rng.choice([5.0, 100.0])),
    )
    count, topics = int(rng.integers(1, 80)), int(rng.integers(1, 5))
    topic, source = rng.integers(topics, size=count), rng.integers(nodes, size=count)
    roots = rng.integers(nodes, size=topics)
    times = rng.uniform(0, float(rng.choice([20, 500, 5000])), count)
    order = np.lexsort((times, source))
    times, topic, source = times[order], topic[order], source[order]
    return kernel, Messages(times, source, source if kernel.acknowledged else roots[topic], topic), roots


def run_machines(kernel, messages, roots):
    """When each message began and came, in the order of asking; and the network."""
    family = find("vcube-ps" if kernel.acknowledged else "srpt")
    nodes = range(kernel.nodes)
    names = [f"t{number}" for number in range(len(roots))]
    members = {name: list(nodes) for name in names}
    make, rows = machines(family, 1, kernel.nodes, nodes, members, {}), []
    network = (LinkQueues if kernel.per_link else Network)(
        kernel.nodes, Constant(kernel.propagation), kernel.processing, kernel.transmission, queued_control=False
    )

    def made(node, incarnation):
        machine = make(node, incarnation)
        if not kernel.acknowledged:
            for topic in machine.topics.values():
                topic.root = int(roots[names.index(topic.name)])
        return machine

    world = World(nodes, made, network, codec_of(family), recorder=Recorder(rows))
    begin_subscribed(world, family, members)
    for time, source, topic in zip(messages.times, messages.sources, messages.topics, strict=True):
        world.at(float(time), world.publish, int(source), names[topic], (b"",))
    world.start()
    assert world.run()
    number, asked = {}, {}
    for m in np.argsort(messages.times, kind="stable"):
        key = int(messages.sources[m]), int(messages.topics[m])
        asked[key] = asked.get(key, 0) + 1
        number[key[0], names[key[1]], asked[key]] = int(m)
    begun = np.full(len(messages.times), np.nan)
    received = np.full((len(begun), kernel.nodes), np.nan)
    for row in rows:
        key = row.source, row.topic, row.counter
        if row.kind == Kind.PUBLISH:
            begun[number[key]] = row.time
        elif row.kind == Kind.RECEIVE and row.node != row.source and key in number:
            received[number[key], row.node] = row.time
    return begun, received, network


@pytest.mark.parametrize("block", range(4))
def test_same_receptions_waits_and_beginnings_as_the_machines(block):
    waited = 0
    for seed in range(block * 25, block * 25 + 25):
        kernel, messages, roots = draw(seed)
        begun, received, network = run_machines(kernel, messages, roots)
        run = kernel.simulate(messages)
        np.testing.assert_array_equal(run.begun, begun, f"seed {seed}, {kernel}")
        np.testing.assert_array_equal(run.receptions, received, f"seed {seed}, {kernel}")
        assert run.queued.tolist() == network.queued
        assert run.mean_queue_lengths.tolist() == network.mean_queue_lengths()
        waited += (run.begun > messages.times).sum()
    assert waited > 40


def test_acknowledgements_change_nothing_where_everybody_publishes_once():
    for seed in range(100, 200):
        kernel, messages, _ = draw(seed)
        first = np.unique(messages.sources, return_index=True)[1]
        times, sources = messages.times[first], messages.sources[first]
        once = Messages(times, sources, sources, np.zeros_like(sources))
        runs = [replace(kernel, acknowledged=acknowledged).simulate(once) for acknowledged in (False, True)]
        np.testing.assert_array_equal(runs[0].receptions, runs[1].receptions, f"seed {seed}, {kernel}")
        assert runs[0].queued.tolist() == runs[1].queued.tolist()
        assert runs[0].mean_queue_lengths.tolist() == runs[1].mean_queue_lengths.tolist()


def test_refuses_a_queue_for_each_link_on_the_way_to_a_root():
    source, root, topic = (np.array([one], np.int32) for one in (0, 1, 0))
    with pytest.raises(BadInput, match="begin at its source"):
        TreeFlood(8, per_link=True).simulate(Messages(np.zeros(1), source, root, topic))


def test_refuses_more_messages_than_it_can_number():
    nothing = np.zeros(0, np.int32)
    with pytest.raises(BadInput, match="1 to 32767 messages"):
        TreeFlood(8).simulate(Messages(np.zeros(0), nothing, nothing, nothing))
