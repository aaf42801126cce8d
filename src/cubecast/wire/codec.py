"""Packets ↔ bytes: one tag byte, then the packet's fields as a MessagePack array, typed on the way in.

Whatever does not decode to exactly the declared types is refused with RemoteProtocolError; nothing is guessed.
"""

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, get_type_hints

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.vcube.causal_packets import AckBundle, Bundle, CausalPacket
from cubecast.protocol.vcube.cubecast.packets import FIRST_PACKETS, LATER_PACKETS, Convoy, Part
from cubecast.protocol.vcube.cubecast.publication_packets import Publication
from cubecast.protocol.vcube.diagnosis_packets import Test, TestReply
from cubecast.protocol.vcube.packets import MOST_SOURCES, OperationAck, Pub, PubAck, Sub, Uns
from cubecast.protocol.vcube.vcube_pb_packets import Membership

# Tags are part of the format: append, never renumber.
PACKETS: Final[tuple[type, ...]] = (
    *(Pub, PubAck, Sub, Uns, OperationAck, Test, TestReply, CausalPacket, Bundle, AckBundle),
    *FIRST_PACKETS,
    Membership,
    *LATER_PACKETS,
)
MAX_PACKET_BYTES: Final = (1 << 20) + (1 << 16)
"""A message of a mebibyte, and room for what the protocol says about it."""

SMALL: Final = 2048
"""Bytes that are copied faster than a view of them is made."""

_encode: Final = msgspec.msgpack.Encoder().encode
_names: Final = {cls: tuple(field.name for field in fields(cls) if field.init) for cls in PACKETS}
_values: Final = {cls: attrgetter(*names) for cls, names in _names.items()}
_PUB: Final = PACKETS.index(Pub)
PAYLOADS: Final = _names[Publication].index("payloads")
"""Which element of the array a publication's messages are."""
_tags: Final = {cls: bytes([tag]) for tag, cls in enumerate(PACKETS)}


def field_types(cls: type) -> dict[str, Any]:
    """Of what travels of a packet, in its order."""
    if issubclass(cls, Publication):  # it may be compiled, which leaves little of what it said: convoys say it as well
        hints = {**get_type_hints(Convoy), **get_type_hints(Part), "hurry": bool}
    else:
        hints = get_type_hints(cls)
    return {name: hints[name] for name in _names[cls]}


def _decoder(cls: type) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(tuple[tuple(field_types(cls).values())])  # type: ignore[misc]


_decode: Final = [_decoder(cls).decode for cls in PACKETS]


def _check_sources(message: MessageId, barrier: tuple[MessageId, ...]) -> None:
    """They become bits of masks when the packet is made: a huge one would fill the memory."""
    if not all(0 <= one.source < MOST_SOURCES for one in (message, *barrier)):
        raise RemoteProtocolError("malformed Pub: a source that does not exist")


def encode(packet: Any) -> bytes:
    cls = type(packet)
    return _tags[cls] + _encode(_values[cls](packet))


def decode(data: bytes) -> Any:
    if not data or len(data) > MAX_PACKET_BYTES:
        raise RemoteProtocolError(f"a packet of {len(data)} bytes; packets have 1 to {MAX_PACKET_BYTES}")
    tag = data[0]
    if tag >= len(PACKETS):
        raise RemoteProtocolError(f"unknown packet tag {tag}")
    try:
        values = _decode[tag](data[1:] if len(data) < SMALL else memoryview(data)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"malformed {PACKETS[tag].__name__}: {error}") from None
    if tag == _PUB:
        _check_sources(values[1], values[3])
    packet = PACKETS[tag](*values)
    packet.frame = data
    return packet
