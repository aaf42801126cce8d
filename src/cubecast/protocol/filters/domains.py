"""What a conjunction allows one attribute to be: the normal form in which filters are compared.

A domain is one of: a finite set, an interval of numbers, the texts with a prefix, anything present, absent; the
infinite ones minus finitely many values. Domains are kept normal, so that equal ones are equal objects: an interval of
one number is a finite set, an excluded end makes the interval open there, exclusions outside the domain are dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from cubecast.protocol.filters.values import Key, Value, is_nan, key_of


@dataclass(frozen=True)
class Finite:
    """One of these values; of none at all: nothing matches."""

    keys: frozenset[Key]

    def __contains__(self, value: Value) -> bool:
        return key_of(value) in self.keys


@dataclass(frozen=True)
class Interval:
    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False
    excluded: frozenset[Key] = field(default=frozenset())

    def __contains__(self, value: Value) -> bool:
        if isinstance(value, (bool, str)):
            return False
        if self.low < value < self.high and not self.excluded:
            return True
        inside = (self.low < value or (value == self.low and not self.open_low)) and (
            value < self.high or (value == self.high and not self.open_high)
        )
        return inside and ("number", value) not in self.excluded

    @property
    def bounded(self) -> bool:
        return self.low > -inf and self.high < inf


@dataclass(frozen=True)
class Prefix:
    prefix: str
    excluded: frozenset[Key] = field(default=frozenset())

    def __contains__(self, value: Value) -> bool:
        return isinstance(value, str) and value.startswith(self.prefix) and ("text", value) not in self.excluded


@dataclass(frozen=True)
class Present:
    excluded: frozenset[Key] = field(default=frozenset())

    def __contains__(self, value: Value) -> bool:
        return not is_nan(value) and key_of(value) not in self.excluded


@dataclass(frozen=True)
class Absent:
    def __contains__(self, value: Value) -> bool:
        return False


Domain: TypeAlias = Finite | Interval | Prefix | Present | Absent
NOTHING = Finite(frozenset())


def one_of(values: Iterable[Value]) -> Finite:
    return Finite(frozenset(key_of(value) for value in values if not is_nan(value)))


def meet(a: Domain, b: Domain) -> Domain:
    """What both allow."""
    if isinstance(a, Absent) or isinstance(b, Absent):
        return a if a == b else NOTHING
    if isinstance(a, Finite) or isinstance(b, Finite):
        few, other = (a, b) if isinstance(a, Finite) else (b, a)
        assert isinstance(few, Finite)
        return Finite(frozenset(key for key in few.keys if key[1] in other))
    excluded = a.excluded | b.excluded
    if isinstance(a, Present):
        return without(b, excluded)
    if isinstance(b, Present):
        return without(a, excluded)
    if isinstance(a, Prefix) and isinstance(b, Prefix):
        longer, shorter = (a, b) if len(a.prefix) >= len(b.prefix) else (b, a)
        return without(longer, excluded) if longer.prefix.startswith(shorter.prefix) else NOTHING
    if isinstance(a, Interval) and isinstance(b, Interval):
        # The greater lower end counts, and of two equal ones the open one; likewise above.
        low, open_low = max((a.low, a.open_low), (b.low, b.open_low))
        high, closed_high = min((a.high, not a.open_high), (b.high, not b.open_high))
        return without(Interval(low, high, open_low, not closed_high), excluded)
    return NOTHING


def without(domain: Domain, excluded: frozenset[Key]) -> Domain:
    """The domain minus these values, normal again."""
    if isinstance(domain, Absent):
        return domain
    if isinstance(domain, Finite):
        return Finite(domain.keys - excluded)
    if isinstance(domain, Present):
        return Present(domain.excluded | excluded)
    if isinstance(domain, Prefix):
        inside = frozenset(key for key in excluded if key[1] in Prefix(domain.prefix))
        return Prefix(domain.prefix, domain.excluded | inside)
    low, high = domain.low, domain.high
    excluded = excluded | domain.excluded
    open_low = domain.open_low or ("number", low) in excluded
    open_high = domain.open_high or ("number", high) in excluded
    if low > high or (low == high and (open_low or open_high)):
        return NOTHING
    if low == high:
        return one_of([low])
    bare = Interval(low, high, open_low, open_high)
    return Interval(low, high, open_low, open_high, frozenset(key for key in excluded if key[1] in bare))


def is_empty(domain: Domain) -> bool:
    return isinstance(domain, Finite) and not domain.keys


def contains(outer: Domain, inner: Domain) -> bool:
    """Does `outer` allow whatever `inner` allows? Exact."""
    if isinstance(inner, Finite):
        return all(value in outer for _, value in inner.keys)
    if isinstance(outer, Absent) or isinstance(inner, Absent):
        return outer == inner
    if isinstance(outer, Finite):
        return False  # the inner one is infinite
    allowed_inside = (Present, type(inner))
    if not isinstance(outer, allowed_inside):
        return False
    if isinstance(outer, Prefix) and isinstance(inner, Prefix) and not inner.prefix.startswith(outer.prefix):
        return False
    if isinstance(outer, Interval) and isinstance(inner, Interval) and not _within(outer, inner):
        return False
    return not any(value in inner for _, value in outer.excluded)


def _within(outer: Interval, inner: Interval) -> bool:
    low = outer.low < inner.low or (outer.low == inner.low and (inner.open_low or not outer.open_low))
    high = inner.high < outer.high or (inner.high == outer.high and (inner.open_high or not outer.open_high))
    return low and high
