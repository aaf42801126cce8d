"""Removals of single corrections of the paper, planted into the machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cubecast.protocol.brokers.locamu import Substrate
from cubecast.protocol.brokers.locaps import Tables
from cubecast.protocol.brokers.received import Received
from cubecast.protocol.brokers.records import Ways

Plant = tuple[type, str, Callable[..., Any]]


def _numbers_only(self: Received, header: Any, turn: int) -> bool:
    stamps = header.stamps.items()
    return any(self.me in numbers and numbers[self.me] in self.numbers(x, numbers[self.me]) for x, numbers in stamps)


def _without_past(self: Received, header: Any) -> int | None:
    number = header.stamps.get(header.by, {}).get(self.me, 0)
    short = number and self.numbers(header.by).prefix < number - 1 and not self._is_over(header.by, number)
    return header.by if short else None


_cover_from = Tables._cover_from


def _without_seen(self: Tables, subscription: Any, entry: Any, side: int) -> Any:
    seen, self.seen = self.seen, {}
    try:
        yield from list(_cover_from(self, subscription, entry, side))
    finally:
        self.seen = seen


PLANTS: dict[str, Plant] = {
    "C1 duplicates are known by numbers alone": (Received, "is_duplicate", _numbers_only),
    "C2 nothing waits for the past": (Received, "missing", _without_past),
    "C5 nobody is owed anything": (Ways, "owed", lambda self, tables: set()),
    "C6 late copies are not passed on": (Substrate, "_spread_late", lambda self, record, header, news: None),
    "C8, C9 a partial marker without what was seen": (Tables, "_cover_from", _without_seen),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    kind, method, instead = PLANTS[name]
    before = getattr(kind, method)
    setattr(kind, method, instead)
    try:
        yield
    finally:
        setattr(kind, method, before)
