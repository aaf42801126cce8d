"""Pass 1, on the driver: the logs' summaries of each run become its message tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from cubecast.pipeline.causality import HappenedBefore, causal_order, groups
from cubecast.pipeline.messages import RunMessages, TopicMessages
from cubecast.pipeline.rows import Flags, Ints
from cubecast.pipeline.subscriptions import pack, pack_one

# Leaves out causes that other causes imply, so that replay looks at few of them per delivery.
#
# If m was published after delivering both a and x, and x was published after delivering a, then "x before m" and "a
# before x" say "a before m". The message delivered last before m implies most others, so candidates for x are tried
# from the last backwards. Only sound where happened-before has no circle, which is known by then.

CHECKS_WORTH_SAVING = 20_000_000
MOST_TRIES = 8


def prune(topic: TopicMessages, deliveries: int) -> TopicMessages:
    """Fewer cause entries with the same closure, when there are enough deliveries to make up for the search."""
    entries, size = len(topic.cause_counter), max(1, len(topic))
    if entries <= size or deliveries / size * entries < CHECKS_WORTH_SAVING:
        return topic
    kept = _kept(topic)
    topic.cause_start = groups(topic.cause_owner[kept], len(topic))
    topic.cause_publisher, topic.cause_counter = topic.cause_publisher[kept], topic.cause_counter[kept]
    for derived in ("cause_owner", "cause_slot"):
        topic.__dict__.pop(derived, None)
    return topic


def _kept(topic: TopicMessages) -> Flags:
    known = _Known(topic)
    kept = np.ones(len(topic.cause_counter), bool)
    pivot = topic.cause_start[1:].copy()
    for _ in range(MOST_TRIES):
        pivot = _previous_kept(kept, pivot, topic.cause_start[:-1])
        tried = np.repeat(pivot, np.diff(topic.cause_start))
        candidates = np.flatnonzero(kept & (tried >= 0) & (tried != np.arange(len(kept))))
        implied = known(topic.cause_slot[tried[candidates]], topic.cause_publisher[candidates])
        gone = candidates[implied >= topic.cause_counter[candidates]]
        kept[gone] = False
        if len(gone) < len(kept) // 100:
            break
    return kept


def _previous_kept(kept: Flags, before: Ints, start: Ints) -> Ints:
    """For each message, its last kept entry before the given one; −1 when there is none."""
    last = np.maximum.accumulate(np.where(kept, np.arange(len(kept)), -1))
    found = np.where(before > 0, last[before - 1], -1)
    return np.where((before > start) & (found >= start), found, -1)


class _Known:
    """Up to which counter of q the publisher of a message had delivered (or published) before it."""

    def __init__(self, topic: TopicMessages) -> None:
        self.topic = topic
        self.width = len(topic.publishers)
        publisher = topic.publisher_of[topic.cause_owner]
        key = (publisher * self.width + topic.cause_publisher) * (len(topic) + 1) + topic.cause_owner
        order = np.argsort(key, kind="stable")
        self.key, self.counter = key[order], topic.cause_counter[order]
        # Later entries may name lower counters where order is violated: keep the highest so far within a pair.
        pair = self.key // (len(topic) + 1)
        lift = pair * (int(self.counter.max(initial=0)) + 1)
        self.counter = np.maximum.accumulate(self.counter + lift) - lift
        self.pair = pair

    def __call__(self, slot: Ints, publisher: Ints) -> Ints:
        """−1 where nothing is known, and for messages that were never published."""
        wanted = self.topic.publisher_of[slot] * self.width + publisher
        place = np.searchsorted(self.key, wanted * (len(self.topic) + 1) + slot, side="right") - 1
        found = (place >= 0) & (self.pair[place] == wanted) & (slot >= 0)
        return np.where(found, self.counter[place], -1)


# The tables.


@dataclass
class LogSummary:
    """One row of `frames.LOG`, lists as arrays."""

    key: int
    node: int
    incarnation: int
    ending: str
    problem: str | None
    rows: int
    deliveries: int
    publications: int
    bad_rows: int
    topics: list[str]
    attributes: list[str]
    filtered: list[str]
    continues: bool
    """It goes on with the process of the node's previous log."""
    findings: list[dict[str, Any]]
    lists: dict[str, Ints]


