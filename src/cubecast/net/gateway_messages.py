"""What a thin client and a node's gateway say to each other, after the handshake. One message per frame.

Numbers of subscriptions, publications and requests are the client's; the node only repeats them.
"""

from typing import Any, TypeAlias

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId, Topic

CREDIT = 1 << 20
"""Bytes a client may have published that the node has not said to have taken."""


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=1):
    subscription: int
    pattern: str


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


class AwaitStable(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Tell me when everything I published on the topic before this reached everybody."""

    request: int
    topic: Topic


class StatusRequest(msgspec.Struct, frozen=True, array_like=True, tag=7):
    request: int


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=8):
    pass


class Taken(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """The publications up to this number are in the node's hands, except for those refused."""

    number: int
    refused: str | None = None
    """Why the one with this very number can never be published."""


class Stable(msgspec.Struct, frozen=True, array_like=True, tag=17):
    request: int
    unknown: str | None = None
    """Why nobody will ever know."""
    refused: bool = False
    """It is known after all: none of it was published, for that reason."""


class Deliver(msgspec.Struct, frozen=True, array_like=True, tag=18):
    subscription: int
    topic: Topic
    source: int
    incarnation: int
    counter: int
    payloads: list[bytes]


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=19):
    subscription: int


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """A gap in what the subscription gets."""

    subscription: int
    topic: Topic
    missing: list[MessageId]
    reason: str


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """The node ended the subscription, or never opened it."""

    subscription: int
    reason: str


class StatusReply(msgspec.Struct, frozen=True, array_like=True, tag=22):
    request: int
    status: dict[str, Any]


class Pong(msgspec.Struct, frozen=True, array_like=True, tag=23):
    pass


FromClient: TypeAlias = Subscribe | Unsubscribe | Pause | Resume | Publish | AwaitStable | StatusRequest | Ping
FromNode: TypeAlias = Taken | Stable | Deliver | Ready | Lost | Ended | StatusReply | Pong

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
