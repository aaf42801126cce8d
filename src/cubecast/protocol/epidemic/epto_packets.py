"""What EpTO sends: balls of events, and what newcomers ask and are told."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Carried, Packet


class Entry(NamedTuple):
    """A copy of an event: a value, never shared between processes."""

    message: MessageId
    ts: float
    ttl: int
    payload: bytes | None
    """None: a marker, which says that its source has published up to its counter and nothing since."""


@dataclass(slots=True)
class Ball(Packet):
    """The events a process relays in one round, topic by topic."""

    parts: tuple[tuple[Topic, tuple[Entry, ...]], ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> list[Carried]:
        return [
            Carried(topic, entry.message, 1)
            for topic, entries in self.parts
            for entry in entries
            if entry.payload is not None
        ]


@dataclass(slots=True)
class Hello(Packet):
    """A newcomer asks what the time is: an event stamped by a fresh logical clock would come too late everywhere."""

    incarnation: int


@dataclass(slots=True)
class Welcome(Packet):
    """The time, and, for who is new here, whom else one may talk to."""

    clock: float
    peers: tuple[NodeId, ...]

    def mentions(self) -> tuple[NodeId, ...]:
        return self.peers


PACKETS: tuple[type[Packet], ...] = (Ball, Hello, Welcome)
