"""Which of many filters cover one, or are covered by it, without comparing it with all of them.

Whatever covers a filter matches every event the filter matches, so also one that is made up here (`witness`): who
covers is among those a matching index finds for it. Whatever is covered demands, where the wide filter names values of
an attribute, one of these values: it is filed under each value that its first conjunction names.
"""

from collections.abc import Hashable, Iterable
from math import inf
from typing import Generic, Protocol, TypeVar

from cubecast.protocol.filters.conditions import Conjunction, Filter
from cubecast.protocol.filters.domains import Absent, Domain, Finite, Interval, Prefix, Present
from cubecast.protocol.filters.values import Attributes, Key, Value

K = TypeVar("K", bound=Hashable)


class Matching(Protocol[K]):
    """Filters by key."""

    def matching(self, attributes: Attributes) -> list[K]: ...


class CoveringIndex(Generic[K]):
    """Filters by key. Every answer is compared in full: it is what a scan would give."""

    def __init__(self, matching: Matching[K]) -> None:
        """`matching` holds the same filters; its owner adds here and there."""
        self._matching = matching
        self._filters: dict[K, Filter] = {}
        self._by_value: dict[tuple[str, Key], dict[K, None]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def add(self, key: K, wanted: Filter) -> None:
        self.discard(key)
        self._filters[key] = wanted
        for place in _places(wanted.alternatives[0]):
            self._by_value.setdefault(place, {})[key] = None

    def discard(self, key: K) -> None:
        wanted = self._filters.pop(key, None)
        if wanted is not None:
            for place in _places(wanted.alternatives[0]):
                del self._by_value[place][key]
                if not self._by_value[place]:
                    del self._by_value[place]

    def covering(self, wanted: Filter) -> list[K]:
        """Those that cover it, itself included if it is here."""
        event = witness(wanted.alternatives[0])
        found: Iterable[K] = self._filters if event is None else self._matching.matching(event)
        return [key for key in found if key in self._filters and self._filters[key].covers(wanted)]

    def covered(self, wide: Filter) -> list[K]:
        """Those that it covers, itself included if it is here."""
        found: dict[K, None] = {}
        for one in wide.alternatives:
            finite = {name: domain for name, domain in one.domains.items() if isinstance(domain, Finite)}
            if not finite:
                found = dict.fromkeys(self._filters)
                break
            fewest = min(finite, key=lambda name: sum(len(self._at(name, key)) for key in finite[name].keys))
            for key in finite[fewest].keys:
                found.update(self._at(fewest, key))
        return [key for key in found if wide.covers(self._filters[key])]

    def _at(self, name: str, key: Key) -> dict[K, None]:
        return self._by_value.get((name, key), {})


def _places(first: Conjunction) -> list[tuple[str, Key]]:
    """Where a filter with this conjunction is filed; one that matches nothing is found by chance only."""
    return [
        (name, key)
        for name, domain in first.domains.items()
        if isinstance(domain, Finite)
        for key in sorted(domain.keys, key=repr)
    ]


def witness(wanted: Conjunction) -> dict[str, Value] | None:
    """An event that matches; None where none is easily found."""
    event: dict[str, Value] = {}
    for name, domain in wanted.domains.items():
        if not isinstance(domain, Absent):
            value = _member(domain)
            if value is None:
                return None
            event[name] = value
    return event


def _member(domain: Domain) -> Value | None:
    """A value that is in it."""
    tried: list[Value]
    if isinstance(domain, Finite):
        return min(domain.keys, key=repr)[1] if domain.keys else None
    if isinstance(domain, Prefix):
        tried = [domain.prefix + "x" * more for more in range(len(domain.excluded) + 1)]
    elif isinstance(domain, Interval):
        low, high = domain.low, domain.high
        if low == -inf:
            tried = [0 if high == inf else high - step for step in range(len(domain.excluded) + 2)]
        elif high == inf:
            tried = [low + step for step in range(len(domain.excluded) + 2)]
        else:
            tried = [low, high, low + (high - low) / 2]
    elif isinstance(domain, Present):
        tried = ["x" * more for more in range(len(domain.excluded) + 1)]
    else:
        return None
    return next((value for value in tried if value in domain), None)
