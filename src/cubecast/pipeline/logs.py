"""Pass 1, on the executors: what everyone must know of one log. Its publications and their new causes, never all rows.

The causes of a publication are the messages delivered in its log since the log's previous publication on any topic.
Only runs of counters of each (topic, publisher) are kept: a publisher's messages form a chain, so that the last one
stands for the lower ones.
"""

from typing import Any

import numpy as np

from cubecast.pipeline.findings import Finding, finding_rows, occasions
from cubecast.pipeline.messages import TopicMessages
from cubecast.pipeline.rows import CODE, Ints, Log, Rows
from cubecast.pipeline.subscriptions import (
    Contradiction,
    deliveries_by_topic,
    late_statements,
    pack,
    subscriptions_of,
    within,
)
from cubecast.trace.schema import Kind

PUBLISH, ACKNOWLEDGED, FAILED = CODE[Kind.PUBLISH], CODE[Kind.ACKNOWLEDGED], CODE[Kind.FAILED]
DELIVER, GAP, START = CODE[Kind.DELIVER], CODE[Kind.GAP], CODE[Kind.START]
HOMELESS = "rows without node, incarnation or seq belong to no log"
NAMELESS = "a message in {!r} lacks a part of its name"
DECISIVE = ("deps", "cut")
"""Lists in which each message must have a whole name."""
FINAL = (CODE[Kind.STOP], CODE[Kind.CRASH])


def log_rows(rows: Rows) -> list[dict[str, Any]]:
    """Rows of `frames.LOG`: every log, and the runs whose rows lack what places them or names a message."""
    return [
        *(log_row(rows, log) for log in rows.logs),
        *({"run": run, "damage": HOMELESS} for run in rows.homeless),
        *({"run": run, "damage": NAMELESS.format(name)} for name in DECISIVE for run in rows.nameless(name)),
    ]


def log_row(rows: Rows, log: Log) -> dict[str, Any]:
    """One row of `frames.LOG`."""
    summary: dict[str, Any] = {
        "run": log.run,
        "node": log.node,
        "incarnation": log.incarnation,
        "rows": log.stop - log.start,
        "deliveries": int((rows.kind[log.start : log.end] == DELIVER).sum()),
        "publications": int((rows.kind[log.start : log.end] == PUBLISH).sum()),
        "premises": occasions(rows, log),
        "bad_rows": log.end - log.stop,
        "ending": log.ending,
        "problem": log.problem,
        "topics": rows.topics,
        "continues": continues(rows, log),
        "filtered": _filtered(rows, log),
    }
    if log.repeated is not None:
        finding = Finding("K0", log.node, log.incarnation, log.repeated, f"two rows are number {log.repeated}")
        return summary | {"findings": finding_rows([finding])}
    published, acknowledged = _rows_of_kind(rows, log, PUBLISH), _rows_of_kind(rows, log, ACKNOWLEDGED)
    wrong = [*_after_the_end(rows, log), *_publications(rows, log, published)]
    wrong += _acknowledgements(rows, log, published, acknowledged)
    wrong += _subscriptions(rows, log)
    summary["findings"] = finding_rows(_finding(rows, log, contradiction) for contradiction in wrong)
    if wrong:
        return summary
    return summary | _messages(rows, log, published, acknowledged)


def _finding(rows: Rows, log: Log, wrong: Contradiction) -> Finding:
    row = wrong.row
    topic = rows.topics[rows.topic[row]] if rows.topic[row] >= 0 else None
    named = rows.named[row]
    mid = (int(rows.source[row]), int(rows.source_incarnation[row]), int(rows.counter[row])) if named else None
    return Finding("K0", log.node, log.incarnation, int(rows.seq[row]), wrong.reason, topic, message=mid)


def _rows_of_kind(rows: Rows, log: Log, kind: int) -> Ints:
    return np.flatnonzero(rows.kind[log.start : log.stop] == kind) + log.start


def _after_the_end(rows: Rows, log: Log) -> list[Contradiction]:
    ends = np.concatenate([_rows_of_kind(rows, log, kind) for kind in FINAL])
    if len(ends) and ends.min() + 1 < log.stop:
        return [Contradiction(int(ends.min()) + 1, "comes after the log ended in stop or crash")]
    return []


def _publications(rows: Rows, log: Log, published: Ints) -> list[Contradiction]:
    wrong = [
        Contradiction(int(row), "publishes in another node's name")
        for row in published[~_own(rows, log, published)].tolist()
    ]
    for _, at in _by_topic(rows, published):
        counters = rows.counter[at].astype(np.int64)
        steps = np.diff(counters, prepend=0)
        wrong += [
            Contradiction(int(at[place]), f"publication number {counters[place]} follows {counters[place] - step}")
            for place, step in zip(np.flatnonzero(steps != 1).tolist(), steps[steps != 1].tolist(), strict=True)
        ]
    return wrong


def _own(rows: Rows, log: Log, at: Ints) -> Any:
    return (rows.source[at] == log.node) & (rows.source_incarnation[at] == log.incarnation)


def _by_topic(rows: Rows, at: Ints) -> list[tuple[int, Ints]]:
    return [(int(topic), at[rows.topic[at] == topic]) for topic in np.unique(rows.topic[at])]


def _acknowledgements(rows: Rows, log: Log, published: Ints, acknowledged: Ints) -> list[Contradiction]:
    unknown = ~_own(rows, log, acknowledged)
    for topic in np.unique(rows.topic[acknowledged]):
        mine = published[rows.topic[published] == topic]
        here = rows.topic[acknowledged] == topic
        counters = rows.counter[acknowledged]
        unknown |= here & ((counters < 1) | (counters > np.searchsorted(mine, acknowledged)))
    return [Contradiction(row, "acknowledges what was not published before") for row in acknowledged[unknown].tolist()]


