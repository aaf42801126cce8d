"""HyParView alone, what Brisa is compared with, trees that are used by several, and what strangers may ask for."""

from collections import Counter
from random import Random

import pytest

from cubecast.errors import BadInput, LocalProtocolError
from cubecast.protocol.effects import Deliver, Gap, Released, Send
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters, Strategy
from cubecast.protocol.epidemic.brisa_packets import Data, FlowId, Position
from cubecast.protocol.epidemic.hyparview import (
    MOST_REQUESTS,
    MOST_STRANGERS,
    TRIES,
    Accept,
    ForwardJoin,
    Join,
    Neighbour,
    Probe,
    Refuse,
)
from cubecast.sim.config import SimConfig
from cubecast.sim.recorder import Recorder
from cubecast.sim.run import prepare
from cubecast.trace.schema import Kind

NODES, MESSAGES = 48, 20


def ran(protocol: str, **options):
    settings = {"nodes": NODES, "publishers": "1", "messages": MESSAGES, "window": 20_000.0, "until": 60_000.0}
    simulation = prepare(SimConfig(protocol, **(settings | {"propagation": "uniform:1:5", "seed": 3} | options)))
    simulation.world.start()
    simulation.world.run(settings["until"])
    return simulation


@pytest.mark.parametrize("protocol", ["flood", "simple-gossip", "simple-tree", "tag"])
def test_everybody_gets_everything_when_nothing_fails(protocol: str):
    simulation = ran(protocol)
    assert simulation.world.statistics.deliveries == NODES * MESSAGES


def copies(protocol: str) -> float:
    return ran(protocol).world.network.messages / (NODES - 1) / MESSAGES


def test_trees_send_a_copy_per_process_and_floods_and_gossip_several():
    assert copies("simple-tree") == 1
    assert 1 <= copies("tag") < 1.5, "others than the parent are asked now and then"
    assert copies("flood") > 2 and copies("simple-gossip") > 2


