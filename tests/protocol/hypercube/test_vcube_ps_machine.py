"""VCube-PS at one node: these inputs, these effects."""

import pytest

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.effects import Acknowledged, Cut, Deliver, Observe, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.hypercube.delivery import FirstReception
from cubecast.protocol.hypercube.packets import Entry, Operation, OperationAck, Pub, PubAck, Sub, Test, Uns
from cubecast.protocol.hypercube.subscribers import Roster, Subscribers
from cubecast.protocol.hypercube.vcube_ps import VCubePS

NOBODY: tuple[MessageId, ...] = ()


def node(me: int, members: tuple[int, ...] = (), mode: FirstReception = FirstReception.BLOCK) -> VCubePS:
    initial = {"t": Roster(members)} if members else {}
    return VCubePS(me, 3, 0xFF, first_reception=mode, initial=initial)


def mid(source: int, counter: int) -> MessageId:
    return MessageId(source, 0, counter)


def pub(source: int, counter: int, *barrier: MessageId) -> Pub:
    return Pub("t", mid(source, counter), (b"x",), barrier)


def test_publishing_delivers_to_oneself_and_sends_to_the_first_subscriber_of_each_cluster():
    machine = node(2, (0, 2, 3, 5, 7))
    packet = Pub("t", mid(2, 1), (b"x",), NOBODY)
    assert machine.publish(0, "t", [b"x"]) == [
        Published("t", 1, 1, ()),
        Deliver("t", mid(2, 1), (b"x",)),
        Send((3, 0, 7), packet),
    ]


def test_the_next_publication_waits_for_the_last_acknowledgement():
    machine = node(0, (0, 1, 2))
    machine.publish(0, "t", [b"x"])
    assert machine.publish(0, "t", [b"y"]) == []
    assert machine.on_packet(1, 1, PubAck("t", mid(0, 1))) == []
    assert machine.on_packet(2, 2, PubAck("t", mid(0, 1))) == [
        Acknowledged("t", 1),
        Published("t", 2, 1, (mid(0, 1),)),
        Deliver("t", mid(0, 2), (b"y",)),
        Send((1, 2), Pub("t", mid(0, 2), (b"y",), (mid(0, 1),))),
    ]


def test_a_batch_is_one_publication_after_the_other():
    machine = node(0, (0,))
    effects = machine.publish(0, "t", [b"x", b"y"])
    assert effects == [
        Published("t", 1, 1, ()),
        Deliver("t", mid(0, 1), (b"x",)),
        Acknowledged("t", 1),
        Published("t", 2, 1, (mid(0, 1),)),
        Deliver("t", mid(0, 2), (b"y",)),
        Acknowledged("t", 2),
    ]


def test_a_leaf_acknowledges_at_once():
    assert node(1, (0, 1, 2)).on_packet(0, 0, pub(0, 1)) == [
        Send((0,), PubAck("t", mid(0, 1))),
        Deliver("t", mid(0, 1), (b"x",)),
    ]


def test_an_inner_node_forwards_and_acknowledges_after_its_last_child():
    machine = node(4, tuple(range(8)))
    packet = pub(0, 1)
    assert machine.on_packet(0, 0, packet) == [Send((5, 6), packet), Deliver("t", mid(0, 1), (b"x",))]
    assert machine.on_packet(1, 6, PubAck("t", mid(0, 1))) == []
    assert machine.on_packet(2, 5, PubAck("t", mid(0, 1))) == [Send((0,), PubAck("t", mid(0, 1)))]
    assert machine.waiting() == []


def test_a_message_is_held_until_its_barrier_is_satisfied():
    machine = node(1, (0, 1, 2))
    assert machine.on_packet(0, 0, pub(0, 1, mid(2, 1))) == [Send((0,), PubAck("t", mid(0, 1)))]
    assert len(machine.waiting()) == 1
    assert machine.on_packet(1, 0, pub(2, 1)) == [
        Send((0,), PubAck("t", mid(2, 1))),
        Deliver("t", mid(2, 1), (b"x",)),
        Deliver("t", mid(0, 1), (b"x",)),
    ]
    assert machine.waiting() == []


def test_a_later_first_reception_tells_that_a_dependency_is_not_for_us():
    machine = node(1, (0, 1, 2))
    machine.on_packet(0, 0, pub(0, 1, mid(2, 1)))
    assert machine.on_packet(1, 0, pub(2, 2, mid(2, 1))) == [
        Send((0,), PubAck("t", mid(2, 2))),
        Cut("t", mid(2, 1)),
        Deliver("t", mid(0, 1), (b"x",)),
        Deliver("t", mid(2, 2), (b"x",)),
    ]


def test_the_other_reading_does_not_wait_for_a_source_never_heard_of():
    machine = node(1, (0, 1, 2), FirstReception.PASS)
    effects = machine.on_packet(0, 0, pub(0, 1, mid(2, 1)))
    assert effects[-1] == Deliver("t", mid(0, 1), (b"x",))


def test_a_cut_is_stated_once_even_when_the_first_reception_is_forgotten():
    machine = node(1, (0, 1, 2))
    assert Cut("t", mid(0, 2)) in machine.on_packet(0, 0, pub(0, 3))
    machine.on_packet(1, 0, Uns("t", 0, 1))
    machine.on_packet(2, 0, Sub("t", 0, 2))
    assert machine.on_packet(3, 0, pub(0, 4)) == [
        Send((0,), PubAck("t", mid(0, 4))),
        Deliver("t", mid(0, 4), (b"x",)),
    ]


