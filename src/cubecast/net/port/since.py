"""Where a subscription starts in the log, as an application says it and as it travels."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from cubecast.errors import BadInput
from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.log.record import Cut

MOST_PUBLISHERS = 20_000
"""Entries of a cut, which must fit into a frame."""

PublisherCut: TypeAlias = Mapping[tuple[Topic, NodeId, Incarnation], Counter]
"""The last message of each publisher on each topic that is known already."""


class FromBeginning(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Everything that is kept."""


class FromNow(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Nothing of the past; but what comes is read from the log whenever the reader is slow."""


class FromOffset(msgspec.Struct, frozen=True, array_like=True, tag=3):
    offset: int


class FromTime(msgspec.Struct, frozen=True, array_like=True, tag=4):
    time: float


class FromCut(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """All that is not in the cut."""

    known: list[tuple[Topic, NodeId, Incarnation, Counter]]
    resumes: bool = False
    """The subscription was served by another node before: better live with a gap than not at all."""
    is_causal: bool = False
    """What the cut holds was delivered already: what may be a cause of it is announced instead of delivered."""

    @property
    def cut(self) -> dict[tuple[Topic, NodeId, Incarnation], Counter]:
        return {(topic, source, incarnation): counter for topic, source, incarnation, counter in self.known}


Since: TypeAlias = FromBeginning | FromNow | FromOffset | FromTime | FromCut


def start(since: Any) -> Since:
    """What an application said: a whole number is an offset, a float or datetime a time, a mapping a cut."""
    match since:
        case FromBeginning() | FromNow() | FromOffset() | FromTime() | FromCut():
            return since
        case "beginning":
            return FromBeginning()
        case "now":
            return FromNow()
        case datetime():
            return FromTime(since.timestamp())
        case bool():
            pass
        case int() if 0 <= since < 1 << 63:
            return FromOffset(since)
        case float() if since == since:
            return FromTime(since)
        case Mapping():
            return from_cut(since)
    raise BadInput(
        f'since is an offset, a time (float or datetime), a cut, "beginning" or "now"; {since!r} is none of them'
    )


def from_cut(cut: PublisherCut, *, resumes: bool = False, is_causal: bool = False) -> FromCut:
    if len(cut) > MOST_PUBLISHERS:
        raise BadInput(f"a cut names at most {MOST_PUBLISHERS} publishers, not {len(cut)}")
    try:
        known = [(str(topic), int(source), int(life), int(last)) for (topic, source, life), last in cut.items()]
    except (TypeError, ValueError):
        raise BadInput("a cut maps (topic, source, incarnation) to a counter") from None
    return FromCut(known, resumes, is_causal)


def oldest_known(topic: Topic, known: Iterable[tuple[Topic, NodeId, Incarnation, Counter]]) -> Cut:
    """Of each publisher the oldest place to look behind."""
    oldest: Cut = {}
    for one, source, incarnation, counter in known:
        if one == topic:
            oldest[source] = min((incarnation, counter), oldest.get(source, (incarnation, counter)))
    return oldest


def parse(text: str) -> Since:
    """From a command line: beginning, now, an offset, or a date and time."""
    if text in ("beginning", "now"):
        return start(text)
    if text.isdecimal():
        return start(int(text))
    try:
        return start(datetime.fromisoformat(text))
    except ValueError:
        raise BadInput(f'{text!r} is no offset, no date and time, and neither "beginning" nor "now"') from None