def test_an_overlay_stays_connected_when_a_third_of_it_crashes():
    simulation = prepare(SimConfig("hyparview", nodes=NODES, until=60_000.0, seed=5, propagation="uniform:1:5"))
    world = simulation.world
    for victim in Random("victims").sample(range(NODES), NODES // 3):
        world.at(20_000.0, world.crash, victim)
    world.start()
    world.run(60_000.0)
    active = {node: world.machines[node].overlay.active for node in world.present()}
    reached, ahead = {min(active)}, [min(active)]
    while ahead:
        new = active[ahead.pop()].keys() - reached
        reached |= new
        ahead += new
    assert reached == set(world.present())
    assert all(node in active[peer] for node, its in active.items() for peer in its)


def test_who_is_near_a_root_publishes_along_its_tree_and_everybody_gets_it():
    """At depth up to 2 no tree is grown: messages go up and down the one that is there, one copy for each process."""
    rows: list = []
    simulation = prepare(
        SimConfig(
            "brisa", nodes=NODES, publishers="1", messages=MESSAGES, window=10_000.0, until=60_000.0, seed=3,
            propagation="uniform:1:5", settings={"reuse": "2"},
        ),
        Recorder(rows, packets=False),
    )  # fmt: skip
    world, (root,) = simulation.world, simulation.publishers
    world.start()
    world.run(15_000.0)
    near = next(node for node, machine in world.machines.items() if any(f.depth == 2 for f in machine.flows.values()))
    before = world.network.messages
    for number in range(10):
        world.publish(near, "t", [b"%d" % number])
        world.run(15_000.0 + 100 * number)
    assert world.network.messages - before <= 10 * (NODES - 1)
    world.run(60_000.0)
    assert all({key.root for key in machine.flows} == {root} for machine in world.machines.values())
    heard = Counter(row.node for row in rows if row.kind == Kind.DELIVER and row.source == near)
    assert heard == dict.fromkeys(range(NODES), 10)


def test_what_goes_along_anothers_tree_is_fetched_where_it_did_not_come():
    simulation = prepare(
        SimConfig(
            "brisa", nodes=NODES, publishers="1", messages=MESSAGES, window=10_000.0, until=90_000.0, seed=4,
            propagation="uniform:1:50", settings={"reuse": "3"},
        )
    )  # fmt: skip
    world, (root,) = simulation.world, simulation.publishers
    world.start()
    world.run(12_000.0)
    near = next(node for node, machine in world.machines.items() if any(f.depth == 2 for f in machine.flows.values()))
    rng = Random("breaks")
    for number in range(40):
        world.at(12_000.0 + 100 * number, world.publish, near, "t", [b"%d" % number])
    for victim in rng.sample([node for node in world.nodes if node not in (root, near)], 12):
        world.at(rng.uniform(12_000, 16_000), world.crash, victim)
    world.run(90_000.0)
    has = {node: [guest.have for guest in world.machines[node].guests.all.values()] for node in world.present()}
    assert has == {node: [40] for node in world.present()}


# One process, step by step


def process(**parameters) -> Brisa:
    machine = Brisa(0, BrisaParameters(**parameters), Random(1), subscribed=["t"])
    machine.on_start(0.0)
    return machine


def sends(effects) -> list[tuple[tuple[int, ...], object]]:
    return [(one.peers, one.packet) for one in effects if isinstance(one, Send)]


def linked(*peers: int, **parameters) -> Brisa:
    machine = process(**parameters)
    for peer in peers:
        machine.on_packet(0.0, peer, Join())
    return machine


def test_what_strangers_may_make_a_process_do_is_limited_between_two_ticks():
    machine = linked(1, 2)
    answers = [sends(machine.on_packet(1.0, 7, Neighbour(high=False))) for _ in range(3 * MOST_REQUESTS)]
    assert sum(map(bool, answers)) == MOST_REQUESTS
    assert not sends(machine.on_packet(1.0, 7, Probe((), {}, {}, answer=False)))
    called = [sends(machine.on_packet(1.0, 1, ForwardJoin(100 + one, 0))) for one in range(3 * MOST_STRANGERS)]
    assert sum(map(bool, called)) == MOST_STRANGERS
    machine.on_timer(1000.0, "tick")
    assert sends(machine.on_packet(1001.0, 7, Neighbour(high=False)))
    assert sends(machine.on_packet(1001.0, 1, ForwardJoin(900, 0)))


def test_refusals_are_followed_by_a_pause_until_the_next_tick():
    """As printed, requests and refusals among processes that have enough links go round and round."""
    machine, asked = linked(1), 0
    for _ in range(20):
        effects = machine.on_packet(1.0, 9, Refuse((20, 21, 22)))
        requests = [(peers, packet) for peers, packet in sends(effects) if isinstance(packet, Neighbour)]
        asked += len(requests)
        for (peer,), _ in requests:
            machine.on_packet(1.0, peer, Refuse(()))
    assert 1 <= asked <= TRIES
    assert any(isinstance(packet, Neighbour) for _, packet in sends(machine.on_timer(1000.0, "tick")))


def test_links_that_carry_a_stream_are_the_last_to_be_given_up():
    machine = linked(1, 2, 3, 4, view=4, expansion=1.0)
    flow = FlowId("t", 9, 0)
    machine.on_packet(1.0, 1, Data(flow, 1, (b"a",), Position(0.0, 0, (9,), 1.0), False, ()))
    for peer in (2, 3, 4):  # links that were told to stop, both ways
        machine.on_packet(1.0, peer, Data(flow, 1, (b"a",), Position(0.0, 0, (9,), 1.0), False, ()))
    for newcomer in range(5, 8):
        machine.on_packet(2.0, newcomer, Join())
    assert 1 in machine.overlay.active and machine.flows[flow].primary == 1


def test_a_full_link_is_passed_over_and_gets_the_rest_when_it_has_room():
    machine = linked(1, 2)
    machine.publish(1.0, "t", [b"1"])
    machine.on_link_full(2.0, 1, True)
    for number in range(2, 5):
        effects = machine.publish(float(number), "t", [b"%d" % number])
        assert [peers for peers, _ in sends(effects)] == [(2,)]
        assert any(isinstance(one, Released) for one in effects), "one slow child holds nobody up"
    brought = [packet for peers, packet in sends(machine.on_link_full(9.0, 1, False)) if peers == (1,)]
    assert [(one.first, one.payloads) for one in brought] == [(2, (b"2",)), (3, (b"3",)), (4, (b"4",))]
    assert [peers for peers, _ in sends(machine.publish(10.0, "t", [b"5"]))] == [(1, 2)]


def test_a_publisher_waits_while_no_childs_link_has_room():
    machine = linked(1, 2)
    machine.publish(1.0, "t", [b"1"])
    for peer in (1, 2):
        machine.on_link_full(2.0, peer, True)
    assert not [one for one in machine.publish(3.0, "t", [b"2"]) if isinstance(one, Released)]
    effects = machine.on_link_full(4.0, 2, False)
    assert [one for one in effects if isinstance(one, Released)] == [Released("t", 2)]


def test_a_subscriber_that_does_not_read_holds_nobody_up_and_is_told_what_it_missed():
    machine = linked(1, 2, buffer=4)
    machine.publish(1.0, "t", [b"1"])
    machine.on_reader(2.0, "t", False)
    for number in range(2, 12):
        effects = machine.publish(float(number), "t", [b"%d" % number])
        assert sends(effects) and not [one for one in effects if isinstance(one, Deliver)]
    effects = machine.on_reader(20.0, "t", True)
    (gap,) = [one for one in effects if isinstance(one, Gap)]
    assert [one.counter for one in gap.missing] == list(range(2, 8))
    assert [one.message.counter for one in effects if isinstance(one, Deliver)] == [8, 9, 10, 11]
    assert [one for one in machine.publish(21.0, "t", [b"12"]) if isinstance(one, Deliver)]


def test_buffers_are_bounded_in_bytes():
    machine = linked(1, buffer_bytes=4096)
    for _ in range(20):
        machine.publish(1.0, "t", [bytes(1000)])
    (flow,) = machine.flows.values()
    assert flow.kept.bytes <= 4096 and flow.kept.messages == 4


def test_a_message_that_no_buffer_holds_is_refused_and_nothing_is_published():
    machine = linked(1, buffer_bytes=4096)
    with pytest.raises(
        LocalProtocolError, match=r"5000 bytes does not fit a flow's buffer of 4096; raise buffer_bytes"
    ):
        machine.publish(1.0, "t", [bytes(5000)])
    assert not machine.flows


def test_more_parents_than_links_are_refused():
    with pytest.raises(BadInput, match=r"parents is 5, and a process keeps only 4 links: raise view"):
        BrisaParameters(parents=5)


def test_a_heterogeneity_aware_process_prefers_the_one_with_more_bandwidth():
    """Fed by a slow one first, a duplicate from a fast one at the same depth swaps them."""
    aware = Strategy.HETEROGENEITY_AWARE
    slow, fast = (linked(1, strategy=aware, bandwidth=width).own_cost(3) for width in (1.0, 4.0))
    assert fast < slow
    machine, flow = linked(1, 2, strategy=aware), FlowId("t", 9, 0)
    for peer, cost in ((1, slow), (2, fast)):
        machine.on_packet(1.0, peer, Data(flow, 1, (b"a",), Position(0.0, 0, (9,), cost), False, ()))
    assert machine.flows[flow].primary == 2


def test_links_are_kept_when_accepted():
    machine = process()
    assert not machine.overlay.active
    machine.on_packet(1.0, 3, Accept())
    assert not machine.overlay.active, "nobody asked it"
