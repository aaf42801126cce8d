"""Acknowledgements that wait for company, publications that wait for company, and who may not be made to wait."""

import pytest

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Ack
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Start, bitmap
from cubecast.protocol.effects import Acknowledged, Published, Reincarnated, Send, SetTimer

ALL = 0b1111
DELAY, RETRY = 1.0, 100.0


def node(i, **changes):
    parameters = Parameters(2, founders=ALL, ids=ALL, **{"ack_delay": DELAY, "retry": RETRY} | changes)
    machine = Cubecast(i, parameters, initial={"t": ALL})
    machine.on_start(0.0)
    return machine


def publication(counter, hurry=False):
    first = (Start(1, bitmap(ALL)),)
    return Publication(0, (), "t", MessageId(0, 0, counter), (b"x",), bitmap(ALL), (), first, (), 0, hurry)


def sent(kind, effects):
    return [effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, kind)]


def counters(effects):
    return [message.counter for packet in sent(Ack, effects) for message in packet.messages]


def published(effects):
    return [effect.count for effect in effects if isinstance(effect, Published)]


def hurries(machine, publications):
    """Whether each of so many publications in a row asks for an answer at once."""
    said = [machine.publish(0.0, "t", [b"x"]) for _ in range(publications)]
    return [packet.hurry for effects in said for packet in sent(Publication, effects)]


def test_an_acknowledgement_waits_no_longer_than_the_delay():
    machine = node(1)
    first = machine.on_packet(5.0, 0, publication(1))
    assert not counters(first) and SetTimer(Timer.ACKS, 5.0 + DELAY / 2) in first
    half = machine.on_timer(5.5, Timer.ACKS)
    assert not counters(half) and SetTimer(Timer.ACKS, 5.5 + DELAY / 2) in half
    assert not counters(machine.on_packet(5.6, 0, publication(2)))
    assert counters(machine.on_timer(6.0, Timer.ACKS)) == [1, 2]


def test_one_that_waited_for_half_of_the_delay_leaves_with_the_next_publication_to_its_peer():
    machine = node(1)
    machine.on_packet(5.0, 0, publication(1))
    assert not counters(machine.publish(5.1, "t", [b"x"])), "too young to be worth a packet of its own"
    machine.on_timer(5.5, Timer.ACKS)
    assert not counters(machine.on_packet(5.6, 0, publication(2))), "nothing leaves for its peer"
    effects = machine.publish(5.7, "t", [b"y"])
    assert counters(effects) == [1, 2] and counters(machine.on_timer(6.0, Timer.ACKS)) == []


def test_one_that_hurries_takes_along_what_was_kept():
    machine = node(1)
    machine.on_packet(5.0, 0, publication(1))
    assert counters(machine.on_packet(5.1, 0, publication(2, hurry=True))) == [1, 2]
    assert not counters(machine.on_timer(6.0, Timer.ACKS))
    assert SetTimer(Timer.ACKS, 7.0 + DELAY / 2) in machine.on_packet(7.0, 0, publication(3))


def test_acknowledgements_after_a_new_incarnation_find_their_timer():
    machine = node(1)
    machine.on_packet(5.0, 0, publication(1))
    assert any(isinstance(effect, Reincarnated) for effect in machine.on_expelled(5.1, 0))
    assert not counters(machine.on_timer(6.0, Timer.ACKS)), "they were another life's"


def test_a_publisher_about_to_wait_hurries():
    assert hurries(node(0, window=8, eager=6), 6) == [False, False, False, True, True, True]
    assert hurries(node(0, window=4), 4) == [False, False, True, True]


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_smaller_than_what_is_eager_hurries_before_it_is_closed(window):
    assert any(hurries(node(0, window=window, eager=6), window))


def test_small_ones_pile_up_while_a_few_are_under_way_and_leave_with_the_first_answer():
    machine = node(0, window=8, eager=2, max_batch=4)
    assert [published(machine.publish(0.0, "t", [b"x"])) for _ in range(5)] == [[1], [1], [], [], []]
    assert published(machine.publish(0.0, "t", [b"x"])) == [4], "a full one waits for the window only"
    machine.publish(0.0, "t", [b"y"])
    first = Ack(0, (), "t", (MessageId(0, 0, 1), MessageId(0, 0, 2)))
    machine.on_packet(1.0, 1, first)
    effects = machine.on_packet(1.0, 2, first)
    assert Acknowledged("t", 2) in effects and published(effects) == [1]


def test_what_piled_up_leaves_when_the_last_who_could_answer_is_dead():
    machine = node(0, window=8, eager=1)
    machine.publish(0.0, "t", [b"x"])
    assert machine.publish(0.0, "t", [b"y"]) == []
    effects = [effect for peer in (1, 2, 3) for effect in machine.on_peer_down(1.0, peer)]
    assert Acknowledged("t", 1) in effects and published(effects) == [1]


def test_nobody_is_less_eager_than_not_at_all():
    with pytest.raises(BadInput, match="eager"):
        Parameters(2, eager=-1)
