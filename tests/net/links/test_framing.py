"""Frames survive any cutting of the stream; whatever is damaged is noticed before it is used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.framing import HEADER, MOST_PIECES, Splitter, framed
from cubecast.net.settings.fields import MAX_FRAME

FRAMES = st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=6)


@given(FRAMES, st.lists(st.integers(1, 40), min_size=1, max_size=50))
def test_frames_come_out_however_the_stream_is_cut(frames, sizes):
    stream, splitter, found = b"".join(map(framed, frames)), Splitter(), []
    while stream:
        size = sizes[len(found) % len(sizes)]
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == frames


@given(FRAMES, st.data())
def test_a_changed_byte_is_never_delivered(frames, data):
    stream = bytearray(b"".join(map(framed, frames)))
    stream[data.draw(st.integers(0, len(stream) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RemoteProtocolError):
        Splitter().feed(bytes(stream))


@given(st.binary(max_size=300), st.integers(1, 64))
def test_noise_is_refused_and_never_kept(noise, size):
    splitter = Splitter(most=100)
    try:
        for at in range(0, len(noise), size):
            splitter.feed(noise[at : at + size])
            assert splitter._size <= HEADER.size + 100 + size
    except RemoteProtocolError:
        pass


@pytest.mark.parametrize("length", [0, MAX_FRAME + 1, 2**32 - 1])
def test_impossible_lengths_are_refused_before_anything_is_stored(length):
    with pytest.raises(RemoteProtocolError, match="1 to"):
        Splitter().feed(HEADER.pack(length, length ^ 0xFFFFFFFF, 0))


def test_a_length_that_contradicts_itself_is_refused_at_once():
    with pytest.raises(RemoteProtocolError, match="twice"):
        Splitter().feed(HEADER.pack(100, 100, 0))


def test_a_frame_that_comes_byte_by_byte_is_not_kept_as_so_many_pieces():
    splitter, stream = Splitter(), framed(bytes(range(256)) * 8)
    for at in range(len(stream) - 1):
        assert splitter.feed(stream[at : at + 1]) == []
        assert len(splitter._pieces) <= MOST_PIECES
    assert splitter.feed(stream[-1:]) == [bytes(range(256)) * 8]


def test_a_large_frame_is_put_together_from_any_two_pieces():
    large = bytes(range(256)) * 100
    stream = framed(large) + framed(b"next")
    for cut in (1, HEADER.size, HEADER.size + 1, 5000, len(large)):
        splitter = Splitter()
        assert splitter.feed(stream[:cut]) + splitter.feed(stream[cut:]) == [large, b"next"]
