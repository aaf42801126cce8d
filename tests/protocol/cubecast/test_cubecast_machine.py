"""The machine step by step: these inputs, these effects."""

import pytest

from cubecast.errors import BadInput, LocalProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Ack, Hello, Obituary, Settle, Stable, Wave, WaveAck, Welcome
from cubecast.protocol.cubecast.parameters import Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Entry, Life, Standing, Start, bitmap
from cubecast.protocol.effects import (
    Acknowledged,
    Cut,
    Deliver,
    Gap,
    Published,
    Reincarnated,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)

ALL = 0b1111


def node(i, *, members=ALL, **changes):
    parameters = Parameters(2, founders=ALL, ids=ALL, **changes)
    machine = Cubecast(i, parameters, initial={"t": members})
    machine.on_start(0.0)
    return machine


def publication(source, counter, *, to=ALL, starts=None, dependencies=(), incarnation=0, stable=0, epochs=(), dead=()):
    if starts is None:
        starts = ((1, to),) if not stable else ()
    return Publication(
        0,
        dead,
        "t",
        MessageId(source, incarnation, counter),
        (b"x",),
        bitmap(to),
        tuple(epochs),
        tuple(Start(at, bitmap(who)) for at, who in starts),
        tuple(dependencies),
        stable,
    )


def of(kind, effects):
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(kind, effects):
    return [(effect.peers, effect.packet) for effect in of(Send, effects) if isinstance(effect.packet, kind)]


def delivered(effects):
    return [tuple(effect.message) for effect in of(Deliver, effects)]


class TestPublishing:
    def test_goes_to_one_child_per_cluster_and_to_oneself(self):
        effects = node(0).publish(0.0, "t", [b"a", b"b"])
        ((peers, packet),) = sent(Publication, effects)
        assert peers == (2, 1)
        assert packet.payloads == (b"a", b"b")
        assert packet.message == MessageId(0, 0, 1)
        assert [type(effect) for effect in effects] == [Published, Send, Cut, Deliver, SetTimer]

    def test_names_what_was_delivered_before(self):
        machine = node(0)
        machine.on_packet(0.0, 1, publication(1, 1))
        effects = machine.publish(0.0, "t", [b"a"])
        assert of(Published, effects)[0].dependencies == (MessageId(1, 0, 1),)

    def test_a_covered_dependency_is_named_until_it_is_stable(self):
        machine = node(0)
        machine.on_packet(0.0, 1, publication(1, 1))
        machine.publish(0.0, "t", [b"a"])
        again = machine.publish(0.0, "t", [b"b"])
        assert of(Published, again)[0].dependencies == ()
        assert [one[:3] for one in sent(Publication, again)[0][1].dependencies] == [(1, 0, 1)]
        machine.on_packet(0.0, 1, Stable(0, (), "t", 1))
        assert sent(Publication, machine.publish(0.0, "t", [b"c"]))[0][1].dependencies == ()

    def test_waits_for_the_window_and_then_publishes_a_batch(self):
        machine = node(0, window=1)
        assert of(Published, machine.publish(0.0, "t", [b"a"]))
        assert machine.publish(0.0, "t", [b"b"]) == []
        assert machine.publish(0.0, "t", [b"c"]) == []
        machine.on_packet(1.0, 1, Ack(0, (), "t", (MessageId(0, 0, 1),)))
        effects = machine.on_packet(1.0, 2, Ack(0, (), "t", (MessageId(0, 0, 1),)))
        assert of(Acknowledged, effects) == [Acknowledged("t", 1)]
        assert [(one.counter, one.count) for one in of(Published, effects)] == [(2, 2)]

    @pytest.mark.parametrize(
        ("sizes", "batches"),
        [
            ([4, 4, 4], [2, 1]),
            ([9, 1, 1], [1, 2]),
            ([1, 9, 8], [1, 1, 1]),
            ([1, 1, 1, 1, 1, 1], [3, 3]),
            ([0, 8, 0], [3]),
        ],
    )
    def test_a_batch_ends_with_its_bytes_or_its_messages_and_a_large_message_goes_alone(self, sizes, batches):
        machine = node(0, max_batch_bytes=8, max_batch=3)
        effects = machine.publish(0.0, "t", [b"x" * size for size in sizes])
        assert [one.count for one in of(Published, effects)] == batches

    def test_an_outsider_asks_everybody_first(self):
        machine = node(3, members=0b0111)
        effects = machine.publish(0.0, "t", [b"a"])
        assert of(Published, effects), "founding members are known to founders"
        effects = machine.publish(0.0, "other", [b"a"])
        assert sent(Wave, effects) == [((0, 1, 2), Wave(0, (), "other", 1, None))]
        for peer in (0, 1):
            assert machine.on_packet(1.0, peer, WaveAck(0, (), "other", 0, 1, (Entry(0, 0, 1, True),))) == []
        effects = machine.on_packet(1.0, 2, WaveAck(0, (), "other", 0, 1, ()))
        assert [peers for peers, _ in sent(Publication, effects)] == [(0,)]

    def test_nothing_at_all_is_refused(self):
        with pytest.raises(LocalProtocolError):
            node(0).publish(0.0, "t", [])


