"""Packets ↔ bytes: one tag byte, then the packet's fields as a MessagePack array, typed on the way in.

A codec knows the packets of one family, by their tags. Whatever does not decode to exactly the declared types is
refused with RemoteProtocolError; nothing is guessed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Final, get_type_hints

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.protocol.families import find
from cubecast.protocol.family import Family

MAX_PACKET_BYTES: Final = (1 << 20) + (1 << 16)
"""A message of a mebibyte, and room for what the protocol says about it."""

SMALL: Final = 2048
"""Bytes that are copied faster than a view of them is made."""

_encode: Final = msgspec.msgpack.Encoder().encode


def _nothing_to_check(values: tuple[Any, ...]) -> None:
    """Most packets are fine when their types are."""


def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """What travels of a packet, as a tuple: `attrgetter` of one name would give the bare value."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda packet: tuple([getattr(packet, name) for name in names])


class Codec:
    """Of one family. A packet class with a static `check(values)` has its fields looked at before it is made."""

    def __init__(self, packets: Sequence[type | None], types: Mapping[type, Mapping[str, Any]] | None = None) -> None:
        self.packets: list[type] = [cls for cls in packets if cls is not None]
        self._types = types or {}
        self._tags: dict[type, bytes] = {}
        self._places: dict[tuple[type, str], int] = {}
        self._values: dict[type, Callable[[Any], Any]] = {}
        self._readers: list[tuple[type, Callable[[Any], Any], Callable[[Any], None]] | None] = []
        for tag, cls in enumerate(packets):
            if cls is None:
                self._readers.append(None)
                continue
            types_of = self.field_types(cls)
            self._tags[cls] = bytes([tag])
            self._values[cls] = _getter(tuple(types_of))
            decode = msgspec.msgpack.Decoder(tuple[tuple(types_of.values())]).decode  # type: ignore[misc]
            self._readers.append((cls, decode, getattr(cls, "check", _nothing_to_check)))

    def field_types(self, cls: type) -> dict[str, Any]:
        """Of what travels of a packet, in its order."""
        hints = self._types.get(cls) or get_type_hints(cls)
        return {one.name: hints[one.name] for one in fields(cls) if one.init}

    def place_of(self, cls: type, name: str) -> int:
        """Which element of the array of such a packet this field is."""
        found = self._places.get((cls, name))
        if found is None:
            found = self._places[cls, name] = list(self.field_types(cls)).index(name)
        return found

    def tag(self, cls: type) -> int:
        return self._tags[cls][0]

    def encode(self, packet: Any) -> bytes:
        cls = type(packet)
        return self._tags[cls] + _encode(self._values[cls](packet))

    def decode(self, data: bytes) -> Any:
        if not data or len(data) > MAX_PACKET_BYTES:
            raise RemoteProtocolError(f"a packet of {len(data)} bytes; packets have 1 to {MAX_PACKET_BYTES}")
        tag = data[0]
        reader = self._readers[tag] if tag < len(self._readers) else None
        if reader is None:
            raise RemoteProtocolError(f"unknown packet tag {tag}")
        cls, read, check = reader
        try:
            values = read(data[1:] if len(data) < SMALL else memoryview(data)[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"malformed {cls.__name__}: {error}") from None
        check(values)
        packet = cls(*values)
        packet.frame = data
        return packet


@cache
def codec_of(family: Family) -> Codec:
    return Codec(family.packets, family.wire_types)


def codec_named(protocol: str) -> Codec:
    return codec_of(find(protocol))
