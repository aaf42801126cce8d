"""Aggregation at one forwarder, step by step. Of 8, node 2 hands node 3 what 0, 4 and 6 publish, not what 1 does."""

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters
from cubecast.protocol.cubecast.packets import Ack, Convoy, Part, Settle, Stable
from cubecast.protocol.cubecast.parameters import Aggregation, Timer
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Life, Start, bitmap
from cubecast.protocol.effects import Deliver, Send
from support.live_codec import decode, encode

ALL = 0xFF


def node(i, **changes):
    changes.setdefault("aggregation", Aggregation.ON)
    machine = Cubecast(i, Parameters(3, founders=ALL, ids=ALL, **changes), initial={"t": ALL})
    machine.on_start(0.0)
    return machine


def publication(source, counter=1, *, after=(), excused=0, starts=((1, ALL),), to=ALL, payload=b"x"):
    """`after`: the (source, counter) pairs it depends on, from which `excused` are excused."""
    return Publication(
        0,
        (),
        "t",
        MessageId(source, 0, counter),
        (payload,),
        bitmap(to),
        (),
        tuple(Start(at, bitmap(who)) for at, who in starts),
        tuple(Dependency(s, 0, c, bitmap(excused), ()) for s, c in after),
        0,
    )


def sent(effects):
    """What leaves for whom, as {peer: packets, each the ids (source, counter) in it}."""
    found = {}
    for effect in effects:
        if isinstance(effect, Send) and effect.packet.publication:
            packet = effect.packet
            inside = packet.messages if isinstance(packet, Convoy) else (packet,)
            for peer in effect.peers:
                found.setdefault(peer, []).append([(one.message.source, one.message.counter) for one in inside])
    return found


def step(machine, sender, packet):
    effects = machine.on_packet(0.0, sender, packet)
    machine.invariants()
    return effects


class TestPostponing:
    def test_an_effect_waits_for_its_cause_and_leaves_with_it(self):
        machine = node(2)
        assert sent(step(machine, 0, publication(0, after=[(6, 1)]))) == {}
        assert sent(step(machine, 6, publication(6))) == {0: [[(6, 1)]], 3: [[(6, 1), (0, 1)]]}

    def test_not_without_the_option(self):
        machine = node(2, aggregation=Aggregation.OFF)
        assert sent(step(machine, 0, publication(0, after=[(6, 1)]))) == {3: [[(0, 1)]]}

    def test_what_somebody_else_brings_to_the_child_is_not_waited_for(self):
        assert sent(step(node(2), 0, publication(0, after=[(1, 1)]))) == {3: [[(0, 1)]]}

    def test_the_previous_publication_of_the_source_is_a_cause_too(self):
        machine = node(2)
        assert sent(step(machine, 0, publication(0, 2))) == {}
        assert sent(step(machine, 0, publication(0, 1))) == {3: [[(0, 1), (0, 2)]]}

    def test_but_not_before_the_start_of_the_subscription(self):
        everybody_new = publication(0, 2, starts=((2, ALL),))
        assert sent(step(node(2), 0, everybody_new)) == {3: [[(0, 2)]]}

    def test_a_chain_leaves_together(self):
        machine = node(2)
        step(machine, 0, publication(0, after=[(6, 1)]))
        assert sent(step(machine, 6, publication(6, after=[(4, 1)]))) == {0: [[(6, 1)]]}, "3 gets what 4 says from here"
        assert sent(step(machine, 0, publication(4))) == {3: [[(4, 1), (6, 1), (0, 1)]]}

    def test_nobody_waits_for_what_a_child_is_excused_from(self):
        machine = node(2)
        assert sent(step(machine, 0, publication(0, after=[(6, 1)], excused=1 << 3))) == {3: [[(0, 1)]]}

    def test_several_children_wait_for_what_each_lacks(self):
        machine = node(0)
        assert sent(step(machine, 4, publication(4, after=[(6, 1)]))) == {2: [[(4, 1)]]}, "which gets the cause from 6"
        assert sent(step(machine, 4, publication(4, 3))) == {}
        assert sent(step(machine, 4, publication(4, 2))) == {2: [[(4, 2), (4, 3)]]}
        assert sent(step(machine, 2, publication(6))) == {1: [[(6, 1), (4, 1), (4, 2), (4, 3)]]}


