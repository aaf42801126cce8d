"""What a log writes for a batch that was delivered: where it can, the very bytes it came in."""

from collections.abc import Sequence
from typing import Any

from cubecast.checksums import checksum
from cubecast.log.record import Packed, make_tuple, pack
from cubecast.wire.codec import Codec

LARGE = 4096


def as_it_came(payloads: Sequence[bytes], packet: Any, codec: Codec | None) -> Packed:
    """A large packet is kept whole: its messages need not be packed again.

    Of a small one that would be mostly names. An own publication is encoded here, before it is sent.
    """
    if packet is None or codec is None:
        return pack(payloads)
    frame = packet.frame
    if frame is None:
        frame = packet.frame = codec.encode(packet)
    if len(frame) < LARGE:
        return pack(payloads)
    return make_tuple(Packed, (len(payloads), frame, checksum(frame), codec.place_of(type(packet), "payloads")))
