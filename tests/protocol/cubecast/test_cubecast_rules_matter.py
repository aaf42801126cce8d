"""Rules whose absence shows once in many thousand schedules, in their smallest form: with the rule, and without it."""

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.effects import Acknowledged, Cut, Gap, Reincarnated, Send
from cubecast.protocol.vcube.cubecast import Cubecast, Parameters
from cubecast.protocol.vcube.cubecast.packets import Ack, Wave
from cubecast.protocol.vcube.cubecast.publication_packets import Publication
from cubecast.protocol.vcube.cubecast.vocabulary import Entry, bitmap
from support import planted

ALL = 0b1111


def node(i, members=ALL):
    machine = Cubecast(i, Parameters(2, founders=ALL, ids=ALL), initial={"t": members})
    machine.on_start(0.0)
    return machine


def packet_of(effects, kind=Publication):
    return next(effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, kind))


def after_everybody_else_died(machine):
    return [effect for peer in range(4) if peer != machine.node for effect in machine.on_peer_down(1.0, peer)]


def lost(effects):
    return {message for effect in effects if isinstance(effect, Gap) for message in effect.missing}


def lonely_dependant():
    """f → e → m; node 3 has m alone when everybody else dies."""
    first, second, third = node(0), node(2), node(1)
    f = packet_of(first.publish(0.0, "t", [b"f"]))
    second.on_packet(0.0, 0, f)
    third.on_packet(0.0, 0, f)
    third.on_packet(0.0, 2, packet_of(second.publish(0.0, "t", [b"e"])))
    last = node(3)
    last.on_packet(0.0, 1, packet_of(third.publish(0.0, "t", [b"m"])))
    return lost(after_everybody_else_died(last))


@pytest.mark.interpreted
def test_everything_lost_is_announced_even_what_only_the_lost_knew():
    assert lonely_dependant() == {MessageId(0, 0, 1), MessageId(2, 0, 1)}
    with planted.covered_dropped_early():
        assert lonely_dependant() == {MessageId(2, 0, 1)}


def lonely_newcomer():
    """Node 3 joins; the first publication that addresses it is lost, the second is all it has."""
    source = node(0, members=0b0111)
    source.publish(0.0, "t", [b"before"])
    entry = Entry(3, 0, 1, True)
    source.on_packet(0.0, 3, Wave(0, (), "t", 1, entry))
    source.publish(0.0, "t", [b"first"])
    second = packet_of(source.publish(0.0, "t", [b"second"]))
    newcomer = node(3, members=0b0111)
    newcomer.subscribe(0.0, "t")
    return newcomer.on_packet(0.0, 0, second) + after_everybody_else_died(newcomer)


@pytest.mark.interpreted
def test_a_newcomer_knows_what_it_lost():
    effects = lonely_newcomer()
    assert [effect.last_excluded.counter for effect in effects if isinstance(effect, Cut)] == [1]
    assert lost(effects) == {MessageId(0, 0, 2)}
    with planted.starts_not_repeated():
        assert any(isinstance(effect, Reincarnated) for effect in lonely_newcomer())


def acknowledged_without_node_3():
    """Node 2 holds node 3 faulty and answers for the block of both; is node 3 still addressed afterwards?"""
    source, child = node(0), node(2)
    child.on_peer_down(0.0, 3)
    publication = packet_of(source.publish(0.0, "t", [b"x"]))
    answer = packet_of(child.on_packet(0.0, 0, publication), Ack)
    source.on_packet(0.0, 1, Ack(0, (), "t", answer.messages))
    effects = source.on_packet(0.0, 2, answer)
    assert any(isinstance(effect, Acknowledged) for effect in effects)
    return packet_of(source.publish(0.0, "t", [b"y"])).members


@pytest.mark.interpreted
def test_an_acknowledgement_means_the_same_to_both():
    assert acknowledged_without_node_3() == bitmap(0b0111)
    with planted.verdicts_kept_private():
        assert acknowledged_without_node_3() == bitmap(ALL), "stable without node 3, which is not held faulty"
