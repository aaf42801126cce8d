"""What travels with the messages, by part. That means encoding a publication again, so only some are looked at."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cubecast.net.links.framing import HEADER

EVERY = 64
PARTS = ("payload", "barrier", "destinations", "starts", "rest")

_encode = msgspec.msgpack.Encoder().encode


class Metadata:
    __slots__ = ("looked_at", "parts")

    def __init__(self) -> None:
        self.looked_at = 0
        self.parts = dict.fromkeys(PARTS, 0)
        """Bytes of those that were looked at; the frame around them is part of the rest."""

    def look(self, packet: Any, parts: Mapping[str, Any], encode: Callable[[Any], bytes]) -> None:
        """A publication of this node leaves; `parts` travel with its messages."""
        frame = packet.frame
        if frame is None:
            frame = packet.frame = encode(packet)  # which spares the driver the work
        found = {"payload": sum(map(len, packet.payloads))}
        found |= {part: len(_encode(value)) for part, value in parts.items()}
        found["rest"] = len(frame) + HEADER.size - sum(found.values())
        self.looked_at += 1
        for part, size in found.items():
            self.parts[part] += size
