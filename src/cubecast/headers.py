"""What stands in front of a message's content: its headers, and who published it.

Headers are names with text, numbers or booleans, which filters are asked about. They travel in the message's envelope
(`api.envelope`), of which a node reads this part only, and only where a subscription has a filter. Whatever it cannot
read there has no headers: who opens the message learns what is wrong.

A stamp is the two bytes that open a stamped envelope, the length of the publisher's name, the name. What a client sends
with a stamp in front of it is a forgery: the node takes it off before it puts on its own. Nodes believe each other's.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, TypeAlias

import msgspec

from cubecast.errors import BadInput
from cubecast.ids import Topic
from cubecast.protocol.filters.values import Attributes, Value

OPENING = b"\xc1\x04"
"""The mark of an envelope, and the kind that says that a name comes first."""
MOST_STAMP = len(OPENING) + 1 + 255


def stamp(name: str) -> bytes:
    encoded = name.encode()[:255]
    return OPENING + bytes([len(encoded)]) + encoded


def stamped(mark: bytes, payloads: Sequence[bytes]) -> list[bytes]:
    return [mark + (payload if payload[:2] != OPENING else without_stamps(payload)) for payload in payloads]


def without_stamps(payload: bytes) -> bytes:
    """However many there are; one that is cut short goes with all that follows."""
    start, size = 0, len(payload)
    # Copied once, at the end: a message may be a mebibyte of stamps.
    while payload.startswith(OPENING, start):
        start = start + 3 + payload[start + 2] if start + 2 < size else size
    return payload[start:]


def split(payload: bytes) -> tuple[str | None, bytes]:
    """The name, and the rest; ValueError when the stamp is cut short or no text."""
    if payload[:2] != OPENING:
        return None, payload
    end = 3 + payload[2] if len(payload) > 2 else 0
    if not 3 < end <= len(payload):
        raise ValueError("a stamp that is cut short")
    return payload[3:end].decode(), payload[end:]


HeaderValue: TypeAlias = Value
Headers: TypeAlias = Mapping[str, HeaderValue]

MARK: Final = 0xC1
"""A byte that neither UTF-8, JSON nor MessagePack ever begins with."""
HEADED: Final = 3
"""The kind of an envelope with headers: MessagePack of [headers, kind of the content, content]."""
LEAST, MOST = -(1 << 63), (1 << 64) - 1
"""Whole numbers that MessagePack has room for."""

_HEADED: Final = bytes([MARK, HEADED])
# The content is passed over, not copied.
_decode = msgspec.msgpack.Decoder(tuple[dict[str, str | bool | int | float], int, msgspec.Raw]).decode


def checked(headers: Headers) -> dict[str, Value]:
    """As they may be published; BadInput names the one that may not."""
    if not isinstance(headers, Mapping):
        raise BadInput(f"headers are text, numbers or booleans by name, not {headers!r}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
            raise BadInput(f"headers are text, numbers or booleans by name, not {name!r}: {value!r}")
        if isinstance(value, float) and not isfinite(value):
            raise BadInput(f"header {name!r}: {value} is no number that others could compare")
        if isinstance(value, int) and not LEAST <= value <= MOST:
            raise BadInput(f"header {name!r}: whole numbers have at most 64 bits; write {value} as text or as a float")
    return dict(headers)


def attributes_of(topic: Topic, sealed: bytes) -> Attributes:
    """What a filter sees of a message: its headers, and the topic as one more."""
    if not sealed or sealed[0] != MARK:
        return {"topic": topic}
    if sealed[:2] == OPENING:
        try:
            sealed = split(sealed)[1]
        except (ValueError, IndexError):
            return {"topic": topic}
    if sealed[:2] != _HEADED:
        return {"topic": topic}
    try:
        found: dict[str, Value] = _decode(memoryview(sealed)[2:])[0]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {"topic": topic}
    found["topic"] = topic
    return found