class TestForwarding:
    def test_forwards_its_block_then_delivers_then_acknowledges_when_the_block_has_it(self):
        machine = node(2)
        effects = machine.on_packet(0.0, 0, publication(0, 1))
        assert [peers for peers, _ in sent(Publication, effects)] == [(3,)]
        assert [type(effect) for effect in effects] == [Send, Cut, Deliver, SetTimer]
        effects = machine.on_packet(1.0, 3, Ack(0, (), "t", (MessageId(0, 0, 1),)))
        assert sent(Ack, effects) == [((0,), Ack(0, (), "t", (MessageId(0, 0, 1),)))]

    def test_forwards_the_very_packet(self):
        machine, packet = node(2), publication(0, 1)
        assert sent(Publication, machine.on_packet(0.0, 0, packet))[0][1] is packet

    def test_a_leaf_acknowledges_at_once_and_a_duplicate_again_but_delivers_once(self):
        machine = node(3)
        first = machine.on_packet(0.0, 2, publication(0, 1))
        second = machine.on_packet(0.0, 2, publication(0, 1))
        assert len(sent(Ack, first)) == len(sent(Ack, second)) == 1
        assert delivered(first) == [(0, 0, 1)]
        assert delivered(second) == []

    def test_the_next_of_the_block_replaces_a_faulty_child(self):
        machine = node(0)
        machine.publish(0.0, "t", [b"a"])
        effects = machine.on_peer_down(1.0, 2)
        assert [peers for peers, _ in sent(Publication, effects)] == [(3,)]

    def test_unanswered_publications_are_repeated(self):
        machine = node(0)
        machine.publish(0.0, "t", [b"a"])
        machine.on_timer(400.0, Timer.RETRY)
        effects = machine.on_timer(800.0, Timer.RETRY)
        assert [peers for peers, _ in sent(Publication, effects)] == [(2, 1)]
        assert of(SetTimer, effects)

    def test_an_unsubscribed_node_forwards_but_does_not_deliver(self):
        machine = node(2)
        effects = machine.unsubscribe(0.0, "t")
        assert of(Unsubscribed, effects) == [Unsubscribed("t")]
        assert sent(Wave, effects)[0][1].entry == Entry(2, 0, 1, False)
        effects = machine.on_packet(1.0, 0, publication(0, 1))
        assert [peers for peers, _ in sent(Publication, effects)] == [(3,)]
        assert delivered(effects) == []


