"""What the protocol costs, against its bounds."""

import pytest
from bench.cubecast_cost import HOP, Lockstep, join_latency, state_over_time, throughput, traffic, unavailability

from cubecast.protocol.cubecast.parameters import Timer


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
@pytest.mark.parametrize(("nodes", "publications", "batch"), [(8, 20_000, 50), (4, 1_000_000, 1)])
def test_state_does_not_grow_over_a_million_messages(nodes, publications, batch):
    sizes = [size for _, size in state_over_time(nodes, publications, batch, 10)]
    print(f"bytes of the largest node after each tenth of a million messages: {sizes}")
    assert max(sizes) <= 1.1 * sizes[0]


def test_aggregation_saves_packets_where_messages_overtake_each_other():
    off, on = (traffic(32, "uniform", "uniform:10:200", aggregation, seeds=1) for aggregation in ("off", "on"))
    print(f"{off.packets:.2f} packets per delivery, {on.packets:.2f} with aggregation")
    assert on.packets < 0.85 * off.packets
    assert on.latency < 1.02 * off.latency


def test_a_newcomer_delivers_with_the_first_message_that_addresses_it():
    """One hop until the publisher knows, at most the depth of the tree until its next publication arrives."""
    ours, theirs = join_latency("cubecast", 32) / HOP, join_latency("vcube-ps", 32) / HOP
    print(f"cubecast {ours:.1f} hops, VCube-PS with its full wave {theirs:.1f} hops")
    depth = 5
    assert ours <= 1 + depth + 0.5
    assert ours < theirs


@pytest.mark.parametrize(("patience", "victim"), [(2, 8), (4, 8), (4, 15)])
def test_after_a_crash_all_flows_again_within_the_patience_and_a_few_rounds(patience, victim):
    found = unavailability(16, victim, rounds_of_patience=patience)
    print(f"patience {patience} rounds, node {victim} of 16 crashes: {found}")
    assert patience <= found.detected <= patience + 2, "a round until it is tested, a round until it is noticed"
    assert found.delivering <= found.detected + 1
    assert found.stable <= found.detected + 2
