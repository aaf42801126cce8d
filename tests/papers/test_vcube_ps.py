"""What the thesis (2019) says of VCube-PS, chapter 5, sentence by sentence in our words."""

from collections.abc import Sequence

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.effects import Deliver, Published, Send
from cubecast.protocol.hypercube.delivery import FirstReception
from cubecast.protocol.hypercube.packets import Operation, OperationAck, Pub, PubAck, Sub
from cubecast.protocol.hypercube.srpt import Brokers, Srpt
from cubecast.protocol.hypercube.subscribers import Roster
from cubecast.protocol.hypercube.topology import children, tree
from cubecast.protocol.hypercube.vcube_ps import VCubePS
from cubecast.protocol.masks import mask_of
from cubecast.sim.run import SimConfig, simulate
from support.script_world import ScriptWorld

EVERYONE = mask_of(range(8))


def world(size: int, topic: str, members: Sequence[int], *options: str) -> ScriptWorld:
    made = ScriptWorld()
    made.execute(" ".join([f"cube {size}", *options]))
    made.execute(f"members {topic} {' '.join(map(str, members))}")
    return made


def play(made: ScriptWorld, *commands: str) -> list[str]:
    return [line for command in commands for line in made.execute(command)]


def sends(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if " sends " in line]


# §5.3 Per-source spanning trees

FIGURE_5_2 = (0, 1, 3, 5, 6)


def test_figure_5_2a_vcube_ps_uses_subscribers_only():
    reached = tree(0, 3, mask_of(FIGURE_5_2))
    assert sorted(reached) == list(FIGURE_5_2)
    assert reached[0] == (1, 3, 5)


def test_figure_5_2_srpt_relays_through_2_and_4_and_needs_a_hop_to_the_root():
    machines = {
        i: Srpt(i, 3, Brokers(EVERYONE, EVERYONE), lambda _: 0, initial={"t": Roster(FIGURE_5_2)}) for i in range(8)
    }
    received: list[int] = []
    worklist = [(6, effect) for effect in machines[6].publish(0, "t", [b"x"])]
    while worklist:
        node, effect = worklist.pop(0)
        for peer in effect.peers if isinstance(effect, Send) else ():
            received.append(peer)
            worklist += [(peer, further) for further in machines[peer].on_packet(0, node, effect.packet)]
    assert received[0] == 0, "the extra hop"
    assert {node for node in received if node not in FIGURE_5_2} == {2, 4}, "the false positives"


def test_section_5_3_without_churn_there_are_no_relays():
    config = {"nodes": 64, "subscribers": "40%", "publishers": "10", "messages": 3, "seed": 7}
    assert simulate(SimConfig("vcube-ps", **config))["false_positives"] == 0
    assert simulate(SimConfig("srpt", **config))["false_positives"] > 0


# §5.4.1 Causal ordering


def test_figure_5_3_barriers_name_direct_dependencies_only():
    """p1 answers p0's message while p2 publishes on its own; then p1 publishes again."""
    made = world(4, "t", (0, 1, 2))
    play(made, "publish 0 t", "deliver 0>1", "publish 2 t")
    assert play(made, "publish 1 t")[0].endswith("1.1 on t after {0.1}")
    lines = play(made, "drain", "publish 1 t")
    published = next(line for line in reversed(lines) if "publishes 1.2" in line)
    assert published.endswith("after {1.1 2.1}"), "0.1 is an indirect dependency and left out"


def test_section_5_4_1_no_node_delivers_a_message_before_one_its_publisher_had_delivered():
    made = world(4, "t", (0, 1, 2))
    lines = play(made, "publish 0 t", "deliver 0>1", "publish 1 t", "deliver 1>2", "drain")
    at_2 = [line.strip() for line in lines if line.strip().startswith("2 delivers")]
    assert at_2 == ["2 delivers 0.1", "2 delivers 1.1"]


def test_section_5_4_topics_are_ordered_apart():
    made = world(4, "t", (0, 1, 2))
    play(made, "members u 0 1 2")
    lines = play(made, "publish 0 t", "deliver 0>1", "publish 1 u", "deliver 1>2")
    assert "  2 delivers 1.1" in lines, "0.1 of the other topic is not waited for"


# §5.4.2 Per-source FIFO reception