def test_the_barrier_of_a_publication_is_what_was_delivered_since():
    machine = node(1, (0, 1, 2))
    machine.on_packet(0, 0, pub(0, 1))
    machine.on_packet(0, 3, pub(2, 1))
    assert machine.publish(1, "t", [b"x"])[0] == Published("t", 1, 1, (mid(0, 1), mid(2, 1)))


def test_subscribing_asks_everybody_and_learns_from_the_acknowledgements():
    machine = node(0)
    sub = Sub("t", 0, 1)
    assert machine.subscribe(0, "t") == [Send((1, 2, 4), sub)]
    assert machine.publish(0, "t", [b"x"]) == [], "queued behind the subscription"
    ack = ("t", Operation.SUB, 0, 1)
    assert machine.on_packet(1, 1, OperationAck(*ack, (Entry(1, Operation.SUB, 1),))) == []
    assert machine.on_packet(2, 2, OperationAck(*ack, ())) == []
    assert machine.on_packet(3, 4, OperationAck(*ack, (Entry(6, Operation.SUB, 3),))) == [
        Subscribed("t"),
        Published("t", 1, 1, ()),
        Deliver("t", mid(0, 1), (b"x",)),
        Send((1, 6), Pub("t", mid(0, 1), (b"x",), NOBODY)),
    ]


def test_a_subscriber_adds_itself_to_the_acknowledgement_of_a_sub_only():
    member, stranger = node(1, (1, 2)), node(1)
    entry = Entry(1, Operation.SUB, 0)
    assert member.on_packet(0, 0, Sub("t", 0, 1)) == [Send((0,), OperationAck("t", Operation.SUB, 0, 1, (entry,)))]
    assert stranger.on_packet(0, 0, Sub("t", 0, 1)) == [Send((0,), OperationAck("t", Operation.SUB, 0, 1, ()))]
    assert member.on_packet(1, 0, Uns("t", 0, 2)) == [Send((0,), OperationAck("t", Operation.UNS, 0, 2, ()))]


def test_leaving_goes_to_the_subscribers_and_ends_deliveries():
    machine = node(0, (0, 1, 3))
    uns = Uns("t", 0, 1)
    assert machine.unsubscribe(0, "t") == [Send((1, 3), uns)]
    assert machine.on_packet(1, 1, pub(1, 1)) == [Send((1,), PubAck("t", mid(1, 1)))], "no delivery any more"
    machine.on_packet(2, 1, OperationAck("t", Operation.UNS, 0, 1, ()))
    assert machine.on_packet(3, 3, OperationAck("t", Operation.UNS, 0, 1, ())) == [Unsubscribed("t")]


def test_who_left_still_relays_to_those_it_knew():
    machine = node(2, (0, 2, 3))
    machine.unsubscribe(0, "t")
    packet = pub(0, 1)
    assert machine.on_packet(1, 0, packet) == [Send((3,), packet)]


def test_returning_states_the_own_cut():
    machine = node(0, (0,))
    machine.publish(0, "t", [b"x"])
    assert machine.unsubscribe(1, "t") == [Unsubscribed("t")]
    machine.subscribe(2, "t")
    for child in (1, 2, 4):
        machine.on_packet(3, child, OperationAck("t", Operation.SUB, 0, 2, ()))
    assert machine.publish(4, "t", [b"x"])[:2] == [Cut("t", mid(0, 1)), Published("t", 2, 1, (mid(0, 1),))]


def test_illegal_requests_do_nothing():
    machine = node(0, (0, 1))
    for request in (lambda: machine.subscribe(0, "t"), lambda: machine.unsubscribe(0, "u")):
        with pytest.raises(LocalProtocolError, match="nothing was done"):
            request()
    with pytest.raises(LocalProtocolError, match="only subscribers publish"):
        machine.publish(0, "u", [b"x"])
    with pytest.raises(LocalProtocolError, match="sets no timers"):
        machine.on_timer(0, "tea")
    machine.unsubscribe(0, "t")
    with pytest.raises(LocalProtocolError, match="still leaving"):
        machine.subscribe(0, "t")


def test_strange_packets_are_refused_and_stray_acknowledgements_observed():
    machine = node(0, (0, 1))
    with pytest.raises(RemoteProtocolError, match="does not know"):
        machine.on_packet(0, 1, Test(1, 0))
    for stray in (PubAck("t", mid(0, 9)), OperationAck("t", Operation.SUB, 0, 9, ())):
        effects = machine.on_packet(0, 1, stray)
        assert [type(effect) for effect in effects] == [Observe]
        assert effects[0].kind == "discard"


def test_nothing_happens_by_itself():
    machine = node(0, (0, 1))
    assert machine.on_start(0) == machine.on_peer_down(0, 1) == machine.on_peer_up(0, 1) == []
    machine.invariants()


# Views


def test_the_newest_operation_of_a_node_wins():
    view = Subscribers(0, 3, Roster((0, 1)))
    assert view.children_below(None) == (1,)
    view.update(Entry(1, Operation.UNS, 4))
    view.update(Entry(1, Operation.SUB, 3))
    assert view.children_below(None) == () and view.subscribed
    view.update(Entry(1, Operation.SUB, 5))
    view.update(Entry(5, Operation.SUB, 1))
    assert view.children_below(None) == (1, 5)
    assert view.entry(1) == Entry(1, Operation.SUB, 5) and view.entry(7) is None
    view.update(Entry(0, Operation.UNS, 1))
    assert not view.subscribed
