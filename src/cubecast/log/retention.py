"""How much of a topic is kept, and forgetting the rest a little at a time."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from cubecast.ids import Topic
from cubecast.log.cleaning import Cleaner
from cubecast.log.index import Account, Index
from cubecast.log.ledger import Ledger
from cubecast.patterns import matcher

STEP = 500
"""Batches forgotten in one transaction; a commit that waits behind it waits no longer than for that."""
FREED = 2_000
"""Pages given back to the file system at a time."""


class Limits(Protocol):
    """What exceeds one of these is forgotten, oldest first, whole batches at a time; 0 sets no limit."""

    @property
    def max_bytes(self) -> int: ...
    @property
    def max_age(self) -> float: ...
    @property
    def max_messages(self) -> int: ...


class Kept(NamedTuple):
    """What is left of a topic."""

    topic: Topic
    first: int


class Janitor:
    """Used in the writer's thread."""

    def __init__(self, rules: Mapping[str, Limits]) -> None:
        self._rules = [(matcher(pattern), rule) for pattern, rule in rules.items()]
        self._by_topic: dict[Topic, Limits | None] = {}
        self._cleaner = Cleaner()

    def rule(self, topic: Topic) -> Limits | None:
        if topic not in self._by_topic:
            found = next((rule for matches, rule in self._rules if matches(topic)), None)
            self._by_topic[topic] = found if found is not None and _limits(found) else None
        return self._by_topic[topic]

    def sweep(self, ledger: Ledger, now: float) -> tuple[list[Kept], bool]:
        """One step for each topic that has too much; the changed ones, and whether there may be more to do."""
        changed = []
        for topic, account in list(ledger.index.accounts.items()):
            rule = self.rule(topic)
            if rule is not None:
                first, freed = _excess(ledger.index, account, rule, now)
                if first > account.first:
                    ledger.index.forget(topic, first, freed)
                    changed.append(Kept(topic, first))
        cleaned = self._cleaner.step(ledger)
        if changed:
            ledger.index.shrink(FREED)
        return changed, cleaned or bool(changed)


def _excess(index: Index, account: Account, rule: Limits, now: float) -> tuple[int, int]:
    """The first offset to keep, and the bytes before it; at most a step ahead."""
    first, left = account.first, account.bytes
    query = "SELECT offset, count, at, length FROM batches WHERE topic=? AND offset>=? ORDER BY offset LIMIT ?"
    for offset, count, at, size in index.database.execute(query, (account.number, first, STEP)).fetchall():
        end = offset + count
        too_large = rule.max_bytes and left > rule.max_bytes and end <= account.last
        too_old = rule.max_age and at < now - rule.max_age
        too_many = rule.max_messages and end <= account.last + 1 - rule.max_messages
        if not (too_large or too_old or too_many):
            break
        first, left = end, left - size
    return first, account.bytes - left


def _limits(rule: Limits) -> bool:
    """Does it limit anything?"""
    return bool(rule.max_bytes or rule.max_age or rule.max_messages)
