"""Rules whose absence shows once in many thousand schedules, in their smallest form: with the rule, and without it."""

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Ack, Hello, Introduction, Obituary, Wave, Welcome
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Entry, Standing, bitmap
from cubecast.protocol.effects import Acknowledged, Cut, Gap, Reincarnated, Send
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


def begun_with(i, other):
    """Node i came back and began to take part with the other one alone; its greeting to the rest is under way."""
    machine = Cubecast(i, Parameters(2, founders=ALL, ids=ALL), incarnation=1)
    greeting = packet_of(machine.on_start(0.0), Hello)
    standings = [Standing(one, 0, one == other) for one in range(4) if one != i]
    effects = machine.on_packet(0.0, other, Welcome(0, (), 1, True, (*standings, Standing(i, 1, True))))
    assert machine.is_active
    assert packet_of(effects, Introduction) == Introduction(1, (), 0, True)
    return machine, greeting


def two_that_began_apart():
    """1 began with 0, 2 began with 3; then the greetings arrive that they sent before. Who gives way?"""
    (first, hello), (second, other_hello) = begun_with(1, 0), begun_with(2, 3)
    machines, ways = {1: first, 2: second}, {1: 2, 2: 1}
    under_way = [(2, hello), (1, other_hello)]
    for _ in range(20):
        if not under_way:
            under_way = [(ways[i], packet) for i, machine in machines.items() for packet in asked(machine, ways[i])]
        if under_way:
            i, packet = under_way.pop(0)
            under_way += [(ways[i], one) for one in sent_to(ways[i], machines[i].on_packet(1.0, ways[i], packet))]
    return [machine.incarnation for machine in machines.values()]


def asked(machine, peer):
    return sent_to(peer, machine.on_timer(2.0, Timer.RETRY))


def sent_to(peer, effects):
    return [effect.packet for effect in effects if isinstance(effect, Send) and peer in effect.peers]


@pytest.mark.interpreted
def test_two_that_began_apart_do_not_live_with_each_other_unasked():
    """Otherwise neither would ever ask the other who is subscribed."""
    assert sorted(two_that_began_apart()) == [1, 2]
    with planted.greeting_taken_for_an_introduction():
        assert two_that_began_apart() == [1, 1]


def told_by_a_newcomer_of_another_group(machine):
    """Node 3 greets this one, begins with others that hold this one faulty, and says so."""
    machine.on_packet(0.0, 3, Hello(1, ()))
    return machine.on_packet(0.0, 3, Obituary(1, (), 0, bitmap(0b1001)))


@pytest.mark.interpreted
def test_a_newcomer_that_chose_the_smaller_side_expels_nobody_of_the_larger():
    machine = node(1)
    assert not any(isinstance(effect, Reincarnated) for effect in told_by_a_newcomer_of_another_group(machine))
    assert machine.living == [0, 1, 2]
    with planted.greeting_taken_for_an_introduction():
        assert any(isinstance(effect, Reincarnated) for effect in told_by_a_newcomer_of_another_group(node(1)))


def test_a_newcomer_says_once_that_it_began_with_those_it_found():
    machine = node(1)
    machine.on_packet(0.0, 3, Hello(1, ()))
    assert any(isinstance(packet, Introduction) and not packet.known for packet in asked(machine, 3))
    assert any("introductions" in line for line in machine.waiting())
    machine.on_packet(2.0, 3, Introduction(1, (), 0, True))
    assert not any(isinstance(packet, Introduction) for packet in asked(machine, 3))
    assert not any("introductions" in line for line in machine.waiting())
    answers = sent_to(3, machine.on_packet(3.0, 3, Introduction(1, (), 0, False)))
    assert answers == [Introduction(0, machine.life.context.dead, 1, True)], "it may ask the same"


def welcomed_by_the_losing_side():
    """Node 1 lived with 0, gave way to the side of 2 and 3, and its old companion is the first to welcome it."""
    machine = node(1)
    for peer in (2, 3):
        machine.on_peer_down(0.0, peer)
    effects = machine.on_packet(1.0, 2, Obituary(0, (), 0, bitmap(0b1100)))
    assert any(isinstance(effect, Reincarnated) for effect in effects)
    sides = [Standing(one, int(one == 1), one < 2) for one in range(4)]
    machine.on_packet(2.0, 0, Welcome(0, (), 1, True, tuple(sides)))
    return machine


def test_who_gave_way_to_the_dead_joins_those_who_live():
    """The news came late: whoever sent it is dead, and nobody but the old companions will ever answer."""
    machine = welcomed_by_the_losing_side()
    sides = tuple(Standing(one, int(one == 1), one < 2) for one in range(4))
    machine.on_timer(5000.0, Timer.ALONE)
    assert not machine.is_active, "nobody answered but those it did not listen to"
    machine.on_packet(5001.0, 0, Welcome(0, (), 1, True, sides))
    assert machine.is_active
    told = welcomed_by_the_losing_side()
    told.on_peer_down(3.0, 2)
    told.on_packet(4.0, 0, Welcome(0, (), 1, True, sides))
    assert told.is_active, "it was told that the winner is dead"


