"""Which of many filters match an event, without looking at all of them.

A conjunction's demands for equality are its first key: it is filed in the bucket of the attributes and values they name
together, so that an event fetches one bucket per set of attributes in use. A bucket that holds many files each under
one of its other demands, the one that promises the fewest beside it: prefixes by a table per length, intervals by grids
whose cells are as wide as they are, half-open ones sorted by their end. Only what an event fetches that way is compared
in full. Equal conjunctions are filed once.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import product
from math import floor, frexp, inf, ldexp
from typing import Generic, TypeAlias, TypeVar

from cubecast.protocol.filters.conditions import Conjunction, Filter
from cubecast.protocol.filters.domains import Absent, Domain, Finite, Interval, Prefix
from cubecast.protocol.filters.values import Attributes, Key, Value, key_of

K = TypeVar("K", bound=Hashable)
L = TypeVar("L", bound=Hashable)
Entry: TypeAlias = int
"""The number of a conjunction in the index."""
Domains: TypeAlias = Mapping[str, Domain]
Signature: TypeAlias = tuple[str, ...]
"""The attributes for which a conjunction demands equality."""

MOST_SIGNATURES = 64
"""An event looks under each; strangers who invent attributes must not make that expensive."""
MOST_PLACES = 8
"""Combinations of values that one conjunction is filed under."""
SMALL = 8
"""Conjunctions that a bucket keeps without looking at their other demands."""

_HALF_OPEN_SHARE = 2
"""Of the half-open intervals an event's value is taken to lie in one of so many."""


class MatchingIndex(Generic[K]):
    """Filters by key; `matching` gives the keys, in the order they were added in."""

    def __init__(self) -> None:
        self._filters: dict[K, Filter] = {}
        self._numbers: dict[K, int] = {}
        self._entries: dict[Conjunction, Entry] = {}
        self._rests: dict[Entry, tuple[tuple[str, Domain], ...]] = {}
        """What a conjunction demands besides what it is filed under first."""
        self._holders: dict[Entry, dict[K, None]] = {}
        self._signatures: dict[Signature, dict[tuple[Key, ...], _Bucket]] = {}
        self._filed: dict[Entry, Signature] = {}
        self._added = 0

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def add(self, key: K, wanted: Filter) -> None:
        """File a filter; one that was filed under the key before is replaced and keeps its place."""
        number = self._numbers.get(key)
        self.discard(key)
        self._added += 1
        self._filters[key] = wanted
        self._numbers[key] = self._added if number is None else number
        for one in wanted.alternatives:
            entry = self._entries.get(one)
            if entry is None:
                self._added += 1
                entry = self._entries[one] = self._added
                self._holders[entry] = {}
                self._file(entry, one)
            self._holders[entry][key] = None

    def discard(self, key: K) -> None:
        wanted = self._filters.pop(key, None)
        if wanted is None:
            return
        del self._numbers[key]
        for one in wanted.alternatives:
            entry = self._entries[one]
            holders = self._holders[entry]
            del holders[key]
            if not holders:
                self._remove(entry, one)

    def matching(self, attributes: Attributes) -> list[K]:
        found: dict[K, None] = {}
        holders, rests = self._holders, self._rests
        for entry in self._candidates(attributes):
            if _fulfils(attributes, rests[entry]):
                found.update(holders[entry])
        return sorted(found, key=self._numbers.__getitem__) if len(found) > 1 else list(found)

    def labels(self, attributes: Attributes, label: Callable[[K], L], known: set[L]) -> None:
        """Add the labels of the keys whose filters match. Where all are known already, nothing is compared."""
        holders, rests = self._holders, self._rests
        for entry in self._candidates(attributes):
            labels = {label(key) for key in holders[entry]}
            if not labels <= known and _fulfils(attributes, rests[entry]):
                known |= labels

    def _candidates(self, attributes: Attributes) -> Iterator[Entry]:
        """Each conjunction once: it is filed under one signature, and there in one place for each event."""
        keys = {name: key_of(value) for name, value in attributes.items()}
        for signature, buckets in self._signatures.items():
            try:
                bucket = buckets.get(tuple([keys[name] for name in signature]))
            except KeyError:  # the event lacks an attribute
                continue
            if bucket is not None:
                yield from bucket.few or bucket.candidates(attributes)

    def _file(self, entry: Entry, one: Conjunction) -> None:
        if one.empty:
            return  # nothing fetches it
        signature = _signature_of(one.domains)
        if signature not in self._signatures and len(self._signatures) >= MOST_SIGNATURES:
            signature = ()
        self._filed[entry] = signature
        buckets = self._signatures.setdefault(signature, {})
        rest = _rest(one.domains, signature)
        self._rests[entry] = tuple(rest.items())
        for values in _places(one.domains, signature):
            bucket = buckets.get(values)
            if bucket is None:
                bucket = buckets[values] = _Bucket()
            bucket.add(entry, rest)

    def _remove(self, entry: Entry, one: Conjunction) -> None:
        del self._entries[one], self._holders[entry]
        self._rests.pop(entry, None)
        signature = self._filed.pop(entry, None)
        if signature is None:
            return
        buckets = self._signatures[signature]
        for values in _places(one.domains, signature):
            buckets[values].remove(entry)
            if not buckets[values].size:
                del buckets[values]
        if not buckets:
            del self._signatures[signature]