def test_section_5_4_2_a_source_sends_its_next_message_after_all_acknowledgements():
    made = world(4, "t", (0, 1, 2, 3))
    play(made, "publish 0 t")
    assert play(made, "publish 0 t") == []
    assert sends(play(made, "deliver 0>1", "deliver 1>0", "deliver 0>2", "deliver 2>3", "deliver 3>2")) == [
        "1 sends ACK of PUB 0.1 to 0",
        "2 sends PUB 0.1 to 3",
        "3 sends ACK of PUB 0.1 to 2",
        "2 sends ACK of PUB 0.1 to 0",
    ]
    assert "  0 publishes 0.2 on t after {0.1}" in play(made, "deliver 2>0")


def test_section_5_4_2_the_first_message_of_a_source_tells_that_earlier_ones_never_come():
    machine = VCubePS(3, 2, 0xF, initial={"t": Roster((0, 1, 2, 3))})
    held = Pub("t", MessageId(1, 0, 2), (b"x",), (MessageId(2, 0, 1),))
    first = Pub("t", MessageId(2, 0, 2), (b"x",), ())
    assert not [e for e in machine.on_packet(0, 1, held) if isinstance(e, Deliver)]
    delivered = [effect.message for effect in machine.on_packet(1, 2, first) if isinstance(effect, Deliver)]
    assert sorted(delivered) == [held.message, first.message]


@pytest.mark.parametrize(("mode", "waits"), [(FirstReception.BLOCK, True), (FirstReception.PASS, False)])
def test_section_5_4_2_against_algorithm_4_line_97_a_source_never_heard_of(mode, waits):
    """The text does not wait for p2's message at p3 in Figure 5.3; the pseudo-code does. Both exist, as a setting."""
    machine = VCubePS(3, 2, 0xF, first_reception=mode, initial={"t": Roster((0, 1, 2, 3))})
    packet = Pub("t", MessageId(1, 0, 1), (b"x",), (MessageId(2, 0, 1),))
    delivered = [e for e in machine.on_packet(0, 1, packet) if isinstance(e, Deliver)]
    assert bool(delivered) is not waits


# §5.5 The algorithms


def test_section_5_5_1_children_examples():
    assert set(children(0, 3, EVERYONE)) == {1, 2, 4}
    assert set(children(0, 2, EVERYONE)) == {1, 2}
    assert set(children(4, 2, EVERYONE)) == {5, 6}
    joined = mask_of([0, 3, 4])
    assert set(children(0, 3, joined)) == {3, 4}
    assert children(4, 2, joined) == ()


def test_section_5_5_1_only_the_acknowledgement_of_a_sub_carries_members():
    made = world(4, "t", (0, 1, 2))
    lines = play(made, "subscribe 3 t", "drain", "unsubscribe 3 t", "drain", "publish 0 t", "drain")
    carrying = [line for line in sends(lines) if " with " in line]
    assert carrying
    assert all("ACK of SUB" in line for line in carrying)


def test_section_5_5_1_deviation_publications_are_numbered_per_topic():
    """DEVIATION shown: one counter for all operations and topics would number these 1, 3 and 4."""
    machine = VCubePS(0, 1, 0b11, initial={"t": Roster((0,)), "u": Roster((0,))})
    counters = [machine.publish(0, topic, [b"x"])[0] for topic in ("t", "u", "t")]
    assert counters == [Published("t", 1, 1, ()), Published("u", 1, 1, ()), Published("t", 2, 1, (MessageId(0, 0, 1),))]


def test_algorithm_3_only_subscribers_publish_and_nobody_joins_or_leaves_twice():
    made = world(4, "t", (0, 1))
    for request in ("publish 2 t", "unsubscribe 2 t", "subscribe 0 t"):
        assert play(made, request)[0].startswith("LocalProtocolError")


def test_figure_5_4_left_the_tree_of_0_among_all_nodes():
    lines = play(world(8, "t1", range(8)), "publish 0 t1", "drain")
    forwards = [line for line in sends(lines) if "PUB" in line and "ACK" not in line]
    assert forwards == [
        "0 sends PUB 0.1 to 1 2 4",
        "2 sends PUB 0.1 to 3",
        "4 sends PUB 0.1 to 5 6",
        "6 sends PUB 0.1 to 7",
    ]


def test_figure_5_4_right_the_tree_of_2_among_0_2_3_5_and_7():
    lines = play(world(8, "t2", (0, 2, 3, 5, 7)), "publish 2 t2", "drain")
    forwards = [line for line in sends(lines) if "PUB" in line and "ACK" not in line]
    assert forwards == ["2 sends PUB 2.1 to 3 0 7", "7 sends PUB 2.1 to 5"]


