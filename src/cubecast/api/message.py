"""What arrives: messages, alone or in the batch they came in, and gaps.

A message is opened when it is looked at, not when it arrives: most of what the hot path would otherwise do per message,
nobody asks for. `Message` is a struct because those are built an order of magnitude faster than instances of a class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, NamedTuple, Protocol, overload

import msgspec

from cubecast.api import envelope
from cubecast.errors import Closed, RemoteProtocolError
from cubecast.headers import HeaderValue
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic


class Replier(Protocol):
    """The client that can answer a message: the one it came through."""

    async def reply(self, message: "Message", data: Any) -> None: ...


class Origin(NamedTuple):
    """What the messages of a batch have in common."""

    topic: Topic
    source: NodeId
    incarnation: Incarnation
    client: Replier | None = None
    base: int | None = None
    """What to add to a counter for the offset, where the node keeps a log."""
    at: float | None = None


class Message(msgspec.Struct, gc=False, eq=False):
    """A delivered publication."""

    origin: Origin
    counter: Counter
    sealed: bytes

    @property
    def topic(self) -> Topic:
        return self.origin.topic

    @property
    def source(self) -> NodeId:
        return self.origin.source

    @property
    def incarnation(self) -> Incarnation:
        return self.origin.incarnation

    @property
    def id(self) -> MessageId:
        return MessageId(self.origin.source, self.origin.incarnation, self.counter)

    @property
    def offset(self) -> int | None:
        """Its place among all messages of its topic in the log of the node it came from; None without a log.

        Offsets have no holes, and count at the node that gave them only.
        """
        base = self.origin.base
        return None if base is None else base + self.counter

    @property
    def time(self) -> float | None:
        """When that node delivered it, in seconds since 1970 by the node's clock; None without a log."""
        return self.origin.at

    @property
    def data(self) -> Any:
        """Bytes, text or a JSON value, as published. Opened at each access; raises RemoteProtocolError when garbled."""
        return envelope.data(self.sealed)

    @property
    def headers(self) -> dict[str, HeaderValue]:
        """Text, numbers and booleans by name."""
        return envelope.headers(self.sealed)

    @property
    def principal(self) -> str | None:
        """Who published it, where security is enabled: the client's name as its node knows it. None: a node itself."""
        return envelope.principal(self.sealed)

    def body(self) -> bytes:
        """The content as bytes, whatever it was published as."""
        return envelope.body(self.sealed)

    def text(self) -> str:
        return envelope.text(self.sealed)

    def json(self) -> Any:
        return envelope.json(self.sealed)

    async def reply(self, data: Any) -> None:
        """Answer a request; `BadInput` when the message is none."""
        if self.origin.client is None:
            raise Closed("this message did not come through a client that could answer it")
        await self.origin.client.reply(self, data)

    def __repr__(self) -> str:
        try:
            data = repr(self.data)
        except RemoteProtocolError as error:
            data = f"<{error}>"
        shown = data if len(data) <= 60 else data[:57] + "..."
        return f"<Message {self.topic} {self.source}.{self.incarnation}.{self.counter} {shown}>"


class Batch(Sequence[Message]):
    """Messages of one publisher on one topic with consecutive counters, as they travelled. Never empty."""

    __slots__ = ("counter", "origin", "sealed")

    def __init__(self, origin: Origin, counter: Counter, sealed: Sequence[bytes]) -> None:
        self.origin = origin
        self.counter = counter
        self.sealed = sealed

    @property
    def topic(self) -> Topic:
        return self.origin.topic

    @property
    def source(self) -> NodeId:
        return self.origin.source

    @property
    def incarnation(self) -> Incarnation:
        return self.origin.incarnation

    @property
    def offset(self) -> int | None:
        """Of the first message."""
        return None if self.origin.base is None else self.origin.base + self.counter

    @property
    def time(self) -> float | None:
        return self.origin.at

    @property
    def payloads(self) -> Sequence[bytes]:
        """The content of each message as bytes, without making message objects; raises when one is garbled."""
        return envelope.bodies(self.sealed)

    def __len__(self) -> int:
        return len(self.sealed)

    def __iter__(self) -> Iterator[Message]:
        return map(Message, repeat(self.origin), count(self.counter), self.sealed)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return list(self)[index]
        position = range(len(self.sealed))[index]
        return Message(self.origin, self.counter + position, self.sealed[position])

    def __repr__(self) -> str:
        last = self.counter + len(self) - 1
        return f"<Batch {self.topic} {self.source}.{self.incarnation}.{self.counter}–{last}>"


class Missing(NamedTuple):
    """A run of one publisher's messages."""

    topic: Topic
    source: NodeId
    incarnation: Incarnation
    first: Counter
    last: Counter


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages that this subscription will never see. Whatever is read after it comes after them."""

    topic: Topic
    """The topic, or the pattern of the subscription where several may be concerned."""
    reason: str
    missing: tuple[Missing, ...] = ()
    """Which ones, as far as they are known by name; empty when nobody can know."""
    count: int = 0
    """How many are known to be missing; the runs above may name fewer when there are very many."""
    offsets: tuple[int, int] | None = None
    """The first and the last offset that are missing, where a log does not have them any more."""


def origin_of(
    topic: Topic, first: MessageId, client: Replier | None, offset: int | None = None, at: float | None = None
) -> Origin:
    """Of a batch that begins with this message, at this offset where there is a log."""
    source, incarnation, counter = first
    if offset is None:
        return Origin(topic, source, incarnation, client)
    return Origin(topic, source, incarnation, client, offset - counter, at)