def _subscriptions(rows: Rows, log: Log) -> list[Contradiction]:
    subscriptions, wrong = subscriptions_of(rows, log)
    if any(subscription.stated for subscription in subscriptions):
        deliveries = deliveries_by_topic(rows, log)
        for subscription in subscriptions:
            if subscription.topic in deliveries:
                wrong += late_statements(rows, within(deliveries[subscription.topic], subscription), subscription)
    return wrong


def _filtered(rows: Rows, log: Log) -> list[str]:
    """Topics that it subscribes with a filter."""
    if not rows.filters:
        return []
    here = slice(log.start, log.stop)
    return [rows.topics[code] for code in np.unique(rows.topic[here][rows.filter[here] >= 0]).tolist() if code >= 0]


def continues(rows: Rows, log: Log) -> bool:
    """Is it the same process as in the node's previous log?"""
    return bool(log.stop > log.start and rows.kind[log.start] == START and rows.goes_on[log.start])


def _messages(rows: Rows, log: Log, published: Ints, acknowledged: Ints) -> dict[str, Any]:
    failed = _rows_of_kind(rows, log, FAILED)
    failed = failed[_own(rows, log, failed)]
    gaps = _rows_of_kind(rows, log, GAP)
    lengths, claim_source, claim_incarnation, claim_counter = rows.list_at("deps", published)
    return {
        "publish_topic": rows.topic[published],
        "publish_seq": rows.seq[published],
        "publish_digest": rows.digest[published],
        **_attributes(rows, published),
        "claims": lengths,
        "claim_source": claim_source,
        "claim_incarnation": claim_incarnation,
        "claim_counter": claim_counter,
        "acknowledged_topic": rows.topic[acknowledged],
        "acknowledged_counter": rows.counter[acknowledged],
        "failed_topic": rows.topic[failed],
        "failed_counter": rows.counter[failed],
        "gap_topic": rows.topic[gaps],
        "gap_source": rows.source[gaps],
        "gap_incarnation": rows.source_incarnation[gaps],
        "gap_counter": rows.counter[gaps],
        **_causes(rows, log, published),
    }


def _attributes(rows: Rows, published: Ints) -> dict[str, Any]:
    """Each text once, and which publication has which."""
    told, place = np.unique(rows.attributes[published], return_inverse=True)
    absent = int(len(told) > 0 and told[0] < 0)
    texts = [rows.texts[code] for code in told[absent:].tolist()]
    return {"attributes": texts, "publish_attributes": place.reshape(-1) - absent}


def _causes(rows: Rows, log: Log, published: Ints) -> dict[str, Ints]:
    """For each publication, what was delivered since the one before: runs of counters of each (topic, publisher).

    Nearly always that is one run per publisher, and only its end matters. Where counters are missing, what was
    delivered below the hole may have been published while what is above never was, so every run is told.
    """
    # What was delivered after the last publication concerns the next incarnation, if the process goes on.
    end = log.stop if log.ending == Kind.STOP else published[-1] if len(published) else log.start
    if end == log.start:
        return {}
    kind = rows.kind[log.start : end]
    at = np.flatnonzero(kind == DELIVER) + log.start
    owner = np.searchsorted(published, at)
    _, name = np.unique(pack(rows.source[at], rows.source_incarnation[at]), return_inverse=True)
    key = (owner * (len(rows.topics) + 1) + rows.topic[at]) * (len(at) + 1) + name
    order = np.lexsort((rows.counter[at], key))
    counter = rows.counter[at][order]
    breaks = (np.diff(key[order]) != 0) | (np.diff(counter) > 1)
    first = np.append(True, breaks) if len(at) else np.zeros(0, bool)
    last = np.append(breaks, True) if len(at) else np.zeros(0, bool)
    # In the order of delivery: the message delivered last stands for most of the others, so pruning looks at it first.
    in_order = np.argsort(order[last], kind="stable")
    top = order[last][in_order]
    chosen = at[top]
    return {
        "cause_owner": owner[top],
        "cause_topic": rows.topic[chosen],
        "cause_source": rows.source[chosen],
        "cause_incarnation": rows.source_incarnation[chosen],
        "cause_first": counter[first][in_order],
        "cause_counter": rows.counter[chosen],
    }


def waiting_rows(circles: dict[int, dict[str, TopicMessages]], rows: Rows) -> list[dict[str, Any]]:
    """Rows of `frames.FOUND`: in each log of a run with a circle, the first delivery that waits for itself."""
    found: list[dict[str, Any]] = []
    for log in rows.logs:
        if log.run in circles:
            first = [_first_waiting(rows, at, circles[log.run]) for at in deliveries_by_topic(rows, log).values()]
            waiting = min((row for row in first if row is not None), default=None)
            if waiting is not None:
                wrong = Contradiction(waiting, "waits for itself")
                found.append({"run": log.run, "findings": finding_rows([_finding(rows, log, wrong)])})
    return found


def _first_waiting(rows: Rows, at: Ints, topics: dict[str, TopicMessages]) -> int | None:
    topic = topics[rows.topics[rows.topic[at[0]]]]
    slot = topic.slots(topic.rank(pack(rows.source[at], rows.source_incarnation[at])), rows.counter[at])
    stuck = np.ones(len(topic) + 1, bool)
    stuck[topic.order] = False
    stuck[-1] = False
    waiting = np.flatnonzero(stuck[slot])
    return int(at[waiting[0]]) if len(waiting) else None
