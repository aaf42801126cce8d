"""A byte stream cut into frames: a header of sixteen bytes, then the frame. Checked before anything is used.

The header holds the frame's length, the same with all bits inverted, and the frame's checksum. TCP's own lets one
damaged segment in some ten thousand pass, and a changed byte inside a payload would look like any other payload.
The inverted length tells a damaged length at once, instead of waiting for a frame that never ends.
"""

from struct import Struct
from typing import Final

from cubecast.checksums import checksum
from cubecast.errors import RemoteProtocolError
from cubecast.net.settings.fields import MAX_FRAME

HEADER: Final = Struct(">IIQ")
HEADER_BYTES: Final = 16
_INVERTED: Final = 0xFFFFFFFF
_TLS: Final = 0x1603
"""How a caller that speaks TLS begins: a handshake record, version 3 of what was SSL."""
_HTTP_ANSWER: Final = int.from_bytes(b"HTTP")
_HTTP_REQUESTS: Final = tuple(int.from_bytes(word) for word in (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI"))


MOST_PIECES: Final = 64
"""More are joined before the frame is complete: each piece takes some memory of its own."""

_pack: Final = HEADER.pack
_unpack: Final = HEADER.unpack_from


def header(frame: bytes) -> bytes:
    length = len(frame)
    return _pack(length, length ^ _INVERTED, checksum(frame))


def framed(frame: bytes) -> bytes:
    return header(frame) + frame


class Splitter:
    """Turns what arrives, in whatever pieces, into frames. Keeps at most one incomplete frame."""

    __slots__ = ("_need", "_pieces", "_size", "most")

    def __init__(self, most: int = MAX_FRAME) -> None:
        self.most = most
        self._pieces: list[bytes] = []
        self._size = 0
        """Of the pieces."""
        self._need = HEADER_BYTES
        """With so many bytes there is more to know: the length of the frame, then all of it."""

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete now; raises RemoteProtocolError for what no correct peer sends."""
        if not self._pieces and HEADER_BYTES < len(data) <= self.most:
            length, inverted, expected = _unpack(data)
            if length == len(data) - HEADER_BYTES == inverted ^ _INVERTED:
                frame = data[HEADER_BYTES:]
                if expected == checksum(frame):
                    return [frame]  # the usual case: one frame, whole and sound
        frames: list[bytes] = []
        if self._pieces:
            self._pieces.append(data)
            self._size += len(data)
            if self._size < self._need:
                if len(self._pieces) > MOST_PIECES:
                    self._pieces = [b"".join(self._pieces)]
                return frames
            data = self._put_together(frames)
        position = self._split(data, frames)
        if position < len(data):
            self._pieces = [data[position:] if position else data]
            self._size = len(data) - position
        return frames

    def _put_together(self, frames: list[bytes]) -> bytes:
        """The pieces make a frame, or at least its header, now; what is to be split yet. Frames are copied once."""
        pieces, self._pieces = self._pieces, []
        if self._need == HEADER_BYTES or len(pieces[0]) < HEADER_BYTES:
            return b"".join(pieces)
        last, surplus = pieces[-1], self._size - self._need
        body: list[bytes | memoryview] = [
            memoryview(pieces[0])[HEADER_BYTES:],
            *pieces[1:-1],
            memoryview(last)[: len(last) - surplus],
        ]
        frames.append(_checked(b"".join(body), pieces[0][:HEADER_BYTES]))
        return last[len(last) - surplus :]

    def _split(self, data: bytes, frames: list[bytes]) -> int:
        """Adds the complete frames; where the incomplete one begins."""
        position, end, size = 0, len(data), HEADER_BYTES
        most = self.most
        self._need = size
        while end - position >= size:
            length, inverted, _ = _unpack(data, position)
            if not 0 < length <= most or length ^ inverted != _INVERTED:
                if length >> 16 == _TLS:
                    raise RemoteProtocolError("it speaks TLS, which is not spoken here")
                if length == _HTTP_ANSWER:
                    raise RemoteProtocolError("HTTP is served there: name the address after --listen, not after --http")
                if length in _HTTP_REQUESTS:
                    raise RemoteProtocolError("it speaks HTTP, which is spoken at the address after --http only")
                raise RemoteProtocolError(f"a frame of {length} bytes; frames have 1 to {most} and say so twice")
            after = position + size + length
            if after > end:
                self._need = size + length
                break
            frames.append(_checked(data[position + size : after], data[position : position + size]))
            position = after
        return position


def _checked(frame: bytes, head: bytes) -> bytes:
    if _unpack(head)[2] != checksum(frame):
        raise RemoteProtocolError(f"a frame of {len(frame)} bytes was damaged on its way")
    return frame
