"""Which messages a process names as missing, and which it does not: one machine, and what the others would tell it."""

from dataclasses import replace

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Hello, Obituary, Settle, Wave, WaveAck, Welcome
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Entry, Holding, Life, Member, Reach, Since, Standing, Start, bitmap
from cubecast.protocol.effects import Deliver, Gap, Send, Subscribed
from support import planted

ALL = 0b1111
FOUR = tuple(Standing(node, 0, True) for node in range(4))


def node_zero(members=0b1110):
    machine = Cubecast(0, Parameters(2, founders=ALL, ids=ALL), initial={"t": members})
    machine.on_start(0.0)
    return machine


def of(kind, effects):
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(kind, effects):
    return [effect.packet for effect in of(Send, effects) if isinstance(effect.packet, kind)]


def named(effects):
    """What gaps name, one by one."""
    return [
        (*run[:2], counter)
        for gap in of(Gap, effects)
        if not isinstance(gap.missing, tuple)
        for run in [(gap.missing.source, gap.missing.incarnation)]
        for counter in range(gap.missing.first, gap.missing.last + 1)
    ]


def last_wave(effects):
    return sent(Wave, effects)[-1]


def answers(machine, wave, nodes, start=1, reached=(), by=()):
    """These nodes answer it; the effects of all that."""
    effects = []
    for peer in nodes:
        ack = WaveAck(dict(by).get(peer, 0), (), "t", wave.by, wave.number, (), True, start, reached)
        effects += machine.on_packet(0.0, peer, ack)
    return effects


def is_over(machine, life, others, holdings=()):
    """This life is held faulty, and everybody else has agreed on what it left."""
    effects = machine.on_peer_down(0.0, life.node)
    faulty = {one.node: one.incarnation for one in machine.life.context.registry.faulty()}
    verdicts = tuple(Life(*one) for one in sorted(faulty.items()))
    for version, peer in enumerate(others, start=machine.life.settlement.version + 10):
        effects += machine.on_packet(0.0, peer, Settle(0, (), version, False, verdicts, holdings))
    return effects


def tells(machine, sender, *reached, by=0, since=(), number=9):
    """A process that comes back says how far others published, and since when it knows of subscriptions here."""
    wave = Wave(by, (), "t", number, None, False, True, tuple(Reach(*one) for one in reached), tuple(since))
    effects = machine.on_packet(0.0, sender, wave)
    return named(effects), sent(WaveAck, effects)[-1].accounted


def subscribed_without_one(machine):
    """Node 1 is held faulty before it answers."""
    wave = last_wave(machine.subscribe(0.0, "t"))
    effects = answers(machine, wave, (2, 3)) + is_over(machine, Life(1, 0), (2, 3))
    assert of(Subscribed, effects)


class TestClaims:
    def test_who_asks_before_it_publishes_owes_all_of_it(self):
        machine = node_zero()
        wave = last_wave(machine.subscribe(0.0, "t"))
        machine.on_packet(0.0, 1, Wave(0, (), "t", 1, None))
        answers(machine, wave, (2, 3))
        is_over(machine, Life(1, 0), (2, 3))
        assert tells(machine, 2, (1, 0, 2)) == ([(1, 0, 1), (1, 0, 2)], True)

    def test_a_late_copy_of_that_wave_says_nothing(self):
        """It was answered before the subscription began, and what was published since then was not for it."""
        machine = node_zero()
        machine.on_packet(0.0, 1, Wave(0, (), "t", 1, None))
        wave = last_wave(machine.subscribe(0.0, "t"))
        machine.on_packet(0.0, 1, Wave(0, (), "t", 1, None))
        answers(machine, wave, (2, 3))
        is_over(machine, Life(1, 0), (2, 3))
        assert tells(machine, 2, (1, 0, 2)) == ([], True)

    def test_lives_before_the_one_that_knew_first_owe_nothing_whenever_they_are_heard_of(self):
        machine = node_zero()
        subscribed_without_one(machine)
        machine.on_packet(0.0, 1, Hello(2, ()))
        assert tells(machine, 1, by=2) == ([], True)
        assert tells(machine, 1, (1, 0, 2), by=2) == ([], True)

    def test_a_claim_begins_where_the_publisher_says(self):
        machine = node_zero()
        subscribed_without_one(machine)
        machine.on_packet(0.0, 1, Hello(1, ()))
        told = tells(machine, 1, (1, 0, 4), by=1, since=[Since(0, 1, 0, 3)])
        assert told == ([(1, 0, 3), (1, 0, 4)], True)

    def test_but_not_once_its_effects_may_have_been_handed_over(self):
        """Named then, they would be causes that come after what follows from them."""
        machine = node_zero()
        subscribed_without_one(machine)
        assert tells(machine, 2, (1, 0, 4)) == ([], True), "what node 2 publishes now may follow from these"
        machine.on_packet(0.0, 1, Hello(1, ()))
        since = [Since(0, 1, 0, 3)]
        assert tells(machine, 1, (1, 0, 4), by=1, since=since) == ([], True)
        assert tells(machine, 1, (1, 0, 5), by=1, since=since) == ([(1, 0, 5)], True)

    def test_what_may_still_come_is_waited_for_even_without_a_claim(self):
        machine = node_zero()
        wave = last_wave(machine.subscribe(0.0, "t"))
        answers(machine, wave, (2, 3))
        machine.on_peer_down(0.0, 1)
        assert tells(machine, 2, (1, 0, 4)) == ([], False)


