"""StaN's machine, step by step, and in worlds where processes come and go."""

from random import Random

import pytest

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.effects import Deliver, Published, Send, SetTimer, Subscribed, Unsubscribed
from cubecast.protocol.epidemic.stan import ROUND, Stan, StanParameters
from cubecast.protocol.epidemic.stan_overlay import MOST_EARLY, Overlay, weight
from cubecast.protocol.epidemic.stan_packets import (
    Adopt,
    CollectReply,
    CollectWalk,
    Flooded,
    Given,
    Gone,
    Linked,
    Member,
    Pin,
    Seek,
    Unlinked,
    Unpin,
)
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate

PEERS = range(20)


def machine(node=0, view=(1, 2, 3), **parameters):
    return Stan(node, PEERS, StanParameters(**parameters), Random(1), views={"t": view})


def lightest(me, among):
    return min(among, key=lambda other: weight(me, other))


def test_a_round_sends_a_walk_into_every_topic():
    one = Stan(0, PEERS, StanParameters(repair=False), Random(1), views={"t": (1,), "u": (2,)})
    assert one.on_timer(5.0, ROUND) == [
        Send((1,), CollectWalk(0, "t", 4, ())),
        Send((2,), CollectWalk(0, "u", 4, ())),
        SetTimer(ROUND, 1005.0),
    ]


def test_a_walk_collects_goes_on_and_ends_with_a_reply():
    one = machine(view=(1,))
    assert one.on_packet(0.0, 9, CollectWalk(7, "t", 1, (9,))) == [Send((1,), CollectWalk(7, "t", 0, (9, 0, 1)))]
    assert one.on_packet(0.0, 9, CollectWalk(7, "t", 0, (9,))) == [Send((7,), CollectReply("t", (9, 0, 1)))]


def test_a_walk_does_not_return_to_its_source_but_with_the_reply():
    assert machine(view=(7,)).on_packet(0.0, 7, CollectWalk(7, "t", 4, ())) == [Send((7,), CollectReply("t", (0, 7)))]
    for seed in range(20):
        one = Stan(0, PEERS, StanParameters(), Random(seed), views={"t": (7, 8)})
        (sent,) = one.on_packet(0.0, 7, CollectWalk(7, "t", 4, ()))
        assert sent.peers == (8,), f"seed {seed}"


def test_the_lightest_stay_and_both_ends_of_a_link_know():
    one = machine(view=(1, 2, 3, 4, 5))
    effects = one.on_packet(0.0, 9, CollectReply("t", (6, 7, 8)))
    best = sorted(range(1, 9), key=lambda other: weight(0, other))[:5]
    assert one.overlays["t"].view == best
    new, old = [other for other in best if other > 5], [other for other in range(1, 6) if other not in best]
    assert new, "this reply brings nobody better: choose other ids"
    assert effects == [Send(tuple(new), Linked("t")), Send(tuple(old), Unlinked("t"))]


def test_nobody_becomes_its_own_neighbour():
    one = machine()
    one.on_packet(0.0, 9, CollectReply("t", (0, 4)))
    assert sorted(one.overlays["t"].view) == [1, 2, 3, 4]  # and a view below five fills up


def test_processes_held_faulty_leave_and_are_not_taken_back():
    one = machine()
    one.on_peer_down(0.0, 2)
    one.on_packet(0.0, 9, CollectReply("t", (2,)))
    assert one.overlays["t"].view == sorted((1, 3), key=lambda other: weight(0, other))


def test_who_is_in_one_view_is_pinned_until_it_is_in_two():
    one, keeper = machine(), lightest(0, (1, 2, 3))
    one.on_packet(0.0, 5, Linked("t"))
    assert one.on_timer(1.0, ROUND)[0] == Send((keeper,), Pin("t"))
    assert Send((keeper,), Pin("t")) not in one.on_timer(2.0, ROUND)
    one.on_packet(0.0, 6, Linked("t"))
    assert one.on_timer(3.0, ROUND)[0] == Send((keeper,), Unpin("t"))
    assert all(not isinstance(e, Send) or isinstance(e.packet, CollectWalk) for e in one.on_timer(4.0, ROUND))


