"""How much of a topic is kept: forgetting the rest a little at a time, and giving its room back.

Segments go, oldest first, when nothing in them is kept any more. One that still holds something while most of the log
is forgotten is emptied: what is kept of it is written again at the end. So the files never take much more than twice
what they hold.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from cubecast.ids import Topic
from cubecast.log.index import Account, Index
from cubecast.log.record import Broken, Record, decode_frame
from cubecast.log.segments import SEGMENT_BYTES, SegmentReader
from cubecast.log.writer import Ledger
from cubecast.patterns import matcher

STEP_BYTES = 1 << 20


class Cleaner:
    def step(self, ledger: Ledger) -> bool:
        """A bounded piece of work on the oldest file; False when there is nothing to do."""
        segments, database = ledger.segments, ledger.index.database
        oldest = segments.oldest
        if oldest >= segments.number:
            return False
        query = "SELECT seq, file, start, length FROM batches ORDER BY seq LIMIT 1000"
        rows = [row for row in database.execute(query).fetchall() if row[1] == oldest]
        live = sum(account.bytes for account in ledger.index.accounts.values())
        if not rows:
            segments.remove(oldest)
            return True
        return segments.size > 2 * (live + SEGMENT_BYTES) and self._empty(ledger, rows)

    def _empty(self, ledger: Ledger, rows: list[tuple[int, int, int, int]]) -> bool:
        reader = SegmentReader(ledger.segments.directory)
        moved: list[tuple[int, Record]] = []
        size = 0
        try:
            for seq, file, start, length in rows:
                moved.append((seq, decode_frame(reader.read(file, start, length))))
                size += length
                if size >= STEP_BYTES:
                    break
        except Broken:
            # Reading there will tell the reader that asks for it; until it is repaired or forgotten, the file stays.
            if not moved:
                return False
        finally:
            reader.close()
        ledger.move(moved)
        return True


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
