"""What causal aggregation promises, over random worlds."""

from random import Random

import numpy as np
import pytest

from cubecast.check import Verdict, check_trace
from cubecast.protocol.hypercube.causal_aggregation import PacketOrder, Tree
from cubecast.sim.config import SimConfig
from cubecast.sim.kernels.causal_broadcast import CausalKernel, Queue
from cubecast.sim.run import simulate_to_memory
from cubecast.trace.reader import Trace
from support.causal_mirror import run_machine

PROPERTIES = ("K0", "P1", "P1b", "P2", "P4", "P5", "P6", "P7", "P8", "P12", "P13")


def draw_config(seed):
    rng = Random(f"causal-broadcast/{seed}")
    return SimConfig(
        rng.choice(("causal-broadcast", "causal-broadcast", "timer-bundling")),
        nodes=2 ** rng.choice((1, 2, 3, 3, 4, 4, 5)),
        publishers="100%",
        messages=rng.randint(1, 4),
        window=rng.choice((10.0, 300.0, 1000.0)),
        topics=rng.choice((1, 1, 2)),
        propagation=rng.choice(("constant:100", "normal:100:25", "normal:100:60", "uniform:1:200")),
        transmission=rng.choice((0.0, 1.0, 5.0)),
        payload_bytes=rng.choice((5, 50, 700)),
        coded=rng.random() < 0.3,
        seed=seed,
    )


def with_settings(config, seed):
    rng = Random(f"causal-broadcast/settings/{seed}")
    if config.protocol == "timer-bundling":
        settings = {"wait": rng.choice(("0", "5", "50"))}
    else:
        settings = {
            "aggregation": rng.choice(("off", "on", "on", "riding")),
            "tree": rng.choice(("source", "source", "single")),
            "order": rng.choice(("arrival", "causal", "whole")),
        }
    return SimConfig(**{**config.to_json(), "settings": settings})


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_random_worlds_keep_every_promise_of_the_reference_checker(first):
    for seed in range(first, first + 25):
        config = with_settings(draw_config(seed), seed)
        info, events, figures = simulate_to_memory(config)
        report = check_trace(Trace(info, events), PROPERTIES)
        assert report.verdict is Verdict.VALID, (seed, config, report.violated(), report.unknown_because)
        assert figures["deliveries"] == config.messages * config.nodes**2, (seed, config)
        assert figures["duplicates"] == 0, (seed, config)


def draws(seed, nodes, per_node):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 500, (nodes, per_node)), axis=1).ravel()
    return times, rng.normal(100, 40, (nodes * per_node, nodes)).clip(0.5)


def unchanged(without, with_):
    """Messages that have the same past in both runs, as has all of their past.

    Aggregation makes some deliveries earlier. A publisher that delivers x a little earlier, just before it publishes,
    publishes a message that depends on x, which it did not otherwise; such a message is another message.
    """
    same = (without.past == with_.past).all(axis=1)
    for m in np.argsort(without.past.sum(axis=1)):  # causes before effects
        same[m] &= same[without.past[m]].all()
    return same


def later_with_aggregation(order, tree, seeds=100):
    """Per seed: which deliveries (node, message) are later, which earlier, and which follow from an own message."""
    for seed in range(seeds):
        nodes, per_node = (8, 16, 32, 64)[seed % 4], 1 + seed % 3
        times, delays = draws(seed, nodes, per_node)
        without, with_ = (
            CausalKernel(nodes, aggregate, tree, order, Queue.NONE, mtu=10**6).simulate(times, delays)
            for aggregate in (False, True)
        )
        assert with_.packets <= without.packets
        same = unchanged(without, with_)
        assert same.mean() > 0.2, "there must be something to compare"
        difference = with_.delivery_times - without.delivery_times
        follows = without.past.reshape(len(times), nodes, per_node).any(axis=2).T
        yield (difference > 0) & same, (difference < 0) & same, follows


@pytest.mark.parametrize("order", [PacketOrder.ARRIVAL, PacketOrder.WHOLE])
def test_nothing_is_delivered_later_with_aggregation_when_nobody_queues(order):
    """Delivery by delivery, on identical draws: the delay a packet takes is that of the message that completed it."""
    faster = 0
    for seed, (later, earlier, _) in enumerate(later_with_aggregation(order, Tree.SOURCE)):
        assert not later.any(), seed
        faster += earlier.sum()
    assert faster > 0, "an effect that leaves again with its cause may even be faster than it was alone"


def test_on_a_single_tree_only_a_publisher_may_get_the_effects_of_its_own_message_later():
    """Nodes above it postpone the effect until the cause comes by, which the publisher alone did not need."""
    slower = 0
    for seed, (later, _, follows) in enumerate(later_with_aggregation(PacketOrder.ARRIVAL, Tree.SINGLE)):
        assert not (later & ~follows).any(), seed
        slower += later.sum()
    assert slower > 0


def test_causes_first_in_a_packet_can_be_later():
    """The order in a packet is not a matter of taste: with causes first the promise of no later delivery breaks."""
    assert any(later.any() for later, _, _ in later_with_aggregation(PacketOrder.CAUSAL, Tree.SOURCE))


@pytest.mark.parametrize("seed", range(20))
def test_each_message_reaches_each_node_once_and_in_at_most_as_many_packets(seed):
    times, delays = draws(seed, 16, 2)
    packets = {}
    for aggregate in (False, True):
        history = run_machine(CausalKernel(16, aggregate, mtu=(300, 1500)[seed % 2]), times, delays)
        arrived = [(receiver, m) for _, receiver, _, messages, _ in history.packets for m in messages]
        assert sorted(arrived) == [(node, m) for node in range(16) for m in range(32) if m // 2 != node]
        packets[aggregate] = len(history.packets)
    assert packets[True] <= packets[False] == 32 * 15
