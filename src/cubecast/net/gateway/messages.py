"""What a thin client and a node's gateway say to each other, after the handshake. One message per frame.

Numbers of subscriptions, publications and requests are the client's; the node only repeats them.
"""

from typing import Any, TypeAlias

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.net.port.port import ProducerState, Run, Since
from cubecast.net.port.ranges import ALL, LogPiece, Wanted

PublisherPlace: TypeAlias = tuple[NodeId, Incarnation, Counter]

CREDIT = 1 << 20
"""Bytes a client may have published that the node has not said to have taken."""


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=1):
    subscription: int
    pattern: str
    since: Since | None = None
    where: str | None = None
    """A filter; what does not match it is not sent."""


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag=2):
    subscription: int


class Pause(msgspec.Struct, frozen=True, array_like=True, tag=3):
    subscription: int


class Resume(msgspec.Struct, frozen=True, array_like=True, tag=4):
    subscription: int


class Publish(msgspec.Struct, frozen=True, array_like=True, tag=5):
    number: int
    """From 1 on each connection, without gaps."""
    topic: Topic
    payloads: list[bytes]
    request: int | None = None
    """It is a single question: tell me with `Reaches` whether there is anybody it is for."""


class AwaitStable(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Tell me when the last thing I published on the topic before this, and what came before it, reached everybody."""

    request: int
    topic: Topic


class StatusRequest(msgspec.Struct, frozen=True, array_like=True, tag=7):
    request: int


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=8):
    pass


class AwaitDurable(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Tell me when the last thing I published on the topic before this is on your disk."""

    request: int
    topic: Topic
    only_ask: bool
    """Tell me whether that could be, before I publish."""


class ReadLog(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The next piece of a range of offsets."""

    request: int
    topic: Topic
    start: int | None
    stop: int | None
    wanted: Wanted = ALL


class ListLog(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """What is in the log, of topics whose names come after this one."""

    request: int
    after: Topic


class CutLog(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """What the log has of the topic up to this offset."""

    request: int
    topic: Topic
    offset: int


class PlaceInLog(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """The first offset of a message that is not in this cut."""

    request: int
    topic: Topic
    known: list[PublisherPlace]
    reaches: bool = False
    """Or rather the first one behind all that are."""
    at: float | None = None
    """Or rather the first one delivered at that time or later."""


class RegisterProducer(msgspec.Struct, frozen=True, array_like=True, tag=50):
    """Take publications of this producer from this connection only, and tell me what you have of it."""

    request: int
    name: str
    epoch: int
    topics: list[Topic]


class ProducerKnown(msgspec.Struct, frozen=True, array_like=True, tag=51):
    request: int
    state: ProducerState | None
    error: tuple[str, str] | None = None


class Advertise(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """What is published on the topic through this node will match the filter; with `ends`, no more is."""

    request: int
    topic: Topic
    where: str | None = None
    ends: bool = False


class Taken(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """The publications up to this number are in the node's hands, except for those refused."""

    number: int
    refused: str | None = None
    """Why the one with this very number can never be published."""


class Stable(msgspec.Struct, frozen=True, array_like=True, tag=17):
    request: int
    unknown: str | None = None
    """Why it will never be known."""
    refused: bool = False
    """It is known after all: none of it was published, for that reason."""
    handed_over: bool = False
    """The node took it; more is never known, for that reason."""


class Deliver(msgspec.Struct, frozen=True, array_like=True, tag=18):
    subscription: int
    topic: Topic
    source: int
    incarnation: int
    counter: int
    payloads: list[bytes]
    offset: int | None = None
    """In the node's log, where there is one."""
    at: float = 0.0


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=19):
    subscription: int


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """A gap in what the subscription gets."""

    subscription: int
    topic: Topic
    missing: list[MessageId]
    reason: str
    runs: list[Run] = []
    count: int = 0
    offsets: tuple[int, int] | None = None


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """The node ended the subscription, or never opened it."""

    subscription: int
    reason: str
    kind: str = "BadInput"
    """The error's name."""


class StatusReply(msgspec.Struct, frozen=True, array_like=True, tag=22):
    request: int
    status: dict[str, Any]


class Standing(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """What the subscription needs not get any more, be it that it has it or that it was before its beginning."""

    subscription: int
    known: list[tuple[Topic, NodeId, Incarnation, Counter]]


class CaughtUp(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """What was logged before has been sent."""

    subscription: int


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag=27):
    """Whether this node's log goes on where another node's ended."""

    subscription: int
    is_complete: bool


class Pong(msgspec.Struct, frozen=True, array_like=True, tag=23):
    pass


class Durable(msgspec.Struct, frozen=True, array_like=True, tag=24):
    request: int
    error: tuple[str, str] | None = None
    """Why it is not: the error's name and text."""


class LogRange(msgspec.Struct, frozen=True, array_like=True, tag=28):
    request: int
    piece: LogPiece | None
    error: tuple[str, str] | None = None
    """Why there is none: the error's name and text."""


class LogList(msgspec.Struct, frozen=True, array_like=True, tag=29):
    request: int
    topics: list[tuple[Topic, int, int]]
    """With the first and the last offset."""
    error: tuple[str, str] | None = None
    durable: list[int] = []
    """Of each the last offset on the disk."""
    log_id: str = ""


class LogCut(msgspec.Struct, frozen=True, array_like=True, tag=31):
    request: int
    known: list[PublisherPlace]
    error: tuple[str, str] | None = None


class LogPlace(msgspec.Struct, frozen=True, array_like=True, tag=32):
    request: int
    offset: int
    error: tuple[str, str] | None = None


class Reaches(msgspec.Struct, frozen=True, array_like=True, tag=30):
    """A question left."""

    request: int
    anybody: bool
    """Is there any subscriber that it is for?"""
    error: tuple[str, str] | None = None
    """Why it was not published: the error's name and text."""


class Advertised(msgspec.Struct, frozen=True, array_like=True, tag=33):
    request: int
    error: tuple[str, str] | None = None
    """Why it is not: the error's name and text."""


FromClient: TypeAlias = (
    Subscribe
    | Unsubscribe
    | Pause
    | Resume
    | Publish
    | AwaitStable
    | StatusRequest
    | Ping
    | AwaitDurable
    | ReadLog
    | ListLog
    | CutLog
    | PlaceInLog
    | RegisterProducer
    | Advertise
)
FromNode: TypeAlias = (
    Taken
    | Stable
    | Deliver
    | Ready
    | Lost
    | Ended
    | StatusReply
    | Pong
    | Durable
    | Standing
    | CaughtUp
    | Resumed
    | LogRange
    | LogList
    | LogCut
    | LogPlace
    | Reaches
    | ProducerKnown
    | Advertised
)

encode = msgspec.msgpack.Encoder().encode
_from_client: msgspec.msgpack.Decoder[FromClient] = msgspec.msgpack.Decoder(FromClient)
_from_node: msgspec.msgpack.Decoder[FromNode] = msgspec.msgpack.Decoder(FromNode)


def decode_from_client(frame: bytes) -> FromClient:
    try:
        return _from_client.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"no message of a client: {error}") from None


def decode_from_node(frame: bytes) -> FromNode:
    try:
        return _from_node.decode(frame)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"no message of a gateway: {error}") from None
