"""Worked examples of the causal aggregation papers (ICPP 2018, "001"; thesis 2019, chapter 4), event by event.

Eight nodes. Trees used (001, Figure 4 and 5): that of 0 is 0 → 1, 2, 4; 2 → 3; 4 → 5, 6; 6 → 7; in that of 2, node 4
is reached through 6 and forwards to 5; in that of 1, node 4 is a leaf behind 5.
"""

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.effects import Deliver, Published, Send
from cubecast.protocol.hypercube.causal_aggregation import (
    Aggregation,
    CausalBroadcast,
    CausalParameters,
    PacketOrder,
    Tree,
)
from cubecast.protocol.hypercube.causal_packets import CausalMessage, CausalPacket
from cubecast.protocol.hypercube.topology import tree
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate

PAYLOAD = bytes(50)


def message(source, counter, *changed):
    return CausalMessage(MessageId(source, 0, counter), PAYLOAD, changed)


def packet(*messages):
    return CausalPacket("t", messages)


def send(peer, *messages):
    return Send((peer,), packet(*messages))


def deliver(m):
    return Deliver("t", m.message, (PAYLOAD,))


@pytest.fixture
def node():
    return CausalBroadcast(4, 3)


class TestFigure4:
    """001 §4.2: one function builds the trees and finds a node's children in any of them."""

    def test_the_tree_of_node_0(self):
        everyone = (1 << 8) - 1
        expected = {0: (1, 2, 4), 1: (), 2: (3,), 3: (), 4: (5, 6), 5: (), 6: (7,), 7: ()}
        assert tree(0, 3, everyone) == expected
        for node, children in expected.items():
            group = CausalBroadcast(node, 3).group("t")
            assert group.neighbours[: group.height(0)] == children

    def test_the_children_of_node_4_in_the_tree_of_2(self, node):
        group = node.group("t")
        assert group.neighbours[: group.height(2)] == (5,)

    def test_a_broadcast_goes_to_the_root_s_children(self):
        root = CausalBroadcast(0, 3)
        first = message(0, 1)
        assert root.publish(0.0, "t", [PAYLOAD]) == [
            Published("t", 1, 1, ()),
            deliver(first),
            send(1, first),
            send(2, first),
            send(4, first),
        ]


class TestFigure5:
    """001 §4.3, thesis §4.3: m2 → m1 → m0, seen from node 4."""

    m2 = message(2, 1)
    m1 = message(1, 1, (2, 1))
    m0 = message(0, 1, (1, 1), (2, 1))

    def test_effect_before_its_causes(self, node):
        # m0 goes to 6 at once; not to 5, which node 4 still owes m2
        assert node.on_packet(1.0, 0, packet(self.m0)) == [send(6, self.m0)]
        # with m2 both go to 5 in one packet, although m1 is missing: 5 does not get that from 4
        assert node.on_packet(2.0, 6, packet(self.m2)) == [send(5, self.m0, self.m2), deliver(self.m2)]
        assert node.on_packet(3.0, 5, packet(self.m1)) == [deliver(self.m1), deliver(self.m0)]
        assert not node.waiting()

    def test_in_causal_order_nothing_is_aggregated(self, node):
        assert node.on_packet(1.0, 6, packet(self.m2)) == [send(5, self.m2), deliver(self.m2)]
        assert node.on_packet(2.0, 0, packet(self.m0)) == [send(5, self.m0), send(6, self.m0)]
        assert node.on_packet(3.0, 5, packet(self.m1)) == [deliver(self.m1), deliver(self.m0)]

    def test_without_aggregation_everything_goes_on_at_once(self):
        node = CausalBroadcast(4, 3, CausalParameters(Aggregation.OFF))
        assert node.on_packet(1.0, 0, packet(self.m0)) == [Send((5, 6), packet(self.m0))]
        assert node.on_packet(2.0, 6, packet(self.m2)) == [Send((5,), packet(self.m2)), deliver(self.m2)]

    def test_the_order_in_the_packet_decides_whether_it_stays_whole(self):
        """In a cube of 16, node 4 forwards to 5 and 6 in the trees of 12 and 8, in the first to 0 as well."""
        cause = message(12, 1)
        effect = message(8, 1, (12, 1))
        assert CausalBroadcast(4, 4).on_packet(1.0, 12, packet(effect, cause))[:2] == [
            send(5, effect, cause),
            send(6, effect, cause),
        ]
        causal = CausalBroadcast(4, 4, CausalParameters(order=PacketOrder.CAUSAL))
        assert causal.on_packet(1.0, 12, packet(cause, effect))[:4] == [
            send(5, cause),
            send(6, cause),
            send(0, cause),
            send(5, effect),
        ]


