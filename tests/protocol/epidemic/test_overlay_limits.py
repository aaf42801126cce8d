"""What others may make a process of an overlay do: call so many strangers, answer so many requests, read so much."""

from random import Random

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.protocol.effects import Send
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_packets import (
    MOST_FLOWS_KNOWN,
    MOST_IDS,
    MOST_PATH,
    MOST_ROUTE,
    MOST_STATES,
    Fetch,
    FlowId,
    Info,
    KeepAlive,
    Position,
    Standing,
)
from cubecast.protocol.epidemic.hyparview import (
    MOST_PASSIVE,
    MOST_REQUESTS,
    MOST_STRANGERS,
    WALK,
    Accept,
    Disconnect,
    ForwardJoin,
    Join,
    Neighbour,
    Probe,
    Refuse,
    Shuffle,
    ShuffleReply,
)

ME, PEER, STRANGER = 0, 1, 50
FLOW = FlowId("t", PEER, 0)


def member() -> Brisa:
    machine = Brisa(ME, BrisaParameters(), Random(1), contacts=(PEER,))
    machine.on_start(0.0)
    machine.on_packet(1.0, PEER, Accept())
    return machine


def called(effects) -> set[int]:
    """Processes that are sent something, besides the neighbour."""
    return {peer for effect in effects if isinstance(effect, Send) for peer in effect.peers} - {PEER}


@pytest.mark.parametrize(
    "packet",
    [lambda newcomer: ForwardJoin(newcomer, 0), lambda origin: Shuffle(origin, (), 0)],
    ids=["join", "shuffle"],
)
def test_a_neighbour_makes_it_call_so_many_processes_between_two_ticks(packet):
    machine = member()
    first, second = (
        {peer for number in numbers for peer in called(machine.on_packet(now, PEER, packet(number)))}
        for now, numbers in ((2.0, range(100, 200)), (3.0, range(200, 300)))
    )
    assert len(first) == MOST_STRANGERS and not second
    machine.on_timer(1000.0, "tick")
    assert called(machine.on_packet(1001.0, PEER, packet(400)))


@pytest.mark.parametrize(
    "packet", [Join(), Neighbour(True), Probe((), {}, {}, answer=False)], ids=lambda one: type(one).__name__
)
def test_requests_of_one_process_between_two_ticks_are_few(packet):
    machine = member()
    answered = [bool(machine.on_packet(2.0, STRANGER, packet)) for _ in range(100)]
    assert sum(answered) <= MOST_REQUESTS


def test_offered_names_are_remembered_only_so_far():
    machine = member()
    for start in range(100, 1000, MOST_IDS):
        machine.on_packet(2.0, PEER, ShuffleReply(tuple(range(start, start + MOST_IDS))))
    assert len(machine.overlay.passive) == MOST_PASSIVE


MANY_IDS = tuple(range(100, 100 + MOST_IDS + 1))
AT_ROOT = Position(0.0, 0, (PEER,), 1.0)
LONG = Position(1.0, 1, tuple(range(MOST_PATH + 1)), 1.0)


@pytest.mark.parametrize(
    "packet",
    [
        ShuffleReply(MANY_IDS),
        Refuse(MANY_IDS),
        Disconnect(MANY_IDS),
        Shuffle(PEER, MANY_IDS, WALK),
        ForwardJoin(STRANGER, 255),
        Info(FLOW, Standing(1, LONG, False)),
        Fetch(FLOW, 1, 2, tuple(range(MOST_ROUTE + 1))),
        KeepAlive(
            tuple((FlowId(f"t{one}", PEER, 0), Standing(1, AT_ROOT, False)) for one in range(MOST_STATES + 1)), 0.0
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_longer_than_any_correct_process_sends_is_refused(packet):
    with pytest.raises(RemoteProtocolError):
        member().on_packet(2.0, PEER, packet)


def test_streams_are_so_many():
    machine = member()

    def announce(first: int) -> None:
        states = tuple((FlowId(f"t{one}", PEER, 0), Standing(1, AT_ROOT, False)) for one in range(first, first + 64))
        machine.on_packet(2.0, PEER, KeepAlive(states, 0.0))

    for first in range(0, MOST_FLOWS_KNOWN, 64):
        announce(first)
    with pytest.raises(RemoteProtocolError):
        announce(MOST_FLOWS_KNOWN)
