"""P14, P15, P16: what processes that live through suspicions were handed, over all of their incarnations.

Only runs in which a process lived through one are looked at, and of those only what each subscription accounted for:
its deliveries and gaps, in order. They are put together by process on the driver. Follows decision 0037.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cubecast.pipeline.assemble import RunSummary, processes
from cubecast.pipeline.findings import Finding
from cubecast.pipeline.messages import FOREVER, RunMessages
from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.pipeline.subscriptions import Subscription, pack, pack_one, subscriptions_of, unpack
from cubecast.trace.schema import Kind

PREMISED = ("P14", "P15", "P16")
DELIVER, GAP, UNDELIVERED = CODE[Kind.DELIVER], CODE[Kind.GAP], CODE[Kind.UNDELIVERED]
Message = tuple[int, int]
"""Packed publisher, counter."""


def account_rows(runs: frozenset[int], rows: Rows) -> list[dict[str, Any]]:
    """Rows of `frames.ACCOUNT`: what each subscription accounted for, and (ordinal −1) what publishers were told."""
    found: list[dict[str, Any]] = []
    for log in rows.logs:
        if log.run not in runs:
            continue
        found += [_account(rows, log, one) for one in subscriptions_of(rows, log)[0]]
        kind = rows.kind[log.start : log.stop]
        told = np.flatnonzero(kind == UNDELIVERED) + log.start
        for topic in np.unique(rows.topic[told]).tolist():
            found.append(_row(rows, log, topic, -1, told[rows.topic[told] == topic]))
    return found


def _account(rows: Rows, log: Log, one: Subscription) -> dict[str, Any]:
    kind = rows.kind[one.start : one.stop]
    here = ((kind == DELIVER) | (kind == GAP)) & (rows.topic[one.start : one.stop] == one.topic)
    confirmed = None if one.subscribed is None else int(rows.seq[one.subscribed])
    # What is owed to a process is said of whole topics: of a filtered subscription nothing is.
    more = {"left": one.left or one.wants is not None, "subscribed": confirmed}
    return _row(rows, log, one.topic, one.ordinal, np.flatnonzero(here) + one.start) | more


def _row(rows: Rows, log: Log, topic: int, ordinal: int, at: Ints) -> dict[str, Any]:
    return {
        "run": log.run,
        "node": log.node,
        "incarnation": log.incarnation,
        "topic": rows.topics[topic],
        "ordinal": ordinal,
        "lost": rows.kind[at] == GAP,
        "publisher": pack(rows.source[at], rows.source_incarnation[at]),
        "counter": rows.counter[at],
        "seq": rows.seq[at],
    }


@dataclass
class _Part:
    """What one subscription of one log accounted for."""

    row: dict[str, Any]

    def messages(self) -> Iterator[Message]:
        return zip(self.row["publisher"], self.row["counter"], strict=True)

    @property
    def key(self) -> int:
        return pack_one(self.row["node"], self.row["incarnation"])


@dataclass
class _Continued:
    """Parts of one process on one topic that follow each other."""

    process: int
    topic: str
    parts: list[_Part]
    accounts: dict[Message, tuple[bool, _Part, int]] = field(default_factory=dict)
    """Each message at its first row: whether that is a gap, where it is."""
    delivered: set[Message] = field(default_factory=set)

    def gather(self) -> None:
        for part in self.parts:
            columns = (part.row[name] for name in ("lost", "publisher", "counter", "seq"))
            for lost, publisher, counter, seq in zip(*columns, strict=True):
                self.accounts.setdefault((publisher, counter), (lost, part, seq))
                if not lost:
                    self.delivered.add((publisher, counter))


class Continuity:
    """One run by processes."""

    def __init__(self, summary: RunSummary, run: RunMessages, rows: Iterable[dict[str, Any]]) -> None:
        self.run, self.logs = run, summary.logs
        number = processes(summary.logs)
        self.process = {log.key: int(one) for log, one in zip(summary.logs, number, strict=True)}
        self.last = {int(one): log for log, one in zip(summary.logs, number, strict=True)}
        self.lives = np.bincount(number)
        self.told: defaultdict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
        by_log: defaultdict[tuple[str, int], list[_Part]] = defaultdict(list)
        for row in rows:
            if row["ordinal"] < 0:
                self.told[self.process[pack_one(row["node"], row["incarnation"])], row["topic"]].append(row)
            else:
                by_log[row["topic"], pack_one(row["node"], row["incarnation"])].append(_Part(row))
        topics = sorted({topic for topic, _ in by_log})
        self.continued = [one for topic in topics for one in self._continued(topic, by_log)]
        self.acknowledged = set(self._acknowledged())
        self.heard = {
            (topic, message)
            for (topic, key), parts in by_log.items()
            if self.alive(self.process[key])
            for part in parts
            for message, lost in zip(part.messages(), part.row["lost"], strict=True)
            if not lost
        }

    def alive(self, process: int) -> bool:
        return self.last[process].ending == Kind.QUIESCENT

    @property
    def vacuous(self) -> bool:
        return not any(self.alive(process) and lives > 1 for process, lives in enumerate(self.lives.tolist()))

    def _acknowledged(self) -> Iterator[tuple[str, Message]]:
        for log in self.logs:
            columns = log.lists["acknowledged_topic"].tolist(), log.lists["acknowledged_counter"].tolist()
            for topic, counter in zip(*columns, strict=True):
                yield log.topics[topic], (log.key, counter)

    def _continued(self, topic: str, by_log: dict[tuple[str, int], list[_Part]]) -> Iterator[_Continued]:
        """Subscriptions of processes that are there to the end, and still want the topic, from being confirmed on."""
        current: _Continued | None = None
        found: list[_Continued] = []
        for log in self.logs:
            process, parts = self.process[log.key], by_log.get((topic, log.key), [])
            if current is not None and (current.process != process or not parts):
                current = None
            for part in sorted(parts, key=lambda one: int(one.row["ordinal"])):
                if current is not None and part.row["ordinal"] == 0 and not current.parts[-1].row["left"]:
                    current.parts.append(part)
                else:
                    current = _Continued(process, topic, [part])
                    found.append(current)
        for one in found:
            last = one.parts[-1]
            while one.parts and one.parts[0].row["subscribed"] is None:
                del one.parts[0]
            ends_well = self.alive(one.process) and last.key == self.last[one.process].key and not last.row["left"]
            if one.parts and ends_well:
                one.gather()
                yield one

    def owed(self, one: _Continued) -> dict[int, int]:
        """Per publisher's life (packed), the last counter it has no claim to; lives that are not there owe nothing."""
        topic = self.run.topic(one.topic)
        first: dict[int, int] = {}
        for publisher, counter in one.accounts:
            first[publisher] = min(first.get(publisher, FOREVER), counter)
        for rank, publisher in enumerate(topic.publishers.tolist()):
            for part in one.parts:
                cut = self.run.implied_cut(topic, rank, part.key, part.row["subscribed"])
                if cut != FOREVER:
                    first[publisher] = min(first.get(publisher, FOREVER), cut + 1)
        owed: dict[int, int] = {}
        began = -1
        for publisher in sorted({*topic.publishers.tolist(), *first}):
            process = self.process.get(publisher)
            if process is not None and process == began:
                owed[publisher] = 0
            elif process is not None and publisher in first:
                began, owed[publisher] = process, first[publisher] - 1
        return owed

    def messages(self, one: _Continued) -> Iterator[Message]:
        topic = self.run.topic(one.topic)
        count = dict(zip(topic.publishers.tolist(), topic.count.tolist(), strict=True))
        for publisher, last in self.owed(one).items():
            yield from ((publisher, counter) for counter in range(last + 1, count.get(publisher, 0) + 1))

    def findings(self) -> Iterator[Finding]:
        yield from self._told_twice()
        if self.vacuous:
            return
        for one in self.continued:
            yield from self._out_of_order(one)
            for message in self.messages(one):
                if message not in one.accounts and self.alive(self.process[message[0]]):
                    yield self._lacks("P14", one, message, "is neither delivered nor named by a gap")
                if message not in one.delivered and self._is_kept(one.topic, message):
                    yield self._lacks("P15", one, message, "was acknowledged but is not delivered here")
            yield from self._untold(one)

    def premises(self) -> dict[str, int]:
        """About how many pairs of subscription and message each property spoke; 0 is vacuous."""
        counts = dict.fromkeys(PREMISED, 0)
        for one in () if self.vacuous else self.continued:
            for message in self.messages(one):
                publisher = self.process[message[0]]
                if publisher != one.process and max(self.lives[publisher], self.lives[one.process]) > 1:
                    counts["P14"] += self.alive(publisher)
                    counts["P15"] += self._is_kept(one.topic, message)
            counts["P16"] += sum(1 for _ in self._named(one))
        return counts

    def _is_kept(self, topic: str, message: Message) -> bool:
        """Was it acknowledged, and did a process that lives to the end publish it or deliver it?"""
        if (topic, message) not in self.acknowledged:
            return False
        return self.alive(self.process[message[0]]) or (topic, message) in self.heard

    def _out_of_order(self, one: _Continued) -> Iterator[Finding]:
        """P14: deliveries with a cause, or an earlier message of the same process, that is not accounted for yet."""
        topic, owed = self.run.topic(one.topic), self.owed(one)
        reach = np.full(len(topic.publishers), FOREVER)
        for rank, publisher in enumerate(topic.publishers.tolist()):
            if publisher in owed and self.alive(self.process[publisher]):
                reach[rank] = owed[publisher]
        beyond: defaultdict[int, set[int]] = defaultdict(set)
        for (publisher, counter), (lost, part, seq) in one.accounts.items():
            rank = int(topic.rank(np.array([publisher]))[0])
            slot = int(topic.slots(np.array([rank]), np.array([counter]))[0])
            if not lost and slot >= 0:
                causes = topic.closure[slot].astype(np.int64)
                causes[rank] = counter - 1
                early = np.flatnonzero(causes > reach)
                if len(early):
                    cause = (*unpack(int(topic.publishers[early[0]])), int(reach[early[0]]) + 1)
                    message = (*unpack(publisher), counter)
                    reason = f"{message} is delivered before {cause}, its cause"
                    yield _finding("P14", one, part, seq, reason, message, cause)
            if rank >= 0:
                beyond[rank].add(counter)
                while reach[rank] != FOREVER and int(reach[rank]) + 1 in beyond[rank]:
                    reach[rank] += 1

    def _named(self, one: _Continued) -> Iterator[tuple[Message, _Part, int]]:
        """Messages of other living processes that a gap takes from this subscription."""
        for message, (lost, part, seq) in one.accounts.items():
            publisher = self.process.get(message[0])
            if lost and message not in one.delivered and publisher not in (None, one.process):
                assert publisher is not None
                if self.alive(publisher):
                    yield message, part, seq

    def _untold(self, one: _Continued) -> Iterator[Finding]:
        for (publisher, counter), part, seq in self._named(one):
            told = self.told[self.process[publisher], one.topic]
            if not any((publisher, counter) in zip(row["publisher"], row["counter"], strict=True) for row in told):
                message = (*unpack(publisher), counter)
                reason = f"{message} is lost here and its publisher is not told"
                yield _finding("P16", one, part, seq, reason, message)

    def _told_twice(self) -> Iterator[Finding]:
        for (_, topic), rows in self.told.items():
            seen: set[Message] = set()
            for row in rows:
                for publisher, counter, seq in zip(row["publisher"], row["counter"], row["seq"], strict=True):
                    if (publisher, counter) in seen:
                        message = (*unpack(publisher), counter)
                        reason = f"the publisher is told a second time that {message} is not delivered"
                        yield Finding("P16", row["node"], row["incarnation"], seq, reason, topic, message=message)
                    seen.add((publisher, counter))

    def _lacks(self, promise: str, one: _Continued, message: Message, what: str) -> Finding:
        log, name = self.last[one.process], (*unpack(message[0]), message[1])
        where = (promise, log.node, log.incarnation, max(log.rows - 1, 0), f"{name} {what}")
        return Finding(*where, one.topic, one.parts[-1].row["ordinal"], message=name, certain=False)


def _finding(
    promise: str,
    one: _Continued,
    part: _Part,
    seq: int,
    reason: str,
    message: tuple[int, int, int],
    other: tuple[int, int, int] | None = None,
) -> Finding:
    where = (promise, part.row["node"], part.row["incarnation"], seq, reason, one.topic, part.row["ordinal"])
    return Finding(*where, message=message, other=other, certain=False)