class TestSection443:
    """Thesis §4.4.3: three messages of node 2, then one of node 0 that depends on them."""

    def test_a_gap_in_one_publisher_s_messages(self, node):
        first, second, third = message(2, 1), message(2, 2), message(2, 3)
        m01 = message(0, 1, (2, 3))
        assert node.on_packet(1.0, 6, packet(first)) == [send(5, first), deliver(first)]
        assert node.on_packet(2.0, 6, packet(third)) == []
        assert node.on_packet(3.0, 0, packet(m01)) == [send(6, m01)]
        group = node.group("t")
        assert group.seen[2] == 1
        assert group.pending() == [m01.message, third.message]
        effects = node.on_packet(4.0, 6, packet(second))
        assert effects[0] == send(5, third, m01, second)
        assert effects[1:] == [deliver(second), deliver(third), deliver(m01)]
        assert group.seen[2] == 3

    def test_nothing_is_sent_twice(self, node):
        m21 = message(2, 1)
        m01, m02 = message(0, 1, (2, 1)), message(0, 2)
        assert node.on_packet(1.0, 0, packet(m01)) == [send(6, m01)]
        assert node.on_packet(2.0, 0, packet(m02)) == [send(6, m02)]
        effects = node.on_packet(3.0, 6, packet(m21))
        assert effects == [send(5, m01, m02, m21), deliver(m21), deliver(m01), deliver(m02)]


class TestSizes:
    """Thesis §4.5.1 and §4.5.3."""

    def test_two_messages_take_at_least_136_bytes(self):
        assert packet(message(0, 1), message(1, 1, (0, 1))).size == 136

    def test_a_packet_that_would_exceed_the_mtu_is_split(self):
        node = CausalBroadcast(4, 3, CausalParameters(mtu=20 + 2 * 60))
        cause = message(2, 1)
        effects = [message(0, k, (2, 1)) if k == 1 else message(0, k) for k in (1, 2, 3)]
        for effect in effects:
            node.on_packet(1.0, 0, packet(effect))
        sent = [each for each in node.on_packet(2.0, 6, packet(cause)) if isinstance(each, Send)]
        assert sent == [send(5, effects[0], effects[1]), send(5, effects[2], cause)]

    def test_only_changed_entries_travel(self):
        node = CausalBroadcast(3, 3)
        node.on_packet(1.0, 2, packet(message(2, 1)))
        assert node.publish(2.0, "t", [PAYLOAD])[0].dependencies == (MessageId(2, 0, 1),)
        assert node.publish(3.0, "t", [PAYLOAD])[0].dependencies == ()


class TestSingleTree:
    """Thesis §4.5.6: everybody broadcasts through the tree of node 0."""

    def test_the_publisher_hands_over_and_forwards_its_own_message_later(self):
        node = CausalBroadcast(4, 3, CausalParameters(tree=Tree.SINGLE))
        own = message(4, 1)
        assert node.publish(1.0, "t", [PAYLOAD]) == [Published("t", 1, 1, ()), deliver(own), send(0, own)]
        # an effect of it overtakes it and has to wait: both are for 5 and 6
        effect = message(7, 1, (4, 1))
        assert node.on_packet(2.0, 0, packet(effect)) == [deliver(effect)]
        both = (effect, own)
        assert node.on_packet(3.0, 0, packet(own)) == [send(5, *both), send(6, *both)]


@pytest.mark.parametrize("nodes", [8, 32, 64])
def test_without_aggregation_every_tree_costs_n_minus_1_packets(nodes):
    """Thesis §4.5.2."""
    config = SimConfig("causal-broadcast", nodes=nodes, publishers="100%", settings={"aggregation": "off"})
    assert simulate(config)["packets"] == nodes * (nodes - 1)
