"""Terms, conjunctions of terms, and filters: up to eight conjunctions of which one must match.

`covers` is sound: when it says yes, whatever the covered filter matches the covering one matches too; it may say no
where a cleverer comparison would say yes (a disjunction that only together covers another). `intersects` errs to the
other side: it says no only where no event can match both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, reduce
from math import isfinite
from typing import Any

from cubecast.errors import BadInput
from cubecast.protocol.filters.domains import (
    Absent,
    Domain,
    Interval,
    Prefix,
    Present,
    contains,
    is_empty,
    meet,
    one_of,
)
from cubecast.protocol.filters.values import Attributes, Key, Value, as_text, key_of, kind_of

MOST_ALTERNATIVES = 8
MOST_TERMS = 16
MOST_VALUES = 64
MOST_NAME_BYTES = 64
MOST_TEXT_BYTES = 256
MOST_DIGITS = 400
"""Of a whole number: what a float can hold, and more than anybody means."""


class Operator(Enum):
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    IN = "in"
    PREFIX = "prefix"
    EXISTS = "exists"


_COMPARISONS = {Operator.LT: "<", Operator.LE: "<=", Operator.GT: ">", Operator.GE: ">="}
_SYMBOLS = {Operator.EQ: "=", Operator.NE: "!=", Operator.PREFIX: "^="} | _COMPARISONS


@dataclass(frozen=True)
class Term:
    """One demand on one attribute. An attribute that is not there fulfils none but `exists` false."""

    attribute: str
    operator: Operator
    value: Value | tuple[Value, ...] = field(compare=False)
    keys: tuple[Key, ...] = field(init=False, repr=False)
    """The values with their kinds, to compare by: Python takes True and 1 for the same."""

    def __post_init__(self) -> None:
        if not self.attribute or len(self.attribute.encode()) > MOST_NAME_BYTES:
            raise BadInput(f"an attribute's name has 1 to {MOST_NAME_BYTES} bytes")
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        if (self.operator is Operator.IN) != isinstance(self.value, tuple):
            raise BadInput(f"'in', and only that, takes a list of values ({self.attribute})")
        if not 1 <= len(values) <= MOST_VALUES:
            raise BadInput(f"'in' takes 1 to {MOST_VALUES} values, not {len(values)} ({self.attribute})")
        for value in values:
            _check_value(self.attribute, value)
        object.__setattr__(self, "keys", tuple(key_of(value) for value in values))
        kind = kind_of(values[0])
        if self.operator in _COMPARISONS and kind != "number":
            raise BadInput(f"'{_COMPARISONS[self.operator]}' compares numbers; {as_text(values[0])} is a {kind}")
        if self.operator is Operator.PREFIX and kind != "text":
            raise BadInput(f"'^=' takes the beginning of a text; {as_text(values[0])} is a {kind}")
        if self.operator is Operator.EXISTS and kind != "boolean":
            raise BadInput(f"'exists' is true or false, not {as_text(values[0])}")

    @property
    def domain(self) -> Domain:
        value: Any = self.value
        match self.operator:
            case Operator.EQ:
                return one_of([value])
            case Operator.IN:
                return one_of(value)
            case Operator.NE:
                return Present(one_of([value]).keys)
            case Operator.LT:
                return meet(Interval(high=value, open_high=True), Interval())
            case Operator.LE:
                return Interval(high=value)
            case Operator.GT:
                return meet(Interval(low=value, open_low=True), Interval())
            case Operator.GE:
                return Interval(low=value)
            case Operator.PREFIX:
                return Prefix(value)
            case Operator.EXISTS:
                return Present() if value else Absent()

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return f"exists({self.attribute})" if self.value else f"not exists({self.attribute})"
        if isinstance(self.value, tuple):
            return f"{self.attribute} in ({', '.join(map(as_text, self.value))})"
        return f"{self.attribute} {_SYMBOLS[self.operator]} {as_text(self.value)}"


def _check_value(attribute: str, value: object) -> None:
    if isinstance(value, str):
        if len(value.encode()) > MOST_TEXT_BYTES:
            raise BadInput(f"a text in a filter has at most {MOST_TEXT_BYTES} bytes ({attribute})")
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        if abs(value) >= 10**MOST_DIGITS:
            raise BadInput(f"a number in a filter has at most {MOST_DIGITS} digits ({attribute})")
    elif not isinstance(value, float):
        raise BadInput(
            f"a filter compares with text, numbers and booleans, not with {type(value).__name__} ({attribute})"
        )
    elif not isfinite(value):
        raise BadInput(f"a filter compares with finite numbers, not with {value} ({attribute})")


@dataclass(frozen=True)
class Conjunction:
    """All of these terms; of none: whatever is published. Kept sorted, so that the same demands are the same value."""

    terms: tuple[Term, ...]
    domains: dict[str, Domain] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        terms = tuple(sorted(set(self.terms), key=lambda term: (term.attribute, term.operator.value, repr(term.value))))
        if len(terms) > MOST_TERMS:
            raise BadInput(f"a filter has at most {MOST_TERMS} terms between two 'or', not {len(terms)}")
        domains: dict[str, Domain] = {}
        for term in terms:
            known = domains.get(term.attribute)
            domains[term.attribute] = term.domain if known is None else meet(known, term.domain)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "domains", domains)

    def matches(self, attributes: Attributes) -> bool:
        for name, domain in self.domains.items():
            value = attributes.get(name)
            if value is None:
                if type(domain) is not Absent:
                    return False
            elif value not in domain:
                return False
        return True

    @cached_property
    def empty(self) -> bool:
        """Does nothing match it?"""
        return any(is_empty(domain) for domain in self.domains.values())

    def covers(self, other: "Conjunction") -> bool:
        if other.empty:
            return True
        theirs = other.domains
        return all(name in theirs and contains(mine, theirs[name]) for name, mine in self.domains.items())

    def intersects(self, other: "Conjunction") -> bool:
        if self.empty or other.empty:
            return False
        shared = self.domains.keys() & other.domains.keys()
        return not any(is_empty(meet(self.domains[name], other.domains[name])) for name in shared)

    def __str__(self) -> str:
        return " and ".join(map(str, self.terms))


@dataclass(frozen=True)
class Filter:
    """What a subscription wants or a publisher advertises: any of these conjunctions, each named once."""

    alternatives: tuple[Conjunction, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternatives", tuple(dict.fromkeys(self.alternatives)))
        if not 1 <= len(self.alternatives) <= MOST_ALTERNATIVES:
            raise BadInput(f"a filter has 1 to {MOST_ALTERNATIVES} alternatives, not {len(self.alternatives)}")

    def matches(self, attributes: Attributes) -> bool:
        return any(one.matches(attributes) for one in self.alternatives)

    def covers(self, other: "Filter") -> bool:
        return all(any(mine.covers(theirs) for mine in self.alternatives) for theirs in other.alternatives)

    def intersects(self, other: "Filter") -> bool:
        return any(mine.intersects(theirs) for mine in self.alternatives for theirs in other.alternatives)

    def both(self, other: "Filter") -> "Filter":
        """What matches both; more than eight alternatives are refused."""
        pairs = ((mine, theirs) for mine in self.alternatives for theirs in other.alternatives)
        return any_of(Conjunction(mine.terms + theirs.terms) for mine, theirs in pairs)

    def to_wire(self) -> list[list[list[Any]]]:
        """As lists of [attribute, operator, value], for a codec."""
        return [
            [[term.attribute, term.operator.value, _listed(term.value)] for term in one.terms]
            for one in self.alternatives
        ]

    def __str__(self) -> str:
        return " or ".join(map(str, self.alternatives))


def _listed(value: Value | tuple[Value, ...]) -> Any:
    return list(value) if isinstance(value, tuple) else value


def any_of(alternatives: Iterable[Conjunction]) -> Filter:
    """Asks for one more than allowed at most, so that a product of many ends early."""
    unique: dict[Conjunction, None] = {}
    for one in alternatives:
        unique[one] = None
        if len(unique) > MOST_ALTERNATIVES:
            break
    return Filter(tuple(unique))


def all_of(filters: Sequence[Filter]) -> Filter:
    return reduce(Filter.both, filters, ALL)


def from_wire(given: Any) -> Filter:
    """What `to_wire` made, or BadInput: it comes from others."""
    if not isinstance(given, (list, tuple)) or not 1 <= len(given) <= MOST_ALTERNATIVES:
        raise BadInput(f"a filter is a list of 1 to {MOST_ALTERNATIVES} alternatives")
    return any_of(_conjunction(one) for one in given)


def _conjunction(given: Any) -> Conjunction:
    if not isinstance(given, (list, tuple)) or len(given) > MOST_TERMS:
        raise BadInput(f"an alternative of a filter is a list of at most {MOST_TERMS} terms")
    return Conjunction(tuple(_term(one) for one in given))


def _term(given: Any) -> Term:
    if not isinstance(given, (list, tuple)) or len(given) != 3 or not isinstance(given[0], str):
        raise BadInput("a term of a filter is [attribute, operator, value]")
    name, operator, value = given
    try:
        known = Operator(operator)
    except ValueError:
        raise BadInput(f"filters know the operators {', '.join(one.value for one in Operator)}") from None
    if isinstance(value, (list, tuple)) and len(value) > MOST_VALUES:
        raise BadInput(f"'in' takes 1 to {MOST_VALUES} values, not {len(value)} ({name})")
    return Term(name, known, tuple(value) if isinstance(value, (list, tuple)) else value)


ALL = Filter((Conjunction(()),))
"""Matches whatever is published."""
