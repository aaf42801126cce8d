"""The kernel does what the machine does, event for event."""

import numpy as np
import pytest

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.causal_aggregation import PacketOrder, Tree
from cubecast.sim.kernels.causal_broadcast import CausalKernel, Queue
from support.causal_mirror import history_of, run_machine


def draw_configuration(seed):
    """A random configuration and its draws."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.choice([2, 4, 8, 16, 32], p=[0.05, 0.1, 0.3, 0.35, 0.2]))
    per_node = int(rng.choice([1, 2, 5], p=[0.5, 0.25, 0.25]))
    aggregate = bool(rng.random() < 0.7)
    kernel = CausalKernel(
        nodes,
        aggregate=aggregate,
        reception=0.0 if aggregate else float(rng.choice([0.0, 1.0, 4.0])),
        tree=Tree(rng.choice(["source", "single"], p=[0.7, 0.3])),
        order=PacketOrder(rng.choice(["arrival", "causal", "whole"])),
        queue=Queue(rng.choice(["node", "link", "none"], p=[0.6, 0.2, 0.2])),
        processing=float(rng.choice([0.0, 1.0, 2.5])),
        transmission=float(rng.choice([0.0, 1.0, 4.0])),
        payload_bytes=int(rng.choice([5, 50, 500])),
        mtu=int(rng.choice([200, 1500, 10**6])),
    )
    window = float(rng.choice([50, 500, 2000]))
    times = np.sort(rng.uniform(0, window, (nodes, per_node)), axis=1).ravel()
    shape = (nodes * per_node, nodes)
    if rng.random() < 0.2:  # equal times happen, and must be ordered alike
        times, delays = np.floor(times / 10) * 10, rng.integers(1, 4, shape) * 50.0
    else:
        delays = rng.normal(100, rng.choice([5, 25, 50]), shape).clip(0.01)
    return kernel, times, delays


@pytest.mark.parametrize("block", range(10))
def test_same_packets_times_and_deliveries_as_the_machine(block):
    aggregated = waited = 0
    for seed in range(block * 40, block * 40 + 40):
        kernel, times, delays = draw_configuration(seed)
        expected = run_machine(kernel, times, delays)
        run = kernel.simulate(times, delays)
        actual = history_of(run, times)
        assert run.complete(), (seed, kernel)
        assert actual.packets == expected.packets, (seed, kernel)
        assert sorted(actual.deliveries) == sorted(expected.deliveries), (seed, kernel)
        aggregated += sum(len(packet[3]) > 1 for packet in actual.packets)
        waited += kernel.reception > 0
    assert aggregated > 100
    assert waited >= 3


def test_same_at_a_size_where_queues_matter():
    rng = np.random.default_rng(1)
    kernel = CausalKernel(128, transmission=10.0)
    times, delays = rng.uniform(0, 500, 128), rng.normal(100, 25, (128, 128)).clip(0.01)
    expected, run = run_machine(kernel, times, delays), kernel.simulate(times, delays)
    actual = history_of(run, times)
    assert actual.packets == expected.packets
    assert sorted(actual.deliveries) == sorted(expected.deliveries)
    assert run.mean_wait > 10


def test_refuses_draws_that_do_not_fit():
    kernel = CausalKernel(8)
    with pytest.raises(BadInput, match="equally many messages"):
        kernel.simulate(np.zeros(9), np.ones((9, 8)))
    with pytest.raises(BadInput, match="only without aggregation"):
        CausalKernel(8, reception=1.0).simulate(np.zeros(8), np.ones((8, 8)))
    with pytest.raises(BadInput, match="positive"):
        kernel.simulate(np.zeros(8), np.zeros((8, 8)))