def comes_back(machine, others=(1, 2, 3)):
    """Node 0 is told of its death and joins as its next incarnation; the waves it sends then."""
    effects = machine.on_packet(0.0, 2, Obituary(0, (), 0, bitmap(0b1110), False))
    assert machine.incarnation == 1
    for peer in others:
        nodes = (Standing(0, 1, True), *FOUR[1:])
        effects = machine.on_packet(0.0, peer, Welcome(0, (), 1, True, nodes))
    assert machine.is_active
    return effects


def test_a_process_brings_what_lay_before_its_subscription():
    """What it was handed may follow from that."""
    machine = node_zero()
    wave = last_wave(machine.subscribe(0.0, "t"))
    answers(machine, wave, (1, 2, 3), start=4)
    effects = comes_back(machine)
    assert Reach(1, 0, 3) in last_wave(effects).reached


def comes_back_unconfirmed():
    """Node 0 was handed a message by node 1 and comes back before everybody knew of its subscription; so did node 1,
    whose next life published once before it knew of it."""
    machine = node_zero()
    machine.subscribe(0.0, "t")
    message, everybody = MessageId(1, 0, 1), bitmap(0b0011)
    starts = (Start(1, everybody),)
    publication = Publication(0, (), "t", message, (b"x",), everybody, (), starts, (), 0)
    assert of(Deliver, machine.on_packet(0.0, 1, publication))
    effects = machine.on_packet(0.0, 2, Obituary(0, (), 0, bitmap(0b1110), False))
    nodes = (Standing(0, 1, True), Standing(1, 1, True), *FOUR[2:])
    for peer in (1, 2, 3):
        effects += machine.on_packet(0.0, peer, Welcome(peer == 1, (), 1, True, nodes))
    return machine, answers(machine, last_wave(effects), (1, 2, 3), start=2, reached=(Reach(1, 0, 2),), by={1: 1})


@pytest.mark.interpreted
def test_claims_begin_with_the_life_in_which_the_subscription_was_confirmed():
    """Named, the end of the life before would claim everything since, and not all of that was for this subscription."""
    machine, effects = comes_back_unconfirmed()
    assert of(Subscribed, effects) and named(effects) == []
    is_over(machine, Life(1, 1), (2, 3))
    assert tells(machine, 2, (1, 1, 3)) == ([(1, 1, 2), (1, 1, 3)], True), "from the confirmation on"
    with planted.claims_of_the_unconfirmed_kept():
        assert named(comes_back_unconfirmed()[1]) == [(1, 0, 2)]


def test_what_came_while_a_subscription_was_asked_for_again_is_handed_over():
    """A life that asks here before it publishes begins with the subscription, even if it is over before that opens."""
    machine = node_zero(members=ALL)
    wave = last_wave(comes_back(machine))
    answers(machine, wave, (1, 2))
    again = last_wave(is_over(machine, Life(3, 0), (1, 2)))
    assert again.number > wave.number, "who was held faulty meanwhile may have published something that others read"

    machine.on_packet(0.0, 3, Hello(1, ()))
    machine.on_packet(0.0, 3, Wave(1, (), "t", 1, Entry(3, 1, 1, True)))
    everybody, epochs = 0b1001, (Member(0, 1, 1), Member(3, 1, 1))
    message = MessageId(3, 1, 1)
    starts = (Start(1, bitmap(everybody)),)
    machine.on_packet(0.0, 3, Publication(1, (), "t", message, (b"x",), bitmap(everybody), epochs, starts, (), 0))
    over = is_over(machine, Life(3, 1), (1, 2), (Holding("t", 3, 1, True, ((1, 1),)),))
    waves = sent(Wave, over)
    effects = answers(machine, waves[-1] if waves else again, (1, 2), reached=(Reach(3, 1, 1),))
    effects += machine.on_timer(600.0, Timer.RETRY)
    for wave in sent(Wave, effects):
        effects += answers(machine, replace(wave, by=1), (1, 2), reached=(Reach(3, 1, 1),))
    assert [effect.message for effect in of(Deliver, effects)] == [message]
    assert named(effects) == []
