"""Publications that their source sends to everybody itself: who answers for whom, and when a tree is used after all."""

from dataclasses import replace

import pytest

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Ack, Settle
from cubecast.protocol.cubecast.parameters import Aggregation, Timer
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.vocabulary import Life, Start, bitmap
from cubecast.protocol.effects import Acknowledged, Deliver, Send

ALL = 0xFF
FIRST = MessageId(0, 0, 1)


def node(i, **changes):
    parameters = Parameters(3, founders=ALL, ids=ALL, **{"direct": 7} | changes)
    machine = Cubecast(i, parameters, initial={"t": ALL})
    machine.on_start(0.0)
    return machine


def direct():
    return Direct(0, (), "t", FIRST, (b"x",), bitmap(ALL), (), (Start(1, bitmap(ALL)),), (), 0)


def sent(kind, effects):
    return [(one.peers, one.packet) for one in effects if isinstance(one, Send) and isinstance(one.packet, kind)]


def test_a_small_group_is_served_by_the_source_itself():
    ((peers, packet),) = sent(Publication, node(0).publish(0.0, "t", [b"x"]))
    assert peers == (1, 2, 3, 4, 5, 6, 7) and packet == direct()


def test_who_receives_it_hands_it_on_to_nobody_and_answers_for_itself():
    effects = node(4).on_packet(1.0, 0, direct())
    assert not sent(Publication, effects), "in a tree node 4 would serve 5, 6 and 7"
    assert any(isinstance(effect, Deliver) for effect in effects)
    assert sent(Ack, effects) == [((0,), Ack(0, (), "t", (FIRST,)))]


def test_it_is_stable_when_everybody_has_answered_for_itself():
    machine = node(0)
    machine.publish(0.0, "t", [b"x"])
    for peer in range(1, 7):
        assert not machine.on_packet(1.0, peer, Ack(0, (), "t", (FIRST,)))
    assert Acknowledged("t", 1) in machine.on_packet(1.0, 7, Ack(0, (), "t", (FIRST,)))


def test_it_is_repeated_to_those_who_did_not_answer():
    machine = node(0)
    machine.publish(0.0, "t", [b"x"])
    for peer in (1, 2, 4, 5, 6):
        machine.on_packet(1.0, peer, Ack(0, (), "t", (FIRST,)))
    machine.on_timer(400.0, Timer.RETRY)
    ((peers, packet),) = sent(Publication, machine.on_timer(800.0, Timer.RETRY))
    assert peers == (3, 7) and type(packet) is Direct


def test_a_repeated_one_is_answered_again_and_delivered_once():
    machine = node(4)
    machine.on_packet(1.0, 0, direct())
    effects = machine.on_packet(2.0, 0, direct())
    assert sent(Ack, effects) and not any(isinstance(effect, Deliver) for effect in effects)


def test_the_dead_are_not_waited_for():
    machine = node(0)
    machine.publish(0.0, "t", [b"x"])
    for peer in (1, 2, 3, 4, 5, 6):
        machine.on_packet(1.0, peer, Ack(0, (), "t", (FIRST,)))
    assert Acknowledged("t", 1) in machine.on_peer_down(2.0, 7)


def test_when_the_source_is_faulty_it_is_handed_on_along_trees():
    machine = node(1)
    machine.on_packet(1.0, 0, direct())
    machine.on_peer_down(2.0, 0)
    faulty = (Life(0, 0),)
    handed_on = []
    for peer in range(2, 8):
        handed_on += sent(Publication, machine.on_packet(3.0, peer, Settle(0, faulty, 1, False, faulty, ())))
    assert handed_on and all(type(packet) is Publication for _, packet in handed_on)
    assert handed_on[0][1].message == FIRST and handed_on[0][1].payloads == (b"x",)


def test_one_that_reaches_us_from_others_after_its_source_died_is_ours_to_hand_on():
    machine = node(1)
    machine.on_peer_down(0.5, 0)
    machine.on_packet(1.0, 2, direct().handed_on())
    assert any("keeps" in line for line in machine.waiting())


@pytest.mark.parametrize("changes", [{"direct": 6}, {"direct": 0}, {"aggregation": Aggregation.ON}])
def test_large_groups_and_aggregation_use_trees(changes):
    ((peers, packet),) = sent(Publication, node(0, **changes).publish(0.0, "t", [b"x"]))
    assert peers == (4, 2, 1) and type(packet) is Publication


def test_large_publications_use_trees():
    ((peers, packet),) = sent(Publication, node(0).publish(0.0, "t", [bytes(20_000)]))
    assert peers == (4, 2, 1) and type(packet) is Publication


def answers(counter):
    return [(peer, Ack(0, (), "t", (MessageId(0, 0, counter),))) for peer in range(1, 8)]


def test_a_source_that_was_made_to_wait_uses_trees_and_haste_until_one_finds_everything_stable():
    machine = node(0, window=16, eager=1, calm=3, ack_delay=1.0)
    first = [packet for _ in range(5) for _, packet in sent(Publication, machine.publish(0.0, "t", [b"x"]))]
    assert [(type(one), one.hurry) for one in first] == [(Direct, False), (Direct, True), (Direct, True)]
    answered = [effect for n in (1, 2, 3) for peer, ack in answers(n) for effect in machine.on_packet(1.0, peer, ack)]
    ((peers, piled),) = sent(Publication, answered)
    assert (peers, type(piled), piled.hurry, len(piled.payloads)) == ((4, 2, 1), Publication, True, 2)
    assert not sent(Publication, machine.publish(2.0, "t", [b"y"])), "pressed, it has one under way at a time"
    waited = [effect for peer, ack in answers(4) for effect in machine.on_packet(3.0, peer, ack)]
    ((_, second),) = sent(Publication, waited)
    assert type(second) is Publication and second.hurry, "it had to wait"
    for peer, ack in answers(6):
        machine.on_packet(4.0, peer, ack)
    ((_, last),) = sent(Publication, machine.publish(5.0, "t", [b"z"]))
    assert type(last) is Direct and not last.hurry


def test_haste_of_a_source_is_answered_for_what_it_sent_before_as_well():
    machine = node(4, ack_delay=1.0)
    assert not sent(Ack, machine.on_packet(1.0, 0, direct()))
    hasty = replace(direct().handed_on(), message=MessageId(0, 0, 2), hurry=True)
    effects = machine.on_packet(1.1, 0, hasty)
    assert sent(Ack, effects) == [((0,), Ack(0, (), "t", (FIRST,)))], "the second has to reach others first"


def test_less_than_nobody_is_refused():
    with pytest.raises(BadInput, match="direct"):
        Parameters(3, direct=-1)
