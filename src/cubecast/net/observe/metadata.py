"""What travels with the messages, by part. That means encoding a publication again, so only some are looked at."""

import msgspec

from cubecast.net.framing import HEADER
from cubecast.protocol.vcube.cubecast.publication_packets import Publication
from cubecast.wire.codec import encode

EVERY = 64
PARTS = ("payload", "barrier", "destinations", "starts", "rest")

_encode = msgspec.msgpack.Encoder().encode


class Metadata:
    __slots__ = ("looked_at", "parts")

    def __init__(self) -> None:
        self.looked_at = 0
        self.parts = dict.fromkeys(PARTS, 0)
        """Bytes of those that were looked at; the frame around them is part of the rest."""

    def look(self, packet: Publication) -> None:
        """A publication of this node leaves."""
        frame = packet.frame
        if frame is None:
            frame = packet.frame = encode(packet)  # which spares the driver the work
        found = {
            "payload": sum(map(len, packet.payloads)),
            "barrier": len(_encode(packet.dependencies)),
            "destinations": len(_encode((packet.members, packet.epochs))),
            "starts": len(_encode(packet.starts)),
        }
        found["rest"] = len(frame) + HEADER.size - sum(found.values())
        self.looked_at += 1
        for part, size in found.items():
            self.parts[part] += size
