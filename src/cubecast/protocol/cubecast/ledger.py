"""What a process has of a topic, through all of its incarnations: what it was handed or told is missing, what exists.

An incarnation keeps this in its barriers and in how far its delivery is. What others held faulty is over and nothing of
it comes any more; what the process knew of it must not be forgotten with the incarnation, or no process could tell what
is missing. So whatever an incarnation knows of a life that is over goes here, and it leaves all of it here at its end.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.protocol.cubecast.copies import Epoch
from cubecast.protocol.cubecast.vocabulary import Entry, Life, Reach, Run, Since

MOST_NOTES: Final = 16
"""Of one subscriber: of so many of its subscriptions the beginning is remembered."""


MOST_LIVES: Final = 256
"""Of one publisher, that many are remembered, and at most twice as many."""
FORGOTTEN: Final = 1 << 62


class Ledger:
    """Of one topic."""

    __slots__ = (
        "_floor",
        "begun",
        "claims",
        "got",
        "has_published",
        "is_ready",
        "known",
        "noted",
        "since",
        "subscribers",
    )

    def __init__(self) -> None:
        self.known: dict[Life, Counter] = {}
        """How far lives published, as this process knows: its own that are over, and those it heard of."""
        self._floor: dict[NodeId, Incarnation] = {}
        """Lives below are forgotten: everything of theirs counts as accounted for."""
        self.got: dict[Life, Counter] = {}
        """Up to where the subscription, through all lives, was handed what they published, was told that it is missing,
        or has no claim to it."""
        self.claims: dict[NodeId, Incarnation] = {}
        """The publishers that know of the subscription, and since which life: it has a claim to everything else of that
        life and later ones, and to nothing of earlier ones, whenever this process hears of those."""
        self.begun: Epoch = (0, 0)
        """With this epoch the subscription began to have claims."""
        self.is_ready = False
        """The subscription was confirmed once, in some life."""
        self.has_published = False
        """In a life that is over."""
        self.subscribers: dict[NodeId, Entry] = {}
        """Who was subscribed in lives of this process that are over."""
        self.since: dict[NodeId, list[Since]] = {}
        """By subscriber: the first own message after its subscription was known."""
        self.noted: dict[NodeId, Epoch] = {}
        """The newest of them."""

    def learn(self, life: Life, counter: Counter) -> None:
        known = self.known.get(life, 0)
        if counter > known and life.incarnation >= self._floor.get(life.node, 0):
            self.known[life] = counter
            if not known and life.incarnation % MOST_LIVES == 0:
                self.forget(life.node, life.incarnation - MOST_LIVES)

    def forget(self, node: NodeId, before: Incarnation) -> None:
        """These lives are of a program that has ended, or of one that came back very often."""
        if before <= self._floor.get(node, 0):
            return
        self._floor[node] = before
        if node in self.since:
            self.since[node] = [one for one in self.since[node] if one.epoch >= before]
        old = [life for life in self.known if life.node == node and life.incarnation < before]
        for life in old:
            del self.known[life]
            self.got.pop(life, None)

    def accounted(self, life: Life) -> Counter:
        return self.got.get(life, 0) if life.incarnation >= self._floor.get(life.node, 0) else FORGOTTEN

    def account(self, life: Life, counter: Counter) -> None:
        """All of it up to there is handed over or named, or the subscription has no claim to it."""
        if counter > self.got.get(life, 0) and life.incarnation >= self._floor.get(life.node, 0):
            self.got[life] = counter

    def claim(self, life: Life) -> None:
        """This publisher knows of the subscription, from this life on."""
        self.claims.setdefault(life.node, life.incarnation)

    def is_claimed(self, life: Life) -> bool:
        since = self.claims.get(life.node)
        return since is not None and life.incarnation >= since

    def note(self, entry: Entry, incarnation: Incarnation, counter: Counter) -> None:
        """The subscription is known; the next own message is this one."""
        epoch = entry.incarnation, entry.number
        if entry.subscribed and epoch > self.noted.get(entry.node, (-1, 0)):
            self.noted[entry.node] = epoch
            notes = self.since.setdefault(entry.node, [])
            notes.append(Since(*epoch, incarnation, counter))
            del notes[:-MOST_NOTES]

    def left(self) -> None:
        """The application ended the subscription."""
        self.got.clear()
        self.claims.clear()
        self.is_ready = False

    def reached(self) -> tuple[Reach, ...]:
        return tuple(Reach(*life, counter) for life, counter in sorted(self.known.items()))


class ProcessMemory:
    """What outlives the incarnations of a program."""

    def __init__(self, incarnation: Incarnation) -> None:
        self.first = incarnation
        """It began as this one."""
        self.is_resumed = False
        """Others held an earlier incarnation of it faulty."""
        self.ledgers: dict[Topic, Ledger] = {}
        self.reports = Reports()

    def ledger(self, topic: Topic) -> Ledger:
        ledger = self.ledgers.get(topic)
        if ledger is None:
            ledger = self.ledgers[topic] = Ledger()
        return ledger

    def published(self) -> list[Topic]:
        """Where former lives of this process published."""
        return [topic for topic in self.ledgers if self.has_published(topic)]

    def has_published(self, topic: Topic) -> bool:
        ledger = self.ledgers.get(topic)
        return ledger is not None and ledger.has_published

    def left(self, topic: Topic) -> None:
        """The application ended its subscription."""
        ledger = self.ledgers.get(topic)
        if ledger is not None:
            ledger.left()


class Reports:
    """What publishers are to be told, until they say that they were; and what this process was told itself."""

    def __init__(self) -> None:
        self._open: dict[NodeId, dict[Topic, set[Run]]] = {}
        self._told: dict[tuple[Topic, Incarnation], list[tuple[Counter, Counter]]] = {}

    def owe(self, topic: Topic, life: Life, first: Counter, last: Counter) -> None:
        self._open.setdefault(life.node, {}).setdefault(topic, set()).add(Run(life.incarnation, first, last))

    def owed(self, nodes: Iterable[NodeId]) -> Iterator[tuple[NodeId, Topic, tuple[Run, ...]]]:
        """To these nodes: by topic, the runs that they do not know of."""
        for node in nodes:
            for topic, runs in self._open.get(node, {}).items():
                yield node, topic, tuple(sorted(runs))

    def is_owed(self, lives: Mapping[NodeId, object]) -> bool:
        """Is there anything for one of these?"""
        return bool(self._open) and not self._open.keys().isdisjoint(lives)

    def confirmed(self, node: NodeId, topic: Topic, runs: Iterable[Run]) -> None:
        topics = self._open.get(node, {})
        if topic in topics:
            topics[topic].difference_update(runs)
            if not topics[topic]:
                del topics[topic]
            if not topics:
                del self._open[node]

    def news(self, topic: Topic, run: Run) -> list[tuple[Counter, Counter]]:
        """Which part of it the application was not told yet; it is from now on."""
        told = self._told.setdefault((topic, run.incarnation), [])
        fresh, at = [], run.first
        for first, last in [one for one in told if one[1] >= run.first and one[0] <= run.last]:
            if first > at:
                fresh.append((at, first - 1))
            at = max(at, last + 1)
        if at <= run.last:
            fresh.append((at, run.last))
        told[:] = _merged([*told, (run.first, run.last)])
        return fresh


def _merged(runs: list[tuple[Counter, Counter]]) -> list[tuple[Counter, Counter]]:
    merged: list[tuple[Counter, Counter]] = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
