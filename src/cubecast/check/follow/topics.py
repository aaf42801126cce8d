"""What is remembered of a topic while its run goes on, and no more: it does not grow with the run's history.

Of each publisher the causes of its publications are kept as what each adds to those before it. What every open
subscription has passed is forgotten, its causes joined into one vector.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

Publisher: TypeAlias = tuple[int, int]
"""Node and incarnation."""
Vector: TypeAlias = dict[Publisher, int]


class Line(NamedTuple):
    """Consecutive publications, published in one step."""

    first: int
    last: int
    adds: tuple[tuple[Publisher, int], ...]
    """What the first of them depends on that its predecessor did not."""
    digests: list[int] | None


_LAST = attrgetter("last")


@dataclass(slots=True)
class FollowedMessage:
    """What a publisher said on the topic."""

    last: int = 0
    base: Vector = field(default_factory=dict)
    """What all that is forgotten depended on."""
    forgotten: int = 0
    """Up to this counter."""
    lines: list[Line] = field(default_factory=list)
    """Without holes, in the order of their counters."""
    failed: list[tuple[int, int]] = field(default_factory=list)

    def line(self, first: int) -> Line | None:
        """The one that begins with this counter or contains it; where every line is one message, without a search."""
        lines = self.lines
        if not lines:
            return None
        place = first - lines[0].first
        if not (0 <= place < len(lines) and lines[place].first == first):
            place = bisect_right(lines, first - 1, key=_LAST)
        return lines[place] if place < len(lines) else None

    def between(self, after: int, upto: int) -> list[Line]:
        """Those with messages behind `after`, up to `upto`; found by halving, because a slow reader makes them many."""
        begin = bisect_right(self.lines, after, key=_LAST)
        end = begin + 1
        while end < len(self.lines) and self.lines[end].first <= upto:
            end += 1
        found = self.lines[begin:end]
        return found if found and found[0].first <= upto else []

    def causes(self, after: int, upto: int) -> Iterator[tuple[Publisher, int]]:
        """What messages behind `after`, up to `upto`, depend on; what the first ones do, at least."""
        if after < self.forgotten:
            yield from self.base.items()
        for line in self.between(after, upto):
            yield from line.adds

    def digests(self, first: int, last: int) -> list[int] | None:
        """None where not all of them are known any more."""
        found: list[int] = []
        for line in self.between(first - 1, last):
            if line.digests is None:
                return None
            begin, end = max(0, first - line.first), min(line.last, last) - line.first + 1
            if end - begin == last - first + 1 == len(line.digests):
                return line.digests
            found += line.digests[begin:end]
        return found if len(found) == last - first + 1 else None

    def forget(self, upto: int) -> None:
        passed = bisect_right(self.lines, upto, key=_LAST)
        for line in self.lines[:passed]:
            self.forgotten = line.last
            for publisher, counter in line.adds:
                if counter > self.base.get(publisher, 0):
                    self.base[publisher] = counter
        del self.lines[:passed]


@dataclass(slots=True)
class FollowedSubscription:
    got: Vector = field(default_factory=dict)
    """Of each publisher, up to where nothing is owed any more: the cut, and what was delivered or excused."""
    stated: Vector = field(default_factory=dict)
    """The cut, of whom it was stated."""
    excused: dict[Publisher, set[int]] = field(default_factory=dict)
    needed: Vector = field(default_factory=dict)
    """Causes of what was delivered, of publishers nothing was heard of: they must not come later."""
    published: Vector = field(default_factory=dict)
    """What there was when it was confirmed: a cut may not reach further."""
    is_confirmed: bool = False
    is_leaving: bool = False


@dataclass(slots=True)
class LogTopic:
    """A topic in one node's log."""

    past: Vector = field(default_factory=dict)
    """All that happened before what the log says next."""
    new: Vector = field(default_factory=dict)
    """What of it came since the last publication."""
    subscription: FollowedSubscription | None = None
    delivered: dict[Publisher, tuple[int, int]] = field(default_factory=dict)
    """First and last counter."""
    acknowledged: int = 0

    def learn(self, publisher: Publisher, counter: int) -> None:
        if counter > self.past.get(publisher, 0):
            self.past[publisher] = self.new[publisher] = counter


@dataclass(slots=True)
class FollowedTopic:
    published: dict[Publisher, FollowedMessage] = field(default_factory=dict)
    logs: dict[Publisher, LogTopic] = field(default_factory=dict)
    before: dict[int, dict[Publisher, tuple[int, int]]] = field(default_factory=dict)
    """What earlier incarnations of a node delivered."""
    lines: int = 0
    """Published since the last time something was forgotten."""

    def log(self, log: Publisher) -> LogTopic:
        found = self.logs.get(log)
        if found is None:
            found = self.logs[log] = LogTopic()
        return found

    def of(self, publisher: Publisher) -> FollowedMessage:
        found = self.published.get(publisher)
        if found is None:
            found = self.published[publisher] = FollowedMessage()
        return found

    def forget(self) -> None:
        """What every open subscription has passed."""
        self.lines = 0
        open_ones = [log.subscription for log in self.logs.values() if log.subscription is not None]
        for publisher, told in self.published.items():
            if told.lines:
                passed = told.last
                for one in open_ones:
                    reached = one.got.get(publisher)
                    if reached is None and one.is_confirmed:
                        continue  # it never heard of the publisher and may never
                    passed = min(passed, reached or 0)
                told.forget(passed)

    @property
    def size(self) -> int:
        """Publications that are remembered."""
        return sum(line.last - line.first + 1 for told in self.published.values() for line in told.lines)