def test_section_5_5_3_a_subscription_visits_all_nodes_an_unsubscription_only_subscribers():
    made = world(8, "t", (1, 4))
    joining = play(made, "subscribe 0 t", "drain")
    assert {line.split()[0] for line in joining if ">" in line and "SUB of 0" in line and "ACK" not in line} == {
        *("0>1", "0>2", "0>4", "2>3", "4>5", "4>6", "6>7"),
    }
    leaving = play(made, "unsubscribe 0 t", "drain")
    assert {line.split()[0] for line in leaving if ">" in line and "UNS of 0" in line and "ACK" not in line} == {
        *("0>1", "0>4"),
    }


def test_section_5_5_3_a_node_acknowledges_after_all_its_children():
    machine = VCubePS(4, 3, 0xFF, initial={"t": Roster(range(8))})
    packet = Pub("t", MessageId(0, 0, 1), (b"x",), ())
    machine.on_packet(0, 0, packet)
    assert machine.on_packet(1, 5, PubAck("t", packet.message)) == []
    assert machine.on_packet(2, 6, PubAck("t", packet.message)) == [Send((0,), PubAck("t", packet.message))]


def test_section_5_5_4_one_delivery_can_free_a_chain():
    machine = VCubePS(1, 1, 0b11, initial={"t": Roster((0, 1))})
    ids = [MessageId(0, 0, counter) for counter in (1, 2, 3)]
    chain = [Pub("t", ids[k], (b"x",), tuple(ids[max(0, k - 1) : k])) for k in range(3)]
    machine.on_packet(0, 0, Pub("t", MessageId(2, 0, 1), (b"x",), (MessageId(0, 0, 3),)))
    freed = [e.message.source for p in chain for e in machine.on_packet(0, 0, p) if isinstance(e, Deliver)]
    assert freed == [0, 0, 0, 2]


# §5.5.5 Membership


def test_figure_5_5_the_wave_of_acknowledgements_gathers_1_4_5_and_6():
    made = world(8, "t", (1, 4, 5, 6))
    lines = play(made, "subscribe 0 t", "drain")
    up = [line for line in sends(lines) if "ACK" in line]
    assert set(up) == {
        "1 sends ACK of SUB of 0 with 1 to 0",
        "3 sends ACK of SUB of 0 to 2",
        "2 sends ACK of SUB of 0 to 0",
        "5 sends ACK of SUB of 0 with 5 to 4",
        "7 sends ACK of SUB of 0 to 6",
        "6 sends ACK of SUB of 0 with 6 to 4",
        "4 sends ACK of SUB of 0 with 4 5 6 to 0",
    }
    assert play(made, "view t 0") == ["0 knows 0 1 4 5 6"]


def test_section_5_5_5_who_does_not_subscribe_adds_nothing_to_an_acknowledgement():
    machine = VCubePS(1, 1, 0b11)
    assert machine.on_packet(0, 0, Sub("t", 0, 1)) == [Send((0,), OperationAck("t", Operation.SUB, 0, 1, ()))]


def test_section_5_5_5_subscribers_update_their_view_by_sub_and_uns():
    made = world(4, "t", (0, 1))
    play(made, "subscribe 3 t", "drain")
    assert play(made, "view t 0 1 3") == ["0 knows 0 1 3", "1 knows 0 1 3", "3 knows 0 1 3"]
    play(made, "unsubscribe 0 t", "drain")
    assert play(made, "view t 1 3") == ["1 knows 1 3", "3 knows 1 3"]


def test_section_5_5_5_after_leaving_a_node_delivers_nothing_but_relays_for_a_while():
    made = world(4, "t", (0, 2, 3))
    lines = play(made, "unsubscribe 2 t", "publish 0 t", "deliver 0>2")
    assert "  2 sends PUB 0.1 to 3" in lines
    assert "  2 delivers 0.1" not in lines
    assert sends(play(made, "drain", "publish 0 t"))[-1] == "0 sends PUB 0.2 to 3", "the relay was temporary"
    lines = play(made, "drain")
    assert not [line for line in lines if ">2" in line]


def test_section_5_5_5_receivers_forget_the_first_message_of_who_left():
    machine = VCubePS(1, 1, 0b11, initial={"t": Roster((0, 1))})
    machine.on_packet(0, 0, Pub("t", MessageId(0, 0, 4), (b"x",), ()))
    assert machine.topics["t"].delivery.first_received == {0: 4}
    from_0 = VCubePS(0, 1, 0b11, initial={"t": Roster((0, 1))}).unsubscribe(0, "t")
    machine.on_packet(1, 0, from_0[0].packet)
    assert machine.topics["t"].delivery.first_received == {}
