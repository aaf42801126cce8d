"""Who published a message, written in front of it by the node it came in through.

A stamp is the two bytes that open a stamped envelope, the length of the name, the name. What a client sends with a
stamp in front of it is a forgery: the node takes it off before it puts on its own. Nodes believe each other's stamps.
"""

from collections.abc import Sequence

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