def test_pins_are_told_to_walks_and_flooded_to_and_are_no_view():
    one = machine(view=(1,))
    one.on_packet(0.0, 8, Pin("t"))
    (sent,) = one.on_packet(0.0, 1, CollectWalk(7, "t", 0, ()))
    assert sent.packet.ids == (0, 1, 8) and one.overlays["t"].view == [1]
    packet = Flooded("t", MessageId(1, 0, 1), (b"x",))
    assert one.on_packet(0.0, 1, packet) == [Send((8,), packet), Deliver("t", packet.message, (b"x",))]
    one.on_packet(0.0, 8, Unpin("t"))
    assert one.overlays["t"].neighbours() == [1]


def test_a_newcomer_takes_over_links_and_nobody_loses_one():
    new = Stan(9, (1, 2), StanParameters(), Random(1))
    assert new.subscribe(0.0, "t") == [Send((1, 2), Seek("t")), SetTimer(("join", "t"), 1000.0)]
    for member in (1, 2, 2):
        assert not new.on_packet(1.0, member, Member("t"))
    chosen, added, told = new.on_timer(1000.0, ("join", "t"))
    assert sorted(chosen.peers) == [1, 2] and chosen.packet == Adopt("t", True)
    assert added.packet == Adopt("t", False) and told == Subscribed("t")
    one = machine(1, (2,))
    assert one.on_packet(0.0, 9, Adopt("t", True)) == [
        Send((2,), Unlinked("t")),
        Send((9,), Linked("t")),
        Send((9,), Given("t", 2)),
    ]
    assert new.on_packet(0.0, 1, Given("t", 2)) == [Send((2,), Linked("t"))]
    assert new.on_packet(0.0, 2, Given("t", 9)) == []
    new.overlays["t"].view.clear()
    assert new.on_packet(0.0, 2, Given("t", 9)) == [Send((2,), Linked("t"))]  # its giver instead of itself


def test_who_left_says_so_to_all_it_is_linked_with_and_to_latecomers():
    one = machine()
    one.on_packet(0.0, 5, Linked("t"))
    assert one.unsubscribe(0.0, "t") == [Send((1, 2, 3, 5), Gone("t")), Unsubscribed("t")]
    assert one.on_packet(0.0, 4, Linked("t")) == [Send((4,), Gone("t"))]
    other = machine(4, (0, 1))
    other.on_packet(0.0, 0, Gone("t"))
    assert other.overlays["t"].view == [1]


def test_a_message_is_delivered_and_sent_on_once():
    one = machine()
    packet = Flooded("t", MessageId(1, 0, 3), (b"x", b"y"))
    assert one.on_packet(0.0, 1, packet) == [Send((2, 3), packet), Deliver("t", packet.message, (b"x", b"y"))]
    assert one.on_packet(0.0, 2, packet) == []
    mine = Flooded("t", MessageId(0, 0, 1), (b"z",))
    assert one.publish(0.0, "t", [b"z"]) == [
        Published("t", 1, 1, ()),
        Send((1, 2, 3), mine),
        Deliver("t", mine.message, (b"z",)),
    ]
    with pytest.raises(LocalProtocolError, match="nothing was sent"):
        one.publish(0.0, "u", [b"z"])


def test_what_was_seen_takes_bounded_room_and_is_not_forgotten():
    overlay, mids = Overlay(), [MessageId(1, 0, counter) for counter in range(2, 6 * MOST_EARLY, 2)]
    assert all(overlay.is_new(mid, 1) for mid in mids)
    assert not any(overlay.is_new(mid, 1) for mid in mids)
    assert len(overlay._seen[1, 0].early) <= MOST_EARLY
    assert overlay.is_new(mids[-1]._replace(counter=6 * MOST_EARLY - 1), 1)


@pytest.mark.parametrize(
    "packet",
    [
        CollectWalk(0, "t", 1, ()),
        CollectWalk(7, "t", 31, ()),
        CollectWalk(7, "t", -1, ()),
        CollectWalk(7, "t", 1, (-1,)),
        CollectReply("t", tuple(range(5000))),
        Given("t", -1),
        Flooded("t", MessageId(1, 0, 0), (b"x",)),
        Flooded("t", MessageId(1, 0, 1), ()),
        "text",
    ],
)
def test_what_no_member_sends_is_refused_and_changes_nothing(packet):
    one = machine()
    with pytest.raises(RemoteProtocolError):
        one.on_packet(0.0, 1, packet)
    assert one.overlays["t"].view == [1, 2, 3]


def test_a_world_in_which_all_get_everything():
    config = SimConfig("stan", nodes=40, publishers="25%", messages=3, until=20_000.0, seed=3)
    figures = simulate(config)
    assert figures["deliveries"] == 10 * 3 * 40
