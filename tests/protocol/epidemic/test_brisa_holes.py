"""What came too early at one process of a stream, what it asks for, and what it answers: bounded, and asked once."""

from random import Random

import pytest

from cubecast.protocol.effects import Deliver, Gap, Send
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_packets import (
    Data,
    Fetch,
    FlowId,
    GuestData,
    GuestFetch,
    KeepAlive,
    Lost,
    Position,
    Standing,
)
from cubecast.protocol.epidemic.hyparview import Accept, Neighbour

ROOT, ME = 0, 1
FLOW = FlowId("t", ROOT, 0)
AT_ROOT = Position(0.0, 0, (ROOT,), 1.0)


def member(*, incarnation: int = 0, **parameters) -> Brisa:
    """Process 1, linked to process 0."""
    machine = Brisa(
        ME, BrisaParameters(**parameters), Random(1), incarnation=incarnation, contacts=(ROOT,), subscribed=["t"]
    )
    machine.on_start(0.0)
    machine.on_packet(1.0, ROOT, Accept())
    return machine


def data(first: int, *payloads: bytes, flow: FlowId = FLOW) -> Data:
    return Data(flow, first, payloads, AT_ROOT, False, ())


def sent(effects, kind) -> list:
    return [effect.packet for effect in effects if isinstance(effect, Send) and isinstance(effect.packet, kind)]


def delivered(effects) -> list[bytes]:
    return [payload for effect in effects if isinstance(effect, Deliver) for payload in effect.payloads]


def test_a_hole_is_asked_for_once_however_much_comes_after_it():
    machine = member()
    machine.on_packet(2.0, ROOT, data(1, b"1"))
    asked = [sent(machine.on_packet(3.0, ROOT, data(number, b"%d" % number)), Fetch) for number in range(3, 100)]
    assert [one for fetches in asked for one in fetches] == [Fetch(FLOW, 2, 2, (ME,))]
    assert delivered(machine.on_packet(4.0, ROOT, data(2, b"2"))) == [b"%d" % number for number in range(2, 100)]


def test_a_tick_asks_again():
    machine = member()
    machine.on_packet(2.0, ROOT, data(1, b"1"))
    machine.on_packet(3.0, ROOT, data(3, b"3"))
    assert sent(machine.on_timer(1000.0, "tick"), Fetch) == [Fetch(FLOW, 2, 2, (ME,))]


@pytest.mark.parametrize(("parameters", "most"), [({"buffer": 10}, 10), ({"buffer_bytes": 2048}, 20)])
def test_what_came_too_early_is_bounded_in_messages_and_in_bytes(parameters: dict[str, int], most: int):
    machine = member(**parameters)
    machine.on_packet(2.0, ROOT, data(1, bytes(100)))
    for number in range(3, 60):
        machine.on_packet(3.0, ROOT, data(number, bytes(100)))
    assert machine.flows[FLOW].held == most
    machine.on_packet(4.0, ROOT, data(2, bytes(100)))
    assert machine.flows[FLOW].have == 2 + most  # the earliest were held, and the rest will be fetched


def test_a_neighbour_that_fetches_again_and_again_gets_no_more_than_is_kept_until_the_next_tick():
    machine = member(buffer_bytes=10_000)
    for number in range(1, 101):
        machine.on_packet(2.0, ROOT, data(number, bytes(100)))
    fetch = Fetch(FLOW, 1, 100, (ROOT,))
    answers = [len(sent(machine.on_packet(3.0, ROOT, fetch), Data)) for _ in range(50)]
    assert answers[0] == 100 and sum(answers) <= 300
    machine.on_timer(1000.0, "tick")
    assert len(sent(machine.on_packet(1001.0, ROOT, fetch), Data)) == 100


def test_what_an_earlier_life_published_is_received_like_any_other_stream():
    """The others still have it: the process that came back is no root, whatever its id."""
    mine = FlowId("t", ME, 0)
    machine = member(incarnation=1)
    position = Position(1.0, 1, (ME, ROOT), 1.0)
    first = machine.on_packet(2.0, ROOT, Data(mine, 5, (b"5",), position, False, ()))
    second = machine.on_packet(3.0, ROOT, Data(mine, 6, (b"6",), position, False, ()))
    assert delivered(first) + delivered(second) == [b"5", b"6"]
    assert machine.flows[mine].primary == ROOT
    assert machine.published() == {}


def test_holes_of_a_guest_are_asked_for_once_too():
    machine = member(buffer=10)
    machine.on_packet(2.0, ROOT, data(1, b"1"))
    guest = FlowId("t", 7, 0)
    machine.on_packet(2.0, ROOT, GuestData(guest, 1, (b"1",), FLOW))
    asked = []
    for number in range(3, 60):
        asked += sent(machine.on_packet(3.0, ROOT, GuestData(guest, number, (b"",), FLOW)), GuestFetch)
    assert asked == [GuestFetch(guest, 1)]
    machine.on_packet(4.0, ROOT, GuestData(guest, 2, (b"2",), FLOW))
    assert machine.guests.all[guest].have == 12


def test_who_is_fed_by_a_process_that_began_behind_what_is_missing_fetches_through_it():
    """A neighbour counts what was before it came as had: it cannot bring that, and its primary can."""
    machine = member()
    machine.on_packet(2.0, ROOT, data(1, b"1"))
    ahead = KeepAlive(((FLOW, Standing(4, AT_ROOT, False)),), 0.0)
    machine.on_timer(1000.0, "tick")
    machine.on_packet(1001.0, ROOT, ahead)
    machine.on_timer(2000.0, "tick")
    assert sent(machine.on_packet(2001.0, ROOT, ahead), Fetch) == [Fetch(FLOW, 2, 4, (ME,))]


def test_a_part_that_is_kept_is_brought_and_the_part_before_it_is_asked_for_further_up():
    machine = member(buffer=2)
    for number in range(1, 6):
        machine.on_packet(2.0, ROOT, data(number, b"%d" % number))
    other = 2
    machine.on_packet(3.0, other, Neighbour(True))
    effects = machine.on_packet(4.0, other, Fetch(FLOW, 2, 5, (other,)))
    assert [packet.first for packet in sent(effects, Data)] == [4, 5]
    assert sent(effects, Fetch) == [Fetch(FLOW, 2, 3, (other, ME))]


def test_what_still_comes_is_not_given_up():
    """Whoever said that messages are gone did not know of those under way."""
    machine = member()
    machine.on_packet(2.0, ROOT, data(1, b"1"))
    machine.on_packet(3.0, ROOT, Lost(FLOW, 9, True, ()))
    machine.on_packet(4.0, ROOT, data(2, b"2"))
    gaps = [
        effect for tick in range(1, 30) for effect in machine.on_timer(1000.0 * tick, "tick") if isinstance(effect, Gap)
    ]
    assert not gaps and machine.flows[FLOW].have == 2
