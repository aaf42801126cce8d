"""The single-tree baselines at one node, and where their trees lead."""

import pytest

from cubecast.errors import LocalProtocolError, RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.effects import Deliver, Published, Send, Subscribed, Unsubscribed
from cubecast.protocol.hypercube.packets import Pub, PubAck, Sub, Uns
from cubecast.protocol.hypercube.srpt import Brokers, Srpt, spread
from cubecast.protocol.hypercube.subscribers import Roster

EVERYONE = 0xFF


def plain(node: int, members: tuple[int, ...], root: int = 0) -> Srpt:
    return Srpt(node, 3, Brokers(EVERYONE, EVERYONE), lambda topic: root, initial={"t": Roster(members)})


def brokered(node: int, members: tuple[int, ...], brokers: int, root: int = 0) -> Srpt:
    return Srpt(node, 3, spread(EVERYONE, brokers)[0], lambda topic: root, initial={"t": Roster(members)})


def receivers(make, members: tuple[int, ...], publisher: int) -> list[int]:
    """Everybody who receives a publication, relays too, in order of arrival."""
    machines = {node: make(node, members) for node in range(8)}
    arrived: list[int] = []
    worklist = [(publisher, effect) for effect in machines[publisher].publish(0, "t", [b"x"])]
    while worklist:
        node, effect = worklist.pop(0)
        for peer in effect.peers if isinstance(effect, Send) else ():
            arrived.append(peer)
            worklist += [(peer, further) for further in machines[peer].on_packet(0, node, effect.packet)]
    return arrived


def test_a_publisher_hands_its_message_to_the_root():
    machine = plain(3, (0, 3))
    message = MessageId(3, 0, 1)
    packet = Pub("t", message, (b"x",), ())
    assert machine.publish(0, "t", [b"x"]) == [
        Published("t", 1, 1, ()),
        Deliver("t", message, (b"x",)),
        Send((0,), packet),
    ]
    assert machine.on_packet(1, 2, packet) == [], "its own message comes back down the tree"


def test_branches_without_subscribers_are_cut_and_the_way_to_one_is_relayed():
    root = plain(0, (0, 6))
    packet = Pub("t", MessageId(6, 0, 1), (b"x",), ())
    assert root.on_packet(0, 6, packet) == [Send((4,), packet), Deliver("t", MessageId(6, 0, 1), (b"x",))]
    assert plain(4, (0, 6)).on_packet(1, 0, packet) == [Send((6,), packet)], "4 does not subscribe: a relay"


def test_subscriptions_are_confirmed_at_once_and_travel_the_tree():
    machine = plain(5, (0,))
    assert machine.subscribe(0, "t") == [Subscribed("t"), Send((0,), Sub("t", 5, 1))]
    root = plain(0, (0,))
    assert root.on_packet(0, 5, Sub("t", 5, 1)) == [Send((1, 2, 4), Sub("t", 5, 1))]
    assert root.topics["t"].view.mask == 0b100001
    assert machine.unsubscribe(1, "t") == [Unsubscribed("t"), Send((0,), Uns("t", 5, 2))]


@pytest.mark.parametrize("brokers", range(1, 9))
@pytest.mark.parametrize("members", [(0, 7), (6, 7), (1, 2, 5), tuple(range(8))])
def test_every_subscriber_receives_once_whatever_the_number_of_brokers(brokers: int, members: tuple[int, ...]):
    def make(node: int, group: tuple[int, ...]) -> Srpt:
        return brokered(node, group, brokers, root=min(1, brokers - 1))

    for publisher in members:
        arrived = receivers(make, members, publisher)
        for member in members:
            assert arrived.count(member) <= 2  # the root may hear of a message on its way up only
            assert arrived.count(member) >= 1 or member == publisher


def test_a_broker_serves_its_attached_subscribers_directly():
    arrived = receivers(lambda node, members: brokered(node, members, 2), (3, 5, 6), publisher=3)
    assert arrived == [0, 1, 6, 5], "root 0, broker 1, then 6 (attached to 0) and 5 (attached to 1)"


def test_illegal_requests_and_packets():
    machine = plain(1, (0,))
    with pytest.raises(LocalProtocolError):
        machine.publish(0, "t", [b"x"])
    with pytest.raises(LocalProtocolError):
        machine.unsubscribe(0, "t")
    with pytest.raises(LocalProtocolError):
        plain(0, (0,)).subscribe(0, "t")
    with pytest.raises(LocalProtocolError):
        machine.on_timer(0, "tea")
    with pytest.raises(RemoteProtocolError):
        machine.on_packet(0, 1, PubAck("t", MessageId(0, 0, 1)))
    assert machine.on_start(0) == machine.on_peer_down(0, 1) == machine.on_peer_up(0, 1) == machine.waiting() == []