class TestDelivery:
    def test_waits_for_the_previous_of_the_source(self):
        machine = node(3)
        assert delivered(machine.on_packet(0.0, 2, publication(0, 2))) == []
        assert delivered(machine.on_packet(0.0, 2, publication(0, 1))) == [(0, 0, 1), (0, 0, 2)]

    def test_waits_for_a_dependency(self):
        machine = node(3)
        dependant = publication(1, 1, dependencies=[Dependency(0, 0, 1, b"", ())])
        assert delivered(machine.on_packet(0.0, 1, dependant)) == []
        assert machine.waiting()
        assert delivered(machine.on_packet(0.0, 2, publication(0, 1))) == [(0, 0, 1), (1, 0, 1)]

    def test_an_excused_member_does_not_wait(self):
        machine = node(3)
        dependant = publication(1, 1, dependencies=[Dependency(0, 0, 1, bitmap(0b1000), ())])
        assert delivered(machine.on_packet(0.0, 1, dependant)) == [(1, 0, 1)]

    def test_the_source_states_the_cut(self):
        machine = node(3)
        effects = machine.on_packet(0.0, 2, publication(0, 5, starts=((5, 0b1000),)))
        assert of(Cut, effects) == [Cut("t", MessageId(0, 0, 4))]
        assert delivered(effects) == [(0, 0, 5)]

    def test_the_start_is_known_even_when_the_first_is_not_there_yet(self):
        machine = node(3)
        assert delivered(machine.on_packet(0.0, 2, publication(0, 6, starts=((5, 0b1000),)))) == []
        effects = machine.on_packet(0.0, 2, publication(0, 5, starts=((5, 0b1000),)))
        assert of(Cut, effects) == [Cut("t", MessageId(0, 0, 4))]
        assert delivered(effects) == [(0, 0, 5), (0, 0, 6)]

    def test_what_addresses_an_earlier_subscription_is_not_delivered_in_this_one(self):
        machine = node(3)
        machine.unsubscribe(0.0, "t")
        machine.subscribe(0.0, "t")
        assert delivered(machine.on_packet(1.0, 2, publication(0, 1))) == []


class TestMembership:
    def test_a_wave_confirms_the_subscription_and_teaches_the_view(self):
        machine = node(3, members=0b0001)
        effects = machine.subscribe(0.0, "t")
        assert sent(Wave, effects) == [((0, 1, 2), Wave(0, (), "t", 1, Entry(3, 0, 1, True)))]
        answers = [WaveAck(0, (), "t", 0, 1, (Entry(1, 0, 1, True),)) for _ in range(3)]
        assert not of(Subscribed, machine.on_packet(1.0, 0, answers[0]))
        assert not of(Subscribed, machine.on_packet(1.0, 1, answers[1]))
        assert of(Subscribed, machine.on_packet(1.0, 2, answers[2])) == [Subscribed("t")]
        packet = sent(Publication, machine.publish(1.0, "t", [b"a"]))[0][1]
        assert packet.members == bitmap(0b1011)

    def test_publishing_waits_for_the_wave_delivering_does_not(self):
        machine = node(3, members=0b0001)
        machine.subscribe(0.0, "t")
        assert machine.publish(0.0, "t", [b"a"]) == []
        assert delivered(machine.on_packet(1.0, 0, publication(0, 4, to=0b1001, starts=((4, 0b1000),)))) == [(0, 0, 4)]

    def test_being_addressed_is_being_subscribed(self):
        machine = node(3, members=0b1001)
        machine.on_packet(0.0, 0, publication(0, 1, to=0b1101))
        assert sent(Publication, machine.publish(0.0, "t", [b"a"]))[0][1].members == bitmap(0b1101)

    def test_everybody_answers_a_wave_with_what_it_knows(self):
        effects = node(1, members=0b0011).on_packet(0.0, 3, Wave(0, (), "t", 1, Entry(3, 0, 1, True)))
        entries = (Entry(0, 0, 1, True), Entry(1, 0, 1, True), Entry(3, 0, 1, True))
        assert sent(WaveAck, effects) == [((3,), WaveAck(0, (), "t", 0, 1, entries, start=1))]

    def test_a_newcomer_is_excused_from_what_it_was_not_sent(self):
        machine = node(0, members=0b0111)
        machine.on_packet(0.0, 1, publication(1, 1, to=0b0111))
        machine.on_packet(0.0, 3, Wave(0, (), "t", 1, Entry(3, 0, 1, True)))
        packet = sent(Publication, machine.publish(0.0, "t", [b"a"]))[0][1]
        assert packet.dependencies[0].excused == bitmap(0b1000)
        assert packet.starts == (Start(1, bitmap(ALL)),)

    def test_twice_is_refused(self):
        with pytest.raises(LocalProtocolError):
            node(0).subscribe(0.0, "t")
        with pytest.raises(LocalProtocolError):
            node(3, members=0b0111).unsubscribe(0.0, "t")


