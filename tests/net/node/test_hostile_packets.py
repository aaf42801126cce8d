"""What no correct peer sends is refused or survived, by the decoder, by the machine, and by a living node."""

import asyncio

from bench.hostile_machine import torment
from bench.hostile_packets import hostile_frame
from bench.wire_fuzz import fuzz
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.handshake import decode_answer, decode_opening
from support.live_codec import decode, encode


def pick_from(data: st.DataObject):
    return lambda n: data.draw(st.integers(0, n - 1))


@settings(max_examples=200)
@given(st.data())
def test_frames_are_refused_or_are_packets(data):
    try:
        packet = decode(hostile_frame(pick_from(data)))
    except RemoteProtocolError:
        return
    assert decode(encode(packet)) == packet


@settings(max_examples=60)
@given(st.data())
def test_a_machine_refuses_or_survives_what_it_is_told(data):
    torment(pick_from(data), 6)


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_a_machine_survives_long_stories(random):
    torment(random.randrange, 12)


@settings(max_examples=300)
@given(st.binary(max_size=120))
def test_greetings_and_answers_are_refused_or_understood(frame):
    for decoded in (decode_opening, decode_answer):
        try:
            decoded(frame)
        except RemoteProtocolError as error:
            assert "not" in str(error)


def test_a_living_node_hangs_up_and_goes_on():
    found = asyncio.run(fuzz(400, seed=1))
    assert found.frames == 400 and found.unanswered == []
    assert found.sent > 10 and found.received.delivered == found.sent
    assert found.ok, found
    assert found.growth < 2_000_000