@dataclass
class RunSummary:
    """What pass 1 found out about a run."""

    logs: list[LogSummary] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """Why its rows cannot all be read."""
    messages: RunMessages | None = None
    """None when the run contradicts itself."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    circle: dict[str, TopicMessages] | None = None
    """The tables when happened-before runs in a circle; what waits for itself is not in their `order`."""


def summaries(table: pa.Table) -> tuple[dict[int, RunSummary], dict[int, list[str]]]:
    """Rows of `frames.LOG` by run, logs in ascending order; and why other runs are refused."""
    runs: defaultdict[int, RunSummary] = defaultdict(RunSummary)
    refused: defaultdict[int, list[str]] = defaultdict(list)
    for row in _rows(table):
        run, damage, refusal = (row.pop(name) for name in ("run", "damage", "refusal"))
        if refusal is not None:
            refused[run].append(refusal)
        elif damage is not None:
            runs[run].damage.append(damage)
        else:
            runs[run].logs.append(LogSummary(key=pack_one(row["node"], row["incarnation"]), **row))
            runs[run].findings += row["findings"]
    for summary in runs.values():
        summary.logs.sort(key=lambda log: log.key)
    return dict(runs), dict(refused)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as dictionaries, their lists of integers as arrays under `lists`."""
    for batch in table.to_batches():
        columns = {name: batch.column(name) for name in batch.schema.names}
        integers = [name for name, column in columns.items() if _is_list_of_integers(column.type)]
        offsets = {name: columns[name].offsets.to_numpy() for name in integers}
        values = {name: columns[name].values.to_numpy() for name in integers}
        plain = [name for name in columns if name not in integers]
        for place, row in enumerate(batch.select(plain).to_pylist()):
            lists = {name: values[name][offsets[name][place] : offsets[name][place + 1]] for name in integers}
            yield row | {"lists": lists}


def _is_list_of_integers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_integer(kind.value_type))


def assemble(summary: RunSummary) -> None:
    """Fill in the message tables, unless a log contradicts itself or happened-before runs in a circle."""
    if summary.findings:
        return
    tables = _Assembly(summary.logs, np.arange(len(summary.logs)))
    topics = {name: tables.topic(place) for place, name in enumerate(tables.names)}
    before = tables.happened_before(list(topics.values()))
    _order(topics.values(), before)
    if len(before.order) < len(before.process_of):
        summary.circle = topics
        return
    deliveries = sum(log.deliveries for log in summary.logs)
    topics = {name: prune(table, deliveries) for name, table in topics.items()}
    whole = frozenset(log.key for log in summary.logs if log.ending != "short")
    filtered = frozenset(topic for log in summary.logs for topic in log.filtered)
    summary.messages = RunMessages(topics, before, whole, filtered, any(log.continues for log in summary.logs))


def assemble_by_process(summary: RunSummary) -> RunMessages:
    """The same tables with program order that runs on through the logs of a process."""
    tables = _Assembly(summary.logs, processes(summary.logs))
    topics = {name: tables.topic(place) for place, name in enumerate(tables.names)}
    before = tables.happened_before(list(topics.values()))
    _order(topics.values(), before)
    return RunMessages(topics, before, frozenset())


def _order(tables: Iterable[TopicMessages], before: HappenedBefore) -> None:
    """Of each topic's messages, that of the run. Their places are looked up: topics may be as many as publications."""
    place = np.full(len(before.process_of), -1)
    place[before.order] = np.arange(len(before.order))
    for table in tables:
        places = place[table.number]
        by_place = np.argsort(places, kind="stable")
        table.order = by_place[np.count_nonzero(places < 0) :]


