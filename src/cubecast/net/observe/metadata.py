"""What travels with the messages, by part: exact for one publication in so many, because it means encoding it again."""

import msgspec

from cubecast.protocol.vcube.cubecast.packets import Publication

EVERY = 64
PARTS = ("barrier", "destinations", "starts")

_encode = msgspec.msgpack.Encoder().encode


class Metadata:
    __slots__ = ("_until_next", "looked_at", "parts")

    def __init__(self) -> None:
        self._until_next = 1
        self.looked_at = 0
        """Publications whose parts were measured."""
        self.parts = dict.fromkeys(PARTS, 0)

    def look(self, packet: Publication) -> None:
        self._until_next -= 1
        if not self._until_next:
            self._until_next = EVERY
            self.looked_at += 1
            self.parts["barrier"] += len(_encode(packet.dependencies))
            self.parts["destinations"] += len(_encode((packet.members, packet.epochs)))
            self.parts["starts"] += len(_encode(packet.starts))