def _fulfils(attributes: Attributes, demands: Iterable[tuple[str, Domain]]) -> bool:
    for name, domain in demands:
        value = attributes.get(name)
        if value is None:
            if type(domain) is not Absent:
                return False
        elif value not in domain:
            return False
    return True


def _signature_of(domains: Domains) -> Signature:
    """As many demands for equality as give few combinations, those with the fewest values first."""
    finite = sorted((len(domain.keys), name) for name, domain in domains.items() if isinstance(domain, Finite))
    chosen, places = [], 1
    for size, name in finite:
        places *= size
        if places > MOST_PLACES:
            break
        chosen.append(name)
    return tuple(sorted(chosen))


def _places(domains: Domains, signature: Signature) -> Iterator[tuple[Key, ...]]:
    finite = [domain for name in signature if isinstance(domain := domains[name], Finite)]
    return product(*(domain.keys for domain in finite))


def _rest(domains: Domains, signature: Signature) -> Domains:
    return {name: domain for name, domain in domains.items() if name not in signature}


class _Bucket:
    """Conjunctions with the same first key: a list while they are few, then filed by another demand of each."""

    __slots__ = ("_absent", "_always", "_attributes", "_filed", "few")

    def __init__(self) -> None:
        self.few: dict[Entry, Domains] | None = {}
        self._filed: dict[Entry, tuple[str, Domain] | None] = {}
        self._always: dict[Entry, None] = {}
        self._absent: dict[str, dict[Entry, None]] = {}
        self._attributes: dict[str, _AttributeIndex] = {}

    @property
    def size(self) -> int:
        return len(self._filed) if self.few is None else len(self.few)

    def add(self, entry: Entry, domains: Domains) -> None:
        if self.few is None:
            self._file(entry, domains)
            return
        self.few[entry] = domains
        if len(self.few) > SMALL:
            few, self.few = self.few, None
            for one, its_domains in few.items():
                self._file(one, its_domains)

    def remove(self, entry: Entry) -> None:
        if self.few is not None:
            del self.few[entry]
            return
        filed = self._filed.pop(entry)
        if filed is None:
            del self._always[entry]
            return
        name, domain = filed
        if isinstance(domain, Absent):
            del self._absent[name][entry]
            if not self._absent[name]:
                del self._absent[name]
        else:
            index = self._attributes[name]
            index.remove(entry, domain)
            if not index.size:
                del self._attributes[name]

    def candidates(self, attributes: Attributes) -> Iterator[Entry]:
        """Of a bucket that holds many."""
        yield from self._always
        for name, index in self._attributes.items():
            value = attributes.get(name)
            if value is not None:
                yield from index.candidates(value)
        for name, entries in self._absent.items():
            if name not in attributes:
                yield from entries

    def _file(self, entry: Entry, domains: Domains) -> None:
        if not domains:
            self._filed[entry] = None
            self._always[entry] = None
            return
        there = {name: domain for name, domain in domains.items() if not isinstance(domain, Absent)}
        name = min(there or domains, key=lambda one: (self._cost(one, domains[one]), one))
        self._filed[entry] = name, domains[name]
        if there:
            self._attributes.setdefault(name, _AttributeIndex()).add(entry, domains[name])
        else:
            self._absent.setdefault(name, {})[entry] = None

    def _cost(self, name: str, domain: Domain) -> float:
        index = self._attributes.get(name)
        return 0.0 if index is None else index.cost(domain)


