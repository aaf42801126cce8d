"""A byte stream cut into frames: a header of twelve bytes, then the frame. Checked before anything is used.

The header holds the frame's length, the same with all bits inverted, and the frame's CRC-32. TCP's own checksum lets
one damaged segment in some ten thousand pass, and a changed byte inside a payload would look like any other payload.
The inverted length tells a damaged length at once, instead of waiting for a frame that never ends.
"""

from struct import Struct
from zlib import crc32

from cubecast.errors import RemoteProtocolError

HEADER = Struct(">III")
MAX_FRAME = (1 << 20) + (1 << 17)
"""A largest packet with its envelope."""
_INVERTED = 0xFFFFFFFF
_TLS = 0x1603
"""How whoever begins TLS begins: a handshake record, version 3 of what was SSL."""


def header(frame: bytes) -> bytes:
    length = len(frame)
    return HEADER.pack(length, length ^ _INVERTED, crc32(frame))


def framed(frame: bytes) -> bytes:
    return header(frame) + frame


class Splitter:
    """Turns what arrives, in whatever pieces, into frames. Keeps at most one incomplete frame."""

    __slots__ = ("_need", "_rest", "most")

    def __init__(self, most: int = MAX_FRAME) -> None:
        self.most = most
        self._rest = bytearray()
        self._need = HEADER.size

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete now; raises RemoteProtocolError for what no correct peer sends."""
        rest = self._rest
        if not rest:
            frames, position = self._split(data)
            if position < len(data):
                rest += data[position:] if position else data
            return frames
        rest += data
        if len(rest) < self._need:
            return []
        with memoryview(rest) as view:
            frames, position = self._split(view)
        del rest[:position]
        return frames

    def _split(self, data: bytes | memoryview) -> tuple[list[bytes], int]:
        """The complete frames, and where the incomplete one begins. Bytes are copied once, when a frame is whole."""
        frames: list[bytes] = []
        position, end, size = 0, len(data), HEADER.size
        unpack, most = HEADER.unpack_from, self.most
        self._need = size
        while end - position >= size:
            length, inverted, checksum = unpack(data, position)
            if not 0 < length <= most or length ^ inverted != _INVERTED:
                if length >> 16 == _TLS:
                    raise RemoteProtocolError("it speaks TLS, which is not spoken here")
                raise RemoteProtocolError(f"a frame of {length} bytes; frames have 1 to {most} and say so twice")
            after = position + size + length
            if after > end:
                self._need = size + length
                break
            frame = bytes(data[position + size : after])
            if crc32(frame) != checksum:
                raise RemoteProtocolError(f"a frame of {length} bytes was damaged on its way")
            frames.append(frame)
            position = after
        return frames, position
