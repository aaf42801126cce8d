"""What the protocol costs, against its bounds."""

import pytest
from bench.cubecast_cost import Lockstep, join_latency, state_over_time, throughput

from cubecast.protocol.vcube.cubecast.timers import Timer


@pytest.mark.parametrize("fifo_links", [True, False], ids=["fifo", "non-fifo"])
def test_a_window_of_64_is_20_times_stop_and_wait(fifo_links):
    slow = throughput(64, 16, 1, fifo_links=fifo_links)
    fast = throughput(64, 192, 64, fifo_links=fifo_links)
    print(f"{slow.time_per_message:.0f} against {fast.time_per_message:.0f} u.t. per message")
    assert slow.time_per_message >= 20 * fast.time_per_message
    assert fast.publications_sent == 63, "every other node receives every publication once"
    assert fast.controls_sent <= 63, "and acknowledges it once at most"


def test_control_bytes_are_the_bit_map_the_barrier_and_a_fixed_header():
    """In the third round everybody's start is stable and no longer repeated."""
    world = Lockstep(32)
    rounds = []
    for _ in range(3):
        world.largest = 0
        for node in range(32):
            world.publish(node, [b"x" * 64])
        rounds.append(world.largest)
    print(f"bytes without payload: {rounds}")
    bit_map, header, entry = 32 // 8, 40, 8
    assert rounds[-1] <= bit_map + header + 32 * entry
    assert rounds[0] <= bit_map + header + 32 * (entry + 5 + bit_map), "until then each names where members start"


def test_a_quiet_system_pays_for_direct_dependencies_only():
    """Publications far apart: what came before is stable, so the barrier is the last message alone."""
    world = Lockstep(8)
    for count in range(40):
        world.publish(count % 2, [b"x"])
        for machine in world.machines:
            for effects in [machine.on_timer(0.0, Timer.RETRY) for _ in range(2)]:
                world._apply(machine.node, effects)
        world.publish(7, [b"x"])
    world.largest = 0
    world.publish(0, [b"x"])
    assert world.largest <= 8 // 8 + 40 + 8 * 8


def test_state_does_not_grow_with_history():
    sizes = [size for _, size in state_over_time(4, 4000, 25, 5)]
    print(f"bytes of the largest node after each 20,000 messages: {sizes}")
    assert max(sizes) <= 1.1 * sizes[0]


@pytest.mark.slow
def test_state_does_not_grow_over_a_million_messages():
    sizes = [size for _, size in state_over_time(8, 20_000, 50, 10)]
    assert max(sizes) <= 1.1 * sizes[0]


def test_a_newcomer_delivers_with_the_first_message_that_addresses_it():
    ours = join_latency("cubecast", 32)
    print(f"cubecast {ours:.0f} u.t., VCube-PS {join_latency('vcube-ps', 32):.0f} u.t.")
    one_hop, depth = 110.0, 5
    assert ours <= one_hop + 10 + depth * one_hop
