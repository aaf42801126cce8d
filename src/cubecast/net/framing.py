"""A byte stream cut into frames: four bytes of length, then so many bytes. Lengths are checked before use."""

from struct import Struct

from cubecast.errors import RemoteProtocolError

LENGTH = Struct(">I")
MAX_FRAME = (1 << 20) + (1 << 17)
"""A largest packet with its envelope."""


def framed(frame: bytes) -> bytes:
    return LENGTH.pack(len(frame)) + frame


class Splitter:
    """Turns what arrives, in whatever pieces, into frames. Keeps at most one incomplete frame."""

    __slots__ = ("_most", "_need", "_rest")

    def __init__(self, most: int = MAX_FRAME) -> None:
        self._most = most
        self._rest = bytearray()
        self._need = LENGTH.size

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete now; raises RemoteProtocolError for a length no correct peer sends."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._need:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        frames: list[bytes] = []
        position, end, size = 0, len(data), LENGTH.size
        unpack, most = LENGTH.unpack_from, self._most
        while end - position >= size:
            (length,) = unpack(data, position)
            if not 0 < length <= most:
                raise RemoteProtocolError(f"a frame of {length} bytes; frames have 1 to {most}")
            after = position + size + length
            if after > end:
                self._need = size + length
                break
            frames.append(data[position + size : after])
            position = after
        else:
            self._need = size
        if position < end:
            self._rest += data[position:] if position else data
        return frames
