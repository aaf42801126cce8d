"""VCube-PB step by step: trees, acknowledgements, crashes."""

from unittest.mock import patch

import pytest

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.effects import Acknowledged, Deliver, Send, SetTimer
from cubecast.protocol.hypercube.packets import Entry, Membership, Operation, Pub, PubAck
from cubecast.protocol.hypercube.vcube_pb import ROUND, VCubePB

ALL = 0b1111


def node(i, members=ALL):
    return VCubePB(i, 2, ALL, initial={"t": members})


def pub(source, counter, *barrier):
    return Pub("t", MessageId(source, 0, counter), (b"x",), tuple(MessageId(s, 0, c) for s, c in barrier))


def sent(kind, effects):
    return [(one.peers, one.packet) for one in effects if isinstance(one, Send) and isinstance(one.packet, kind)]


def delivered(effects):
    return [one.message[::2] for one in effects if isinstance(one, Deliver)]


def test_one_message_is_outstanding():
    machine = node(0)
    effects = machine.publish(0.0, "t", [b"a", b"b"])
    assert [peers for peers, _ in sent(Pub, effects)] == [(1, 2)]
    first = MessageId(0, 0, 1)
    assert machine.on_packet(0.0, 1, PubAck("t", first)) == []
    effects = machine.on_packet(0.0, 2, PubAck("t", first))
    assert [one.counter for one in effects if isinstance(one, Acknowledged)] == [1]
    assert [peers for peers, _ in sent(Pub, effects)] == [(1, 2)]


def test_a_publisher_need_not_subscribe():
    effects = node(3, members=0b0011).publish(0.0, "t", [b"a"])
    assert delivered(effects) == []
    assert [peers for peers, _ in sent(Pub, effects)] == [(1,)]


def test_an_inner_node_acknowledges_after_its_children():
    machine = node(2)
    effects = machine.on_packet(0.0, 0, pub(0, 1))
    assert [peers for peers, _ in sent(Pub, effects)] == [(3,)]
    assert delivered(effects) == [(0, 1)]
    assert [peers for peers, _ in sent(PubAck, machine.on_packet(0.0, 3, PubAck("t", MessageId(0, 0, 1))))] == [(0,)]


def test_the_next_of_the_cluster_replaces_a_crashed_child():
    machine = node(0)
    machine.publish(0.0, "t", [b"a"])
    assert [peers for peers, _ in sent(Pub, machine.on_peer_down(0.0, 2))] == [(3,)]


def test_whoever_has_the_last_message_of_a_crashed_source_broadcasts_it_anew():
    machine = node(1)
    machine.on_packet(0.0, 0, pub(0, 1))
    assert [peers for peers, _ in sent(Pub, machine.on_peer_down(0.0, 0))] == [(3,)]


def test_who_takes_over_answers_only_when_its_broadcast_is_complete():
    machine = node(1)
    machine.on_peer_down(0.0, 0)
    effects = machine.on_packet(0.0, 3, pub(0, 1))
    assert [peers for peers, _ in sent(Pub, effects)] == [(3,)]
    assert sent(PubAck, effects) == []
    assert [peers for peers, _ in sent(PubAck, machine.on_packet(0.0, 3, PubAck("t", MessageId(0, 0, 1))))] == [(3,)]


def held_and_relayed():
    """Message 2 of node 0 waits for something; node 0 crashes; its message 3 is relayed."""
    machine = node(3)
    machine.on_packet(0.0, 2, pub(0, 1))
    assert delivered(machine.on_packet(0.0, 2, pub(0, 2, (0, 1), (1, 1)))) == []
    machine.on_peer_down(0.0, 0)
    return delivered(machine.on_packet(0.0, 2, pub(0, 3, (0, 2))))


def test_forgetting_a_crashed_sources_first_reception_would_break_the_order():
    assert held_and_relayed() == []
    original = VCubePB._check_leave

    def printed(self, state, j, effects):
        state.delivery.forget_reception(j)
        original(self, state, j, effects)

    with patch.object(VCubePB, "_check_leave", printed):
        assert held_and_relayed() == [(0, 3)], "before message 2, on which it depends"


def test_memberships_travel_with_the_testing_round():
    machine = node(3, members=0b0011)
    effects = machine.subscribe(250.0, "t")
    assert [(one.timer, one.at) for one in effects if isinstance(one, SetTimer)] == [(ROUND, 1000.0)]
    news = (("t", Entry(3, Operation.SUB, 1)),)
    assert sent(Membership, machine.on_timer(1000.0, ROUND)) == [((2, 1), Membership(news))]
    learner = node(1, members=0b0011)
    learner.on_packet(1100.0, 3, Membership(news))
    assert [peers for peers, _ in sent(Pub, learner.publish(1100.0, "t", [b"a"]))] == [(0, 3)]


def test_strange_input_is_refused():
    with pytest.raises(RemoteProtocolError):
        node(0).on_packet(0.0, 1, object())
    with pytest.raises(LocalProtocolError):
        node(0).subscribe(0.0, "t")
    with pytest.raises(LocalProtocolError):
        node(0).on_timer(0.0, "nonsense")
