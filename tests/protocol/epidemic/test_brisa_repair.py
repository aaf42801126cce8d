"""How a process of a stream that lost its parent finds another: whom it asks, whom it adopts, what it tells others."""

from random import Random

from cubecast.protocol.effects import Send
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_flow import PATIENCE_TICKS
from cubecast.protocol.epidemic.brisa_packets import Data, Feed, FlowId, Info, KeepAlive, Position, Standing
from cubecast.protocol.epidemic.hyparview import Accept, Neighbour

ROOT, ME, LEFT, RIGHT = range(4)
FLOW = FlowId("t", ROOT, 0)


def at(*path: int) -> Position:
    """The place of the last of these, a step each from the root."""
    return Position(float(len(path) - 1), len(path) - 1, path, 1.0)


def fed_by_the_root(**neighbours: tuple[int, ...]) -> Brisa:
    """Process 1 has message 1 from the root, and two more neighbours with places in the tree."""
    machine = Brisa(ME, BrisaParameters(), Random(1), contacts=(ROOT,), subscribed=["t"])
    machine.on_start(0.0)
    machine.on_packet(1.0, ROOT, Accept())
    machine.on_packet(1.0, ROOT, Data(FLOW, 1, (b"1",), at(ROOT), False, ()))
    for peer, path in ((LEFT, neighbours["left"]), (RIGHT, neighbours["right"])):
        machine.on_packet(2.0, peer, Neighbour(True))
        machine.on_packet(2.0, peer, Info(FLOW, Standing(1, at(*path), False)))
    assert machine.flows[FLOW].primary == ROOT
    return machine


def asked(effects) -> dict[int, bool]:
    """Who is asked to feed it, and whether it says that it is an orphan."""
    feeds = [(effect.peers[0], effect.packet) for effect in effects if isinstance(effect, Send)]
    return {peer: packet.standing.orphan for peer, packet in feeds if isinstance(packet, Feed) and packet.on}


def test_the_one_neighbour_that_is_not_below_is_asked():
    machine = fed_by_the_root(left=(ROOT, ME, LEFT), right=(ROOT, RIGHT))
    assert asked(machine.on_peer_down(3.0, ROOT)) == {RIGHT: False}


def test_who_is_as_far_is_adopted_with_the_next_message_and_not_before():
    """Its place may be below this process's by now, and two may ask each other at once."""
    machine = fed_by_the_root(left=(ROOT, ME, LEFT), right=(ROOT, RIGHT))
    machine.on_peer_down(3.0, ROOT)
    machine.on_packet(4.0, RIGHT, Info(FLOW, Standing(1, at(ROOT, RIGHT), False)))
    assert machine.flows[FLOW].primary is None
    machine.on_packet(5.0, RIGHT, Data(FLOW, 2, (b"2",), at(ROOT, RIGHT), False, ()))
    assert machine.flows[FLOW].primary == RIGHT


def test_where_all_are_below_everybody_is_asked_by_an_orphan():
    machine = fed_by_the_root(left=(ROOT, ME, LEFT), right=(ROOT, ME, RIGHT))
    assert asked(machine.on_peer_down(3.0, ROOT)) == {LEFT: True, RIGHT: True}


def test_a_child_of_an_orphan_repairs_in_turn():
    machine = fed_by_the_root(left=(ROOT, LEFT), right=(ROOT, RIGHT))
    effects = machine.on_packet(3.0, ROOT, Feed(FLOW, True, False, Standing(1, at(ROOT), True)))
    flow = machine.flows[FLOW]
    assert flow.primary is None and ROOT not in flow.parents
    assert len(asked(effects)) == 1 and ROOT not in asked(effects)


def test_a_neighbour_below_that_answers_is_not_adopted_and_the_next_one_is_asked():
    machine = fed_by_the_root(left=(ROOT, LEFT), right=(ROOT, RIGHT))
    (first,) = asked(machine.on_peer_down(3.0, ROOT))
    (second,) = {LEFT, RIGHT} - {first}
    effects = machine.on_packet(4.0, first, Info(FLOW, Standing(5, at(ROOT, ME, first), False)))
    assert machine.flows[FLOW].primary is None and asked(effects) == {second: False}


def test_who_does_not_answer_is_followed_by_the_next_one():
    machine = fed_by_the_root(left=(ROOT, LEFT), right=(ROOT, RIGHT))
    (first,) = asked(machine.on_peer_down(3.0, ROOT))
    (second,) = {LEFT, RIGHT} - {first}
    ticks = [asked(machine.on_timer(1000.0 * tick, "tick")) for tick in range(1, PATIENCE_TICKS + 1)]
    assert ticks[-1] == {second: False} and not any(ticks[:-1])


def test_without_a_parent_a_keep_alive_of_one_with_more_is_an_answer():
    machine = fed_by_the_root(left=(ROOT, ME, LEFT), right=(ROOT, ME, RIGHT))
    machine.on_peer_down(3.0, ROOT)
    machine.on_packet(4.0, LEFT, KeepAlive(((FLOW, Standing(2, at(ROOT, RIGHT, LEFT), False)),), 0.0))
    assert machine.flows[FLOW].primary == LEFT
