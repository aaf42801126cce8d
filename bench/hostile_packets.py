"""What a peer that means harm, or is broken, may send: packets of the right types with any values, and damaged frames.

Every choice is a call of `pick(n)`, a number below n, so that a random generator, Hypothesis and a coverage-guided
fuzzer can all be the source.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from cubecast.protocol.cubecast.packets import PACKETS
from cubecast.protocol.families import FAMILIES, find
from cubecast.wire.codec import codec_named, codec_of

LIVE = codec_named("cubecast")
encode = codec_named("cubecast").encode

Pick = Callable[[int], int]
EVERY_PACKET = [(codec, cls) for codec in map(codec_of, map(find, FAMILIES)) for cls in codec.packets]

# The first half of each is likely to pass the first checks; the cube of the target has four to eight ids.
NUMBERS = (0, 1, 2, 3, 1, 0, 1, 2, -1, 4, 7, 9, 40, 2**31, 2**62)
TOPICS = ("t", "t", "t", "u", "", "x" * 300)
BITMAPS = (b"", b"\x0f", b"\x0b", b"\x08", b"\x09", b"\xff", b"\x0f\x00", bytes(40))
MOST_ELEMENTS = 4


def hostile_packet(pick: Pick) -> Any:
    """Of the kinds that live nodes send each other."""
    cls = PACKETS[pick(len(PACKETS))]
    return cls(*(_value(hint, pick) for hint in LIVE.field_types(cls).values()))


def hostile_frame(pick: Pick) -> bytes:
    """Noise, a damaged packet, one whose values are wrong, or a packet of any protocol of the laboratory."""
    kind = pick(5)
    if kind == 0:
        return bytes(pick(256) for _ in range(1 + pick(60)))
    if kind == 4:
        codec, cls = EVERY_PACKET[pick(len(EVERY_PACKET))]
        values = [_value(hint, pick) for hint in codec.field_types(cls).values()]
        return bytes([codec.tag(cls)]) + msgspec.msgpack.encode(values)
    frame = bytearray(encode(hostile_packet(pick)))
    if kind == 1:
        frame[pick(len(frame))] ^= 1 + pick(255)
    if kind == 2:
        del frame[1 + pick(len(frame)) :]
    return bytes(frame)


def _value(hint: Any, pick: Pick) -> Any:
    if hint is int:
        return NUMBERS[pick(len(NUMBERS))]
    if hint is float:
        return float(NUMBERS[pick(len(NUMBERS))])
    if hint is Any:
        return (0, "t", b"", None, 1.5)[pick(5)]
    if hint is str:
        return TOPICS[pick(len(TOPICS))]
    if hint is bytes:
        return BITMAPS[pick(len(BITMAPS))]
    if hint is bool:
        return bool(pick(2))
    if isinstance(hint, type) and issubclass(hint, Enum):
        members = list(hint)
        return members[pick(len(members))]
    inside = get_args(hint)
    if get_origin(hint) is tuple:
        if inside[-1] is Ellipsis:
            return tuple(_value(inside[0], pick) for _ in range(pick(MOST_ELEMENTS)))
        return tuple(_value(one, pick) for one in inside)
    if isinstance(hint, type) and issubclass(hint, tuple):
        hints = get_type_hints(hint)
        return hint(*(_value(hints[name], pick) for name in hint._fields))
    if not inside:  # a packet inside of a packet
        return hint(*(_value(one, pick) for one in get_type_hints(hint).values()))
    chosen = inside[pick(len(inside))]
    return None if chosen is type(None) else _value(chosen, pick)