class TestFaults:
    def test_a_faulty_peer_is_fenced_and_told(self):
        machine = node(3)
        machine.on_peer_down(0.0, 2)
        effects = machine.on_packet(1.0, 2, publication(0, 1))
        assert delivered(effects) == []
        assert sent(Obituary, effects) == [((2,), Obituary(0, (), 0, bitmap(0b1011)))]

    def test_verdicts_ride_in_every_packet_until_everybody_knows(self):
        machine = node(0)
        machine.on_peer_down(0.0, 3)
        assert sent(Publication, machine.publish(0.0, "t", [b"a"]))[0][1].dead == (Life(3, 0),)
        for peer in (1, 2):
            machine.on_packet(1.0, peer, Settle(0, (), 1, False, (Life(3, 0),), ()))
        assert sent(Publication, machine.publish(1.0, "t", [b"a"]))[0][1].dead == ()

    def test_verdicts_are_adopted_before_the_packet_counts(self):
        machine = node(0)
        effects = machine.on_packet(0.0, 1, publication(1, 1, to=0b0111, dead=(Life(3, 0),)))
        assert sent(Publication, machine.publish(0.0, "t", [b"a"]))[0][1].members == bitmap(0b0111)
        assert [peers for peers, _ in sent(Settle, effects)] == [(1, 2)]

    def test_what_nobody_has_is_lost_once_everybody_said_so_and_announced(self):
        machine = node(3)
        orphan = publication(1, 1, dependencies=[Dependency(0, 0, 1, b"", (Start(1, bitmap(ALL)),))])
        machine.on_packet(0.0, 1, orphan)
        machine.on_peer_down(0.0, 0)
        verdict = (Life(0, 0),)
        assert delivered(machine.on_packet(1.0, 1, Settle(0, verdict, 1, False, verdict, ()))) == []
        effects = machine.on_packet(1.0, 2, Settle(0, verdict, 1, False, verdict, ()))
        assert of(Gap, effects)[0].missing == (MessageId(0, 0, 1),)
        assert delivered(effects) == [(1, 0, 1)]

    def test_an_announcement_with_fewer_verdicts_does_not_count(self):
        machine = node(3)
        orphan = publication(1, 1, dependencies=[Dependency(0, 0, 1, b"", (Start(1, bitmap(ALL)),))])
        machine.on_packet(0.0, 1, orphan)
        machine.on_peer_down(0.0, 0)
        machine.on_packet(1.0, 1, Settle(0, (), 1, False, (Life(0, 0),), ()))
        assert delivered(machine.on_packet(1.0, 2, Settle(0, (), 1, False, (), ()))) == []

    def test_whoever_holds_something_of_a_faulty_source_gives_it_to_those_who_miss_it(self):
        machine = node(1)
        machine.on_packet(0.0, 0, publication(0, 1))
        machine.on_peer_down(0.0, 0)
        effects = machine.on_packet(1.0, 3, Settle(0, (), 1, False, (Life(0, 0),), ()))
        assert [peers for peers, _ in sent(Publication, effects)] == [(3,)]

    def test_a_node_told_of_its_death_by_a_friend_returns_as_the_next_incarnation(self):
        machine = node(3)
        effects = machine.on_packet(0.0, 1, Obituary(0, (), 0, bitmap(0b0011)))
        assert of(Reincarnated, effects) == [Reincarnated(1, ("t",))]
        assert of(Gap, effects)
        assert [peers for peers, _ in sent(Hello, effects)] == [(0, 1, 2)]

    def test_between_strangers_the_fewer_give_way(self):
        machine = node(3)
        machine.on_peer_down(0.0, 0)
        machine.on_peer_down(0.0, 1)
        assert not of(Reincarnated, machine.on_packet(1.0, 1, Obituary(0, (), 0, bitmap(0b0011))))
        assert of(Reincarnated, machine.on_packet(1.0, 1, Obituary(0, (), 0, bitmap(0b0111))))

    def test_somebody_we_know_and_who_never_heard_of_us_began_alone_and_gives_way_if_it_has_fewer_friends(self):
        machine = node(3)
        effects = machine.on_packet(1.0, 1, Obituary(0, (), 0, bitmap(0b0010), stranger=True))
        assert not of(Reincarnated, effects)
        assert sent(Obituary, effects) == [((1,), Obituary(0, (), 0, bitmap(0b1101)))]

    def test_a_welcome_that_comes_after_one_began_alone_is_answered_as_by_a_stranger(self):
        machine = Cubecast(3, Parameters(2, ids=ALL))
        machine.on_start(0.0)
        machine.on_timer(2000.0, Timer.ALONE)
        effects = machine.on_packet(2001.0, 1, Welcome(0, (), 0, True, (Standing(1, 0, True),)))
        assert sent(Obituary, effects) == [((1,), Obituary(0, (), 0, bitmap(0b1000), stranger=True))]
        assert of(Reincarnated, machine.on_packet(2002.0, 1, Obituary(0, (), 0, bitmap(0b0111))))

    def test_a_newcomer_takes_part_when_everybody_alive_knows_it(self):
        machine = Cubecast(3, Parameters(2, founders=0b0111, ids=ALL))
        effects = machine.on_start(0.0)
        assert sent(Hello, effects) == [((0, 1, 2), Hello(0, ()))]
        assert machine.subscribe(0.0, "t") == []
        known = tuple(Standing(i, 0, True) for i in range(4))
        for peer in (0, 1, 2):
            effects = machine.on_packet(1.0, peer, Welcome(0, (), 0, True, known))
        assert sent(Wave, effects) == [((0, 1, 2), Wave(0, (), "t", 1, Entry(3, 0, 1, True)))]

    def test_a_lone_node_starts_after_its_patience(self):
        machine = Cubecast(3, Parameters(2, ids=ALL))
        machine.on_start(0.0)
        machine.subscribe(0.0, "t")
        assert of(Subscribed, machine.on_timer(2000.0, Timer.ALONE)) == [Subscribed("t")]

    def test_nodes_that_all_start_at_once_need_not_wait_for_one_that_takes_part(self):
        machine = starting_with(0b0110)
        machine.on_packet(1.0, 1, joins_too(1))
        assert not machine.is_active
        effects = machine.on_packet(2.0, 2, joins_too(1, 2))
        assert machine.is_active
        assert sent(Wave, effects) == [((1, 2), Wave(1, (), "t", 1, Entry(3, 1, 1, True)))]

    def test_they_wait_for_whomever_one_of_them_has_heard_of(self):
        machine = starting_with(0b0010)
        machine.on_packet(1.0, 1, joins_too(0, 1))
        assert not machine.is_active
        machine.on_packet(2.0, 0, joins_too(0, 1))
        assert machine.is_active

    def test_a_contact_that_says_nothing_may_take_part_so_the_patience_is_waited_out(self):
        machine = starting_with(0b0110)
        machine.on_packet(1.0, 1, joins_too(0, 1))
        machine.on_packet(2.0, 0, joins_too(0, 1))
        assert not machine.is_active
        machine.on_timer(2000.0, Timer.ALONE)
        assert machine.is_active

    def test_a_process_that_was_held_faulty_waits_for_one_that_takes_part_whatever_its_contacts_do(self):
        machine = starting_with(0b0010)
        machine.on_packet(1.0, 1, joins_too(1))
        assert machine.is_active
        assert of(Reincarnated, machine.on_packet(2.0, 1, Obituary(0, (), 1, bitmap(0b0111))))
        machine.on_packet(3.0, 1, Welcome(0, (), 2, False, (Standing(1, 0, True), Standing(3, 2, True))))
        assert not machine.is_active


def starting_with(contacts):
    machine = Cubecast(3, Parameters(2, ids=ALL), incarnation=1, contacts=contacts)
    machine.on_start(0.0)
    machine.subscribe(0.0, "t")
    return machine


def joins_too(*known):
    return Welcome(0, (), 1, False, tuple(Standing(i, int(i == 3), True) for i in (*known, 3)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 0},
        {"dimension": 2, "window": 0},
        {"dimension": 2, "max_batch_bytes": 0},
        {"dimension": 2, "retry": 0.0},
        {"dimension": 2, "founders": 1 << 4},
    ],
)
def test_parameters_are_validated(wrong):
    with pytest.raises(BadInput):
        Parameters(**wrong)