@pytest.mark.parametrize(("ours", "theirs"), [(0b0010, 0b0100), (0b0011, 0b1100), (0b0011, 0b0100)])
def test_of_two_strangers_exactly_one_gives_way(ours, theirs):
    """Node 1 and node 2, whether or not one of them believes to live with the other."""
    for knows in (0, 1):
        ends = []
        for me, other, mine, its in ((1, 2, ours, theirs), (2, 1, theirs, ours)):
            machine = Cubecast(me, Parameters(2, founders=mine | knows << other, ids=ALL))
            machine.on_start(0.0)
            effects = machine.on_packet(1.0, other, Obituary(0, (), 0, bitmap(its | knows << me), stranger=True))
            ends.append(any(isinstance(effect, Reincarnated) for effect in effects))
        assert sorted(ends) == [False, True]


@pytest.mark.interpreted
def test_who_gave_way_to_a_side_does_not_join_the_other_again():
    """Otherwise two of them take turns for ever: each gives way, and the other has just come back."""
    assert not welcomed_by_the_losing_side().is_active
    with planted.losers_joined_again():
        assert welcomed_by_the_losing_side().is_active


def welcomed_by_another_that_gave_way():
    """Node 1 gave way to the side of 2; node 0 did so, too, has just come back and never heard of 2."""
    machine = node(1)
    for peer in (2, 3):
        machine.on_peer_down(0.0, peer)
    machine.on_packet(1.0, 2, Obituary(0, (), 0, bitmap(0b1100)))
    machine.on_packet(2.0, 0, Welcome(1, (), 1, True, (Standing(0, 1, True), Standing(1, 1, True))))
    return machine


@pytest.mark.interpreted
def test_two_that_gave_way_do_not_join_each_other_by_turns():
    """Each would be told off by the winners as soon as it takes part, and find the other one back again."""
    assert not welcomed_by_another_that_gave_way().is_active
    with planted.winners_not_waited_for():
        assert welcomed_by_another_that_gave_way().is_active


def test_the_side_that_won_is_waited_for_as_long_as_it_lives_and_answers():
    answered = welcomed_by_another_that_gave_way()
    everybody = tuple(Standing(one, 1 if one < 2 else 0, True) for one in range(4))
    for peer in (2, 3):
        answered.on_packet(3.0, peer, Welcome(0, (), 1, True, everybody))
    answered.on_packet(4.0, 0, Welcome(1, (), 1, True, everybody))
    assert answered.is_active and answered.living == [0, 1, 2, 3]
    dead = welcomed_by_another_that_gave_way()
    dead.on_peer_down(3.0, 2)
    dead.on_packet(4.0, 0, Welcome(1, (), 1, True, (Standing(0, 1, True), Standing(1, 1, True))))
    assert dead.is_active, "it was told that the winner is dead"
    silent = welcomed_by_another_that_gave_way()
    silent.on_timer(5000.0, Timer.ALONE)
    silent.on_packet(5001.0, 0, Welcome(1, (), 1, True, (Standing(0, 1, True), Standing(1, 1, True))))
    assert silent.is_active, "the patience is over"


def welcomed_by_two_strangers():
    """Node 1 comes back; nodes 0 and 3 take part, and 3 never heard that 0 came back, too."""
    machine = node(1)
    machine.on_peer_down(0.0, 2)
    machine.on_packet(1.0, 0, Obituary(0, (), 0, bitmap(0b1001)))
    gone = Standing(2, 0, False)
    machine.on_packet(2.0, 3, Welcome(0, (), 1, True, (Standing(0, 0, True), Standing(1, 1, True), gone, THREE)))
    known = (Standing(0, 1, True), Standing(1, 1, True), gone, THREE)
    return machine, known, machine.on_packet(3.0, 0, Welcome(1, (), 1, True, known))


THREE = Standing(3, 0, True)


@pytest.mark.interpreted
def test_who_joins_waits_until_those_who_take_part_know_each_other():
    """It would read from one what the other will never get, and live with both."""
    machine, known, effects = welcomed_by_two_strangers()
    assert not machine.is_active
    assert [type(one) for one in sent_to(3, effects)] == [Hello], "it may have met the other since"
    effects = machine.on_packet(4.0, 3, Welcome(0, (), 1, True, (Standing(0, 0, True), *known[1:])))
    assert not machine.is_active and not sent_to(3, effects), "it said so just now"
    assert Hello in [type(one) for one in sent_to(3, machine.on_timer(1000.0, Timer.RETRY))]
    machine.on_packet(1001.0, 3, Welcome(0, (), 1, True, known))
    assert machine.is_active and machine.living == [0, 1, 3]
    with planted.strangers_joined():
        assert welcomed_by_two_strangers()[0].is_active


def test_those_who_only_join_do_not_count_as_companions():
    """Node 3 began when nobody answered who takes part, with two that join: it does not expel two that take part."""
    machine = Cubecast(3, Parameters(3, founders=0b111111, ids=0b111111), incarnation=1)
    machine.on_start(0.0)
    for peer in (4, 5):
        known = (Standing(3, 1, True), Standing(peer, 1, True))
        machine.on_packet(0.0, peer, Welcome(1, (), 1, False, known))
    machine.on_timer(5000.0, Timer.ALONE)
    assert machine.is_active and machine.living == [3, 4, 5]
    welcome = Welcome(0, (), 1, True, (Standing(0, 0, True), Standing(3, 1, True)))
    assert sent_to(0, machine.on_packet(5001.0, 0, welcome)) == [Obituary(1, (), 0, bitmap(0b1000), stranger=True)]
    for peer in (4, 5):
        machine.on_packet(5002.0, peer, Introduction(1, (), 1, True))
    assert sent_to(0, machine.on_packet(5003.0, 0, welcome))[0].alive == bitmap(0b111000)