class _AttributeIndex:
    """The conjunctions filed under one attribute."""

    def __init__(self) -> None:
        self.size = 0
        self._equal: dict[Key, dict[Entry, None]] = {}
        self._prefixes: dict[int, dict[str, dict[Entry, None]]] = {}
        self._cells: dict[int, dict[int, dict[Entry, None]]] = {}
        self._from: list[tuple[float, Entry]] = []
        """Half-open intervals by their lower end,"""
        self._upto: list[tuple[float, Entry]] = []
        """by their upper end."""
        self._present: dict[Entry, None] = {}

    def candidates(self, value: Value) -> Iterator[Entry]:
        yield from self._present
        yield from self._equal.get(key_of(value), ())
        if isinstance(value, str):
            for length, table in self._prefixes.items():
                if length <= len(value):
                    yield from table.get(value[:length], ())
        elif not isinstance(value, bool) and value == value:  # a NaN is in no interval
            if abs(value) < inf:
                for exponent, cells in self._cells.items():
                    yield from cells.get(_cell(value, exponent), ())
            for _, entry in self._from[: bisect_right(self._from, (value, inf))]:
                yield entry
            for _, entry in self._upto[bisect_left(self._upto, (value, 0)) :]:
                yield entry

    def cost(self, domain: Domain) -> float:
        """How many others are expected to be fetched beside it."""
        if isinstance(domain, Finite):
            return max(len(self._equal.get(key, ())) for key in domain.keys)
        if isinstance(domain, Prefix):
            return len(self._prefixes.get(len(domain.prefix), {}).get(domain.prefix, ())) + 1 / (1 + len(domain.prefix))
        if isinstance(domain, Interval):
            exponent, cells = _cells(domain)
            if cells:
                table = self._cells.get(exponent, {})
                return max(len(table.get(cell, ())) for cell in cells) + 1
            return (len(self._from) + len(self._upto)) / _HALF_OPEN_SHARE + 2
        return len(self._present) + 3

    def add(self, entry: Entry, domain: Domain) -> None:
        self.size += 1
        for place in self._places(domain):
            place[entry] = None
        for ends, end in self._half_open(domain):
            insort(ends, (end, entry))

    def remove(self, entry: Entry, domain: Domain) -> None:
        self.size -= 1
        for place in self._places(domain):
            del place[entry]
        for ends, end in self._half_open(domain):
            del ends[bisect_left(ends, (end, entry))]
        self._forget_empty(domain)

    def _places(self, domain: Domain) -> list[dict[Entry, None]]:
        if isinstance(domain, Finite):
            return [self._equal.setdefault(key, {}) for key in domain.keys]
        if isinstance(domain, Prefix):
            return [self._prefixes.setdefault(len(domain.prefix), {}).setdefault(domain.prefix, {})]
        if isinstance(domain, Interval):
            exponent, cells = _cells(domain)
            if cells:
                table = self._cells.setdefault(exponent, {})
                return [table.setdefault(cell, {}) for cell in cells]
            return []
        return [self._present]

    def _half_open(self, domain: Domain) -> list[tuple[list[tuple[float, Entry]], float]]:
        if not isinstance(domain, Interval) or _cells(domain)[1]:
            return []
        return [(self._from, domain.low)] if domain.low > -inf else [(self._upto, domain.high)]

    def _forget_empty(self, domain: Domain) -> None:
        """Tables that nothing is filed in any more: what comes and goes leaves nothing behind."""
        if isinstance(domain, Finite):
            for key in domain.keys:
                if not self._equal[key]:
                    del self._equal[key]
        elif isinstance(domain, Prefix):
            _drop(self._prefixes, len(domain.prefix), [domain.prefix])
        elif isinstance(domain, Interval):
            exponent, cells = _cells(domain)
            if cells:
                _drop(self._cells, exponent, cells)


T = TypeVar("T", bound=Hashable)


def _drop(tables: dict[int, dict[T, dict[Entry, None]]], number: int, names: "list[T]") -> None:
    table = tables[number]
    for name in names:
        if name in table and not table[name]:
            del table[name]
    if not table:
        del tables[number]


def _cell(value: float, exponent: int) -> int:
    """The number of the cell, 2^exponent wide, that the value is in."""
    return floor(ldexp(value, -exponent)) if isinstance(value, float) else _whole_cell(value, exponent)


def _whole_cell(value: int, exponent: int) -> int:
    """Exact for integers that no float holds."""
    return value >> exponent if exponent >= 0 else value << -exponent


def _cells(interval: Interval) -> tuple[int, list[int]]:
    """Width and numbers of the one or two cells that hold a bounded interval; none where no cell is fit for it."""
    if not interval.bounded:
        return 0, []
    try:
        width = float(interval.high) - float(interval.low)
        exponent = frexp(width)[1]  # width < 2^exponent, so two cells are enough
        first, last = _cell(interval.low, exponent), _cell(interval.high, exponent)
    except OverflowError:
        return 0, []
    # Rounding may make the width too small by far for two large ends; then the interval is taken as half-open.
    return (exponent, list(range(first, last + 1))) if last - first <= 2 else (0, [])
