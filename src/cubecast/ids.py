"""The words every room uses for naming things. No behaviour."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias, overload

NodeId: TypeAlias = int
"""A participant; on the hypercube 0 … 2^d − 1, elsewhere live a number below `ID_LIMIT` that it drew itself."""

ID_LIMIT = 1 << 63
"""What traces, logs and certificates have room for."""

Incarnation: TypeAlias = int
"""How many times the holder of an id has restarted."""

Topic: TypeAlias = str

Counter: TypeAlias = int
"""A publisher's publications on one topic, from 1, without gaps."""


class MessageId(NamedTuple):
    """Identity of a publication within its topic."""

    source: NodeId
    incarnation: Incarnation
    counter: Counter


class MessageRun(Sequence[MessageId]):
    """Consecutive messages of one publisher, however many, in the room of one."""

    __slots__ = ("first", "incarnation", "last", "source")

    def __init__(self, source: NodeId, incarnation: Incarnation, first: Counter, last: Counter) -> None:
        self.source, self.incarnation, self.first, self.last = source, incarnation, first, last

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __iter__(self) -> Iterator[MessageId]:
        for counter in range(self.first, self.last + 1):
            yield MessageId(self.source, self.incarnation, counter)

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MessageId]: ...
    def __getitem__(self, index: int | slice) -> MessageId | Sequence[MessageId]:
        counters = range(self.first, self.last + 1)[index]
        if isinstance(counters, int):
            return MessageId(self.source, self.incarnation, counters)
        return tuple(MessageId(self.source, self.incarnation, counter) for counter in counters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self.source, self.incarnation, self.first, self.last))

    def __repr__(self) -> str:
        return f"<messages {self.source}.{self.incarnation}.{self.first}–{self.last}>"
