"""Packets survive the wire; whatever else arrives is refused with one kind of error."""

from contextlib import suppress
from typing import get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.families import FAMILIES, find
from cubecast.protocol.hypercube.packets import (
    Entry,
    Membership,
    Operation,
    OperationAck,
    Pub,
    PubAck,
    Sub,
    Test,
    TestReply,
    Uns,
)
from cubecast.wire.codec import MAX_PACKET_BYTES, Codec, codec_of
from support.live_codec import LIVE

CODEC = Codec((Pub, PubAck, Sub, Uns, OperationAck, Test, TestReply, Membership))
decode, encode = CODEC.decode, CODEC.encode
NODES = st.integers(0, 8191)
COUNTERS = st.integers(0, 2**62)
IDS = st.builds(MessageId, NODES, st.integers(0, 9), COUNTERS)
OPERATIONS = st.sampled_from(Operation)
ENTRY = st.builds(Entry, NODES, OPERATIONS, COUNTERS)
ENTRIES = st.lists(ENTRY, max_size=5).map(tuple)
PACKETS = st.one_of(
    st.builds(Pub, st.text(), IDS, st.lists(st.binary(), max_size=3).map(tuple), st.lists(IDS, max_size=5).map(tuple)),
    st.builds(PubAck, st.text(), IDS),
    st.builds(Sub, st.text(), NODES, COUNTERS),
    st.builds(Uns, st.text(), NODES, COUNTERS),
    st.builds(OperationAck, st.text(), OPERATIONS, NODES, COUNTERS, ENTRIES),
    st.builds(Test, COUNTERS, st.integers(-1, 99)),
    st.builds(TestReply, COUNTERS, st.lists(st.integers(-1, 99), max_size=8).map(tuple)),
    st.builds(Membership, st.lists(st.tuples(st.text(), ENTRY), max_size=3).map(tuple)),
)


@given(PACKETS)
def test_what_is_encoded_decodes_to_the_same(packet):
    frame = encode(packet)
    decoded = decode(frame)
    assert decoded == packet and type(decoded) is type(packet)
    assert decoded.frame == frame and encode(decoded) == frame


@pytest.mark.interpreted  # compiled classes do not tell
@pytest.mark.parametrize("cls", [Publication, Direct])
def test_publications_travel_as_they_say_although_they_are_not_asked(cls):
    said = get_type_hints(cls)
    types = LIVE.field_types(cls)
    assert types == {name: said[name] for name in types}
    assert said.keys() - types.keys() == {"frame", "born", "publication", "bundle"}, "what a driver keeps stays here"


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_are_a_packet(data):
    try:
        packet = decode(data)
    except RemoteProtocolError:
        return
    assert decode(encode(packet)) == packet


@given(PACKETS, st.data())
def test_damaged_packets_are_refused_or_are_another_packet(packet, data):
    frame = bytearray(encode(packet))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    for damaged in (frame, frame[:-1], frame + b"\0"):
        with suppress(RemoteProtocolError):
            decode(bytes(damaged))


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x00", b"\x03\x93\xa1t\x01", b"\x02\x93\xa2\xff\xff\x01\x01"])
def test_these_are_no_packets(data: bytes):
    with pytest.raises(RemoteProtocolError):
        decode(data)


@pytest.mark.parametrize("source", [-1, 8192, 2**62])
def test_sources_that_cannot_exist_are_refused_before_they_become_masks(source):
    message = MessageId(1, 0, 1)
    frame = encode(Pub("t", message, (b"x",), ()))
    assert decode(frame) == Pub("t", message, (b"x",), ())
    for wrong in ([*MessageId(source, 0, 1)], [1, 0, 1]):
        barrier = [[source, 0, 1]] if wrong[0] == 1 else []
        with pytest.raises(RemoteProtocolError, match="source"):
            decode(frame[:1] + msgspec.msgpack.encode(["t", wrong, [b"x"], barrier]))


def test_oversized_packets_are_refused_before_they_are_looked_at():
    with pytest.raises(RemoteProtocolError, match="bytes"):
        decode(bytes(MAX_PACKET_BYTES + 1))


def test_a_family_has_tags_of_its_own_and_refuses_the_packets_of_others():
    for name in FAMILIES:
        codec = codec_of(find(name))
        assert [codec.tag(cls) for cls in codec.packets] == [k for k, cls in enumerate(find(name).packets) if cls]
    frame = codec_of(find("vcube-ps")).encode(Sub("t", 1, 1))
    with pytest.raises(RemoteProtocolError, match="tag"):
        LIVE.decode(frame)


def test_the_tags_of_live_nodes_stay():
    """They are in logs on disk and between nodes of different versions."""
    tags = {cls.__name__: LIVE.tag(cls) for cls in LIVE.packets}
    assert (tags["Publication"], tags["Test"], tags["Inquiry"], tags["Direct"]) == (10, 20, 22, 26)
