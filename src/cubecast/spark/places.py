"""Where a query is in a topic: a place in one log, and as a cut, which counts in every log.

A cut names of each publisher the last incarnation and counter. In a checkpoint, which is JSON, it is
`{"source.incarnation": counter}`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Cut: TypeAlias = dict[int, tuple[int, int]]
"""Per publisher the incarnation and the counter."""
NOTHING = (-1, 0)


def from_publisher_cut(cut: Mapping[tuple[str, int, int], int]) -> Cut:
    found: Cut = {}
    for (_, source, incarnation), counter in cut.items():
        found[source] = max(found.get(source, NOTHING), (incarnation, counter))
    return found


def publisher_cut(topic: str, cut: Cut) -> dict[tuple[str, int, int], int]:
    return {(topic, source, incarnation): counter for source, (incarnation, counter) in cut.items()}


def to_json(cut: Cut) -> dict[str, int]:
    return {f"{source}.{incarnation}": counter for source, (incarnation, counter) in cut.items()}


def from_json(known: Mapping[str, int]) -> Cut:
    return from_publisher_cut({("", *map(int, name.split("."))): counter for name, counter in known.items()})  # type: ignore[misc]


def joined(one: Cut, other: Cut) -> Cut:
    return {source: max(one.get(source, NOTHING), other.get(source, NOTHING)) for source in {**one, **other}}


def beyond(one: Cut, other: Cut) -> Cut:
    """What of the one the other does not have."""
    return {source: position for source, position in one.items() if position > other.get(source, NOTHING)}


def cut_of(place: Mapping[str, Any] | None) -> Cut:
    return {} if place is None else from_json(place["cut"])


def left_out(place: Mapping[str, Any] | None) -> Cut:
    """What the query has read in another log and its present one did not have yet."""
    return {} if place is None else from_json(place.get("beyond", {}))
