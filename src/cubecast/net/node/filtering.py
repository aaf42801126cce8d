"""Subscriptions with a filter: which messages of a batch go to which of them.

A batch is a run of consecutive messages of one publisher. What a filter leaves of it are shorter runs, handed on in the
same order with their own counters and offsets, so that a subscriber that counts is not misled: numbers that are left
out did not match. What a gap names may not have matched either; the node cannot know.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from cubecast.errors import CubecastError
from cubecast.headers import attributes_of
from cubecast.ids import MessageId, Topic
from cubecast.net.port.chunks import runs
from cubecast.net.port.port import GapNotice, Logged, PublisherCut, Sink
from cubecast.protocol.filters import Filter, MatchingIndex


class HasSink(Protocol):
    @property
    def sink(self) -> Sink: ...
    def __hash__(self) -> int: ...


S = TypeVar("S", bound=HasSink)


class FilteredSubscriptions(Generic[S]):
    """Those of one topic. What a message costs grows with the filters that match it, not with those there are."""

    def __init__(self) -> None:
        self._index: MatchingIndex[S] = MatchingIndex()

    def add(self, one: S, where: Filter) -> None:
        self._index.add(one, where)

    def remove(self, one: S) -> None:
        self._index.discard(one)

    def __len__(self) -> int:
        return len(self._index)

    def deliver(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None) -> None:
        chosen: dict[S, list[int]] = {}
        for place, sealed in enumerate(payloads):
            for one in self._index.matching(attributes_of(topic, sealed)):
                chosen.setdefault(one, []).append(place)
        for one, places in chosen.items():
            _hand_over(one.sink, topic, first, payloads, logged, places)


class FilteredSink:
    """A `Sink` that hands on what matches: for one that reads a log, where all of it must pass."""

    def __init__(self, sink: Sink, where: Filter) -> None:
        self._sink, self._where = sink, where

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        matches = self._where.matches
        places = [place for place, sealed in enumerate(payloads) if matches(attributes_of(topic, sealed))]
        _hand_over(self._sink, topic, first, payloads, logged, places)

    def on_ready(self) -> None:
        self._sink.on_ready()

    def on_live(self, known: PublisherCut) -> None:
        self._sink.on_live(known)

    def on_gap(self, gap: GapNotice) -> None:
        self._sink.on_gap(gap)

    def on_end(self, error: CubecastError | None) -> None:
        self._sink.on_end(error)


def _hand_over(
    sink: Sink,
    topic: Topic,
    first: MessageId,
    payloads: Sequence[bytes],
    logged: Logged | None,
    places: Sequence[int],
) -> None:
    """The messages at these places of the batch."""
    source, incarnation, counter = first
    for start, stop in runs(places):
        piece = payloads if stop - start == len(payloads) else payloads[start:stop]
        message = MessageId(source, incarnation, counter + start)
        if logged is None:
            sink.on_batch(topic, message, piece)
        else:
            sink.on_batch(topic, message, piece, Logged(logged.offset + start, logged.at))