class TestNeverForEver:
    @pytest.fixture
    def machine(self):
        machine = node(2)
        assert sent(step(machine, 0, publication(0, after=[(6, 1)]))) == {}
        return machine

    def test_the_source_of_the_cause_is_held_faulty(self, machine):
        assert sent(machine.on_peer_down(0.0, 6)) == {3: [[(0, 1)]]}

    def test_a_verdict_of_somebody_else_counts(self, machine):
        verdict = Settle(0, (), 1, False, (Life(6, 0),), ())
        assert sent(step(machine, 5, verdict)) == {3: [[(0, 1)]]}

    def test_its_own_source_is_held_faulty(self, machine):
        """What is left of a faulty source is pushed by settlement's rules, which do not wait."""
        machine.on_peer_down(0.0, 0)
        survey = [step(machine, peer, Settle(0, (), 1, False, (Life(0, 0),), ())) for peer in (1, 3, 4, 5, 6, 7)]
        assert any(3 in sent(effects) for effects in survey)

    def test_the_cause_is_stable(self, machine):
        assert sent(step(machine, 6, Stable(0, (), "t", 1))) == {3: [[(0, 1)]]}

    def test_the_second_retry_at_the_latest(self, machine):
        assert sent(machine.on_timer(1.0, Timer.RETRY)) == {}
        assert sent(machine.on_timer(2.0, Timer.RETRY)) == {3: [[(0, 1)]]}

    def test_the_child_is_replaced_while_it_waits(self, machine):
        assert sent(machine.on_peer_down(0.0, 3)) == {}
        acknowledged = machine.on_packet(0.0, 6, publication(6))
        assert sent(acknowledged) == {0: [[(6, 1)]]}

    def test_circular_claims_do_not_hang(self):
        machine = node(2)
        step(machine, 0, publication(0, after=[(6, 1)]))
        step(machine, 6, publication(6, after=[(0, 1)]))
        machine.on_timer(1.0, Timer.RETRY)
        assert 3 in sent(machine.on_timer(2.0, Timer.RETRY))


class TestConvoys:
    def convoy(self, *publications):
        return Convoy(0, (), "t", tuple(Part.of(one) for one in publications))

    def test_are_delivered_in_order_and_acknowledged_at_once(self):
        effects = step(node(3), 2, self.convoy(publication(6), publication(0, after=[(6, 1)])))
        assert [effect.message.source for effect in effects if isinstance(effect, Deliver)] == [6, 0]
        acknowledgements = [effect for effect in effects if isinstance(effect, Send) and type(effect.packet) is Ack]
        assert [(ack.peers, len(ack.packet.messages)) for ack in acknowledgements] == [((2,), 2)]

    def test_stay_together_as_far_as_their_ways_do(self):
        effects = step(node(2), 6, self.convoy(publication(6, 1), publication(6, 2)))
        assert sent(effects) == {0: [[(6, 1), (6, 2)]], 3: [[(6, 1), (6, 2)]]}

    def test_own_publications_of_one_step_share_packets(self):
        machine = node(0, max_batch=1)
        assert sent(machine.publish(0.0, "t", [b"a", b"b"])) == {peer: [[(0, 1), (0, 2)]] for peer in (4, 2, 1)}

    def test_are_cut_where_they_would_grow_too_large(self):
        machine = node(2, max_batch_bytes=300)
        step(machine, 0, publication(0, 3, payload=bytes(100)))
        step(machine, 0, publication(0, 2, payload=bytes(100)))
        assert sent(step(machine, 0, publication(0, 1))) == {3: [[(0, 1), (0, 2)], [(0, 3)]]}

    def test_survive_the_wire(self):
        convoy = self.convoy(publication(6), publication(0, 2, after=[(6, 1)], excused=5))
        assert decode(encode(convoy)) == convoy
        assert [part.payloads for part in decode(encode(convoy)).messages] == [(b"x",), (b"x",)]

    @pytest.mark.parametrize("parts", [(), (publication(6),), (publication(6), publication(9))], ids=len)
    def test_what_no_correct_peer_sends_is_refused(self, parts):
        machine = node(3)
        with pytest.raises(RemoteProtocolError):
            machine.on_packet(0.0, 2, self.convoy(*parts))
        assert [effect for effect in step(machine, 2, publication(6)) if isinstance(effect, Deliver)]