class _Assembly:
    """Publications and causes of a whole run as flat columns; publications are numbered log by log."""

    def __init__(self, logs: list[LogSummary], process: Ints) -> None:
        self.logs = logs
        self.keys = np.array([log.key for log in logs], np.int64)
        self.correct = np.array([log.ending == "quiescent" for log in logs], bool)
        self.names = sorted({name for log in logs for name in log.topics})
        place = {name: number for number, name in enumerate(self.names)}
        self._topic_of = [np.array([place[name] for name in log.topics], np.int64) for log in logs]
        sizes = self._sizes("publish_seq")
        self.base = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.log_of = np.repeat(np.arange(len(logs)), sizes)
        self.process = process
        """Per log, the process whose history it is part of: program order runs on through its logs."""
        self.process_by_key = dict(zip(self.keys.tolist(), process.tolist(), strict=True))
        self.process_of = process[self.log_of]
        """Per publication."""
        self.publish_seq = self._flat("publish_seq")
        self.publish_digest = self._flat("publish_digest")
        self.texts = sorted({text for log in logs for text in log.attributes})
        self.publish_attributes = self._attributes()
        self.publish_topic = self._topics("publish_topic")
        self.published = _ByTopic(self.publish_topic, len(place))
        self.caused = _ByTopic(self._topics("cause_topic"), len(place))
        self.cause_log = np.repeat(np.arange(len(logs)), self._sizes("cause_owner"))
        self.cause_owner = self._flat("cause_owner") + self.base[self.cause_log]
        self.cause_key = pack(self._flat("cause_source"), self._flat("cause_incarnation"))
        self.cause_first, self.cause_counter = self._flat("cause_first"), self._flat("cause_counter")
        self.gaps = _ByTopic(self._topics("gap_topic"), len(place))
        self.gap_key = pack(self._flat("gap_source"), self._flat("gap_incarnation"))
        self.gap_counter = self._flat("gap_counter")
        self.claim_size = self._flat("claims")
        self.claim_start = np.concatenate(([0], np.cumsum(self.claim_size)))
        self.claim_key = pack(self._flat("claim_source"), self._flat("claim_incarnation"))
        self.claim_counter = self._flat("claim_counter")
        self.reports = {name: self._reported(name, len(place)) for name in ("acknowledged", "failed")}
        self._edges: list[tuple[Ints, Ints]] = []

    def _attributes(self) -> Ints:
        """Per publication, where its attributes are in `texts`."""
        place = {text: number for number, text in enumerate(self.texts)}
        here = [np.array([*(place[text] for text in log.attributes), -1], np.int64) for log in self.logs]
        parts = [known[log.lists["publish_attributes"]] for log, known in zip(self.logs, here, strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _reported(self, name: str, topics: int) -> tuple["_ByTopic", Ints, Ints]:
        log_of = np.repeat(np.arange(len(self.logs)), self._sizes(f"{name}_topic"))
        return _ByTopic(self._topics(f"{name}_topic"), topics), log_of, self._flat(f"{name}_counter")

    def _sizes(self, name: str) -> list[int]:
        return [len(log.lists[name]) for log in self.logs]

    def _flat(self, name: str) -> Ints:
        parts = [log.lists[name] for log in self.logs]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)

    def _topics(self, name: str) -> Ints:
        parts = [topics[log.lists[name]] for log, topics in zip(self.logs, self._topic_of, strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def topic(self, topic: int) -> TopicMessages:
        number, here = self.published[topic], self.caused[topic]
        logs = self.log_of[number]
        publishers = np.union1d(self.keys[logs], self.cause_key[here])
        count = np.bincount(np.searchsorted(publishers, self.keys[logs]), minlength=len(publishers))
        table = TopicMessages(
            publishers=publishers,
            count=count,
            base=np.concatenate(([0], np.cumsum(count))),
            number=number,
            seq=self.publish_seq[number],
            digest=self.publish_digest[number],
            attributes=self.publish_attributes[number],
            texts=self.texts,
            lost=self._lost(topic),
        )
        self._causes(table, here)
        self._reports(table, topic)
        self._claims(table, number)
        return table

    def _causes(self, table: TopicMessages, here: Ints) -> None:
        """Cause entries of the topic, each given to the next publication on the topic of the log that delivered it."""
        here, counter = self._published_and_not(table, here)
        delivered_for, process = self.cause_owner[here], self.process[self.cause_log[here]]
        rank = table.rank(self.cause_key[here])
        slot = table.slots(rank, counter)
        published = slot >= 0
        followed = published & (self._process_of(delivered_for) == process)
        self._edges.append((delivered_for[followed], table.number[slot[followed]]))
        owner = np.searchsorted(table.number, delivered_for)
        useful = np.append(self.process_of[table.number], -1)[owner] == process
        own = np.append(table.publisher_of, -1)[owner] == rank
        useful &= ~(own & (counter < np.append(table.counter_of, 0)[owner]))
        own_owner, own_rank, own_counter = self._earlier_lives(table)
        owner = np.concatenate((owner[useful], own_owner))
        rank, counter = np.concatenate((rank[useful], own_rank)), np.concatenate((counter[useful], own_counter))
        known = np.concatenate((published[useful], np.ones(len(own_owner), bool)))
        in_order = np.argsort(owner, kind="stable")
        owner, rank, counter, known = owner[in_order], rank[in_order], counter[in_order], known[in_order]
        top = _highest((owner * (len(table.publishers) + 1) + rank) * 2 + known, counter)
        table.cause_start = groups(owner[top], len(table))
        table.cause_publisher, table.cause_counter = rank[top], counter[top]

    def _process_of(self, publications: Ints) -> Ints:
        """−1 behind the last one."""
        if not len(self.process_of):
            return np.full(len(publications), -1)
        known = np.minimum(publications, len(self.process_of) - 1)
        return np.where(publications < len(self.process_of), self.process_of[known], -1)

    def _earlier_lives(self, table: TopicMessages) -> tuple[Ints, Ints, Ints]:
        """A process's first message in a life follows its last one in the life before: (slot, publisher, counter)."""
        process = self.process_by_key
        found: list[tuple[int, int, int]] = []
        last: tuple[int, int] | None = None
        for rank, (key, count) in enumerate(zip(table.publishers.tolist(), table.count.tolist(), strict=True)):
            if count and key in process:
                if last is not None and last[0] == process[key]:
                    found.append((int(table.base[rank]), last[1], int(table.count[last[1]])))
                last = process[key], rank
        slots, ranks, counters = zip(*found, strict=True) if found else ((), (), ())
        slot, rank_before, counter = (np.array(column, np.int64) for column in (slots, ranks, counters))
        self._edges.append((table.number[slot], table.number[table.base[rank_before] + counter - 1]))
        return slot, rank_before, counter

    def _published_and_not(self, table: TopicMessages, here: Ints) -> tuple[Ints, Ints]:
        """Entries and counters; a run of counters that goes on beyond what was published gives two."""
        count = table.count[np.searchsorted(table.publishers, self.cause_key[here])]
        beyond = self.cause_counter[here] > count
        known = np.minimum(self.cause_counter[here], count) >= self.cause_first[here]
        entry = np.concatenate((here[beyond], here[known]))
        counter = np.concatenate((self.cause_counter[here][beyond], np.minimum(self.cause_counter[here], count)[known]))
        order = np.argsort(entry, kind="stable")
        return entry[order], counter[order]

    def _lost(self, topic: int) -> frozenset[tuple[int, int]]:
        here = self.gaps[topic]
        return frozenset(zip(self.gap_key[here].tolist(), self.gap_counter[here].tolist(), strict=True))

    def _reports(self, table: TopicMessages, topic: int) -> None:
        table.owed, table.failed = np.zeros(len(table), bool), np.zeros(len(table), bool)
        for name, column in (("acknowledged", table.owed), ("failed", table.failed)):
            by_topic, log_of, counters = self.reports[name]
            here = by_topic[topic]
            if name == "acknowledged":
                here = here[self.correct[log_of[here]]]
            slots = table.slots(table.rank(self.keys[log_of[here]]), counters[here])
            column[slots[slots >= 0]] = True

    def _claims(self, table: TopicMessages, number: Ints) -> None:
        size = self.claim_size[number]
        table.claim_start = np.concatenate(([0], np.cumsum(size)))
        entry = np.repeat(self.claim_start[:-1][number] - table.claim_start[:-1], size) + np.arange(size.sum())
        table.claim_publisher, table.claim_counter = self.claim_key[entry], self.claim_counter[entry]

    def happened_before(self, tables: list[TopicMessages]) -> HappenedBefore:
        owner = np.concatenate([owner for owner, _ in self._edges] or [np.zeros(0, np.int64)])
        cause = np.concatenate([cause for _, cause in self._edges] or [np.zeros(0, np.int64)])
        by_owner = np.argsort(owner, kind="stable")
        owner, cause = owner[by_owner], cause[by_owner]
        start = groups(owner, len(self.log_of))
        first = np.append(np.flatnonzero(np.diff(self.process, prepend=-1)), len(self.logs))
        base, process_of = self.base[first], self.process_of
        order = causal_order(base, start, cause, process_of)
        return HappenedBefore(
            self.keys, self.process, self.base, base, self.publish_seq, process_of, order, start, cause
        )


def processes(logs: list[LogSummary]) -> Ints:
    """Per log, in order: a new process, unless it goes on with that of the node's previous log."""
    number, processes = -1, []
    for place, log in enumerate(logs):
        goes_on = log.continues and place > 0 and logs[place - 1].node == log.node
        number += not goes_on
        processes.append(number)
    return np.array(processes, np.int64)


def _highest(key: Ints, counter: Ints) -> Ints:
    """Places of the highest counter of each key, in ascending order; entries of a key's owner stay together."""
    order = np.lexsort((counter, key))
    last = np.append(np.diff(key[order]) != 0, True) if len(key) else np.zeros(0, bool)
    return np.sort(order[last])


class _ByTopic:
    """Places in a flat column for each topic, in order."""

    def __init__(self, topic: Ints, topics: int) -> None:
        self._order = np.argsort(topic, kind="stable")
        self._start = groups(topic[self._order], topics)

    def __getitem__(self, topic: int) -> Ints:
        return self._order[self._start[topic] : self._start[topic + 1]]
