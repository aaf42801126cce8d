"""Long lists of messages, cut so that no piece is larger than a frame should be."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MOST_MESSAGES: Final = 512
MOST_BYTES: Final = 64 << 10
"""A single message may be larger; it is then a piece of its own."""


MESSAGE_OVERHEAD: Final = 64
"""Bytes charged per message besides its content, about what Python needs to hold it: small messages cost memory too."""


def weight(payloads: Sequence[bytes]) -> int:
    """What messages cost the node that keeps them."""
    return sum(map(len, payloads)) + MESSAGE_OVERHEAD * len(payloads)


def pieces(payloads: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    """The same messages in the same order; the list itself when it is short, which it nearly always is."""
    if len(payloads) <= MOST_MESSAGES and sum(map(len, payloads)) <= MOST_BYTES:
        return (payloads,) if payloads else ()
    return _cut(payloads)


def _cut(payloads: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    piece: list[bytes] = []
    size = 0
    for payload in payloads:
        if piece and (size + len(payload) > MOST_BYTES or len(piece) == MOST_MESSAGES):
            yield piece
            piece, size = [], 0
        piece.append(payload)
        size += len(payload)
    yield piece


def runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Growing numbers as pieces without holes: first, and behind the last."""
    start = stop = -1
    for place in places:
        if place != stop:
            if stop > start:
                yield start, stop
            start = place
        stop = place + 1
    if stop > start:
        yield start, stop
