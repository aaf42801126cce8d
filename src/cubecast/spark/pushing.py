"""Filters that Spark hands to the source: topics, offsets and times narrow what is read; Spark applies them again."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

TICK = 1e-6
"""Seconds: what a timestamp of Spark tells apart."""


@dataclass
class Narrowed:
    """Which rows can pass, as far as the log's index can tell."""

    topics: set[str] | None = None
    prefixes: list[str] = field(default_factory=list)
    first: int = 1
    last: int | None = None
    since: float | None = None
    until: float | None = None

    def take(self, filters: Iterable[Filter]) -> None:
        for one in filters:
            attribute: tuple[str, ...] = getattr(one, "attribute", ())
            if len(attribute) == 1:
                self._take(attribute[0], one)

    def _take(self, name: str, one: Any) -> None:
        match name, one:
            case "topic", EqualTo():
                self._only({one.value})
            case "topic", In():
                self._only(set(one.value))
            case "topic", StringStartsWith():
                self.prefixes.append(one.value)
            case "offset", EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
                low, high = _interval(one, int(one.value), 1)
                self.first = self.first if low is None else max(self.first, low)
                self.last = high if self.last is None or (high is not None and high < self.last) else self.last
            case "time", EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
                if isinstance(one.value, datetime):
                    low, high = _interval(one, one.value.timestamp(), TICK)
                    self.since = low if self.since is None or (low is not None and low > self.since) else self.since
                    self.until = high if self.until is None or (high is not None and high < self.until) else self.until

    def _only(self, topics: set[str]) -> None:
        self.topics = topics if self.topics is None else self.topics & topics

    def allows(self, topic: str) -> bool:
        return (self.topics is None or topic in self.topics) and all(map(topic.startswith, self.prefixes))


def _interval(one: Any, value: Any, step: Any) -> tuple[Any, Any]:
    """The least and the largest value that can pass, as far as there are any."""
    match one:
        case EqualTo():
            return value, value
        case GreaterThan():
            return value + step, None
        case GreaterThanOrEqual():
            return value, None
        case LessThan():
            return None, value - step
    return None, value
