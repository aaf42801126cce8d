"""What a log writes for a batch that was delivered: where it can, the very bytes it came in."""

from collections.abc import Sequence

from cubecast.net.checksums import checksum
from cubecast.net.log.record import Packed, make_tuple, pack
from cubecast.protocol.vcube.cubecast.publication_packets import Publication
from cubecast.wire.codec import LIVE, encode

LARGE = 4096
PAYLOADS = list(LIVE.field_types(Publication)).index("payloads")
"""Which element of the array a publication's messages are."""


def as_it_came(payloads: Sequence[bytes], packet: Publication | None) -> Packed:
    """A large packet is kept whole: its messages need not be packed again.

    Of a small one that would be mostly names. An own publication is encoded here, before it is sent.
    """
    if packet is None:
        return pack(payloads)
    frame = packet.frame
    if frame is None:
        frame = packet.frame = encode(packet)
    if len(frame) < LARGE:
        return pack(payloads)
    return make_tuple(Packed, (len(payloads), frame, checksum(frame), PAYLOADS))
