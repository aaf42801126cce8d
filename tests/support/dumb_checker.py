"""The predicates once more, as sets and quantifiers over all pairs, for traces so small that nobody minds.

Written from the definitions without a thought for speed; assumes a complete trace that keeps K0, one incarnation each.
"""

import json
from collections.abc import Callable
from itertools import combinations, permutations, product
from typing import ClassVar

from cubecast.trace.event import Event, Inside
from support.random_traces import FILTERS

Mid = tuple[str, int, int]
Place = tuple[int, int]


class Sigma:
    def __init__(self, node: int, topic: str, rows: list[Event], end: str) -> None:
        self.node, self.topic, self.rows = node, topic, [row for row in rows if row.topic == topic]
        self.delivered: list[tuple[Mid, int]] = []
        for row in self.rows:
            if row.kind == "deliver" and mid(row) not in [m for m, _ in self.delivered]:
                self.delivered.append((mid(row), row.seq))
        self.at = dict(self.delivered)
        self.stated = {entry.source: entry.counter for row in self.rows for entry in row.cut or ()}
        self.gaps = [(mid(row), row.seq) for row in self.rows if row.kind == "gap"]
        self.confirmed = [(node, row.seq) for row in self.rows if row.kind == "subscribed"]
        self.wants = FILTERS[rows[0].filter] if rows[0].filter is not None else None
        self.received = [
            (topic, one.source, one.counter)
            for row in rows
            if row.kind == "receive"
            for one in row.messages or (Inside(row.source, row.source_incarnation, row.counter),)
            if (one.topic or row.topic) == topic
        ]
        self.correct = end == "quiescent" and not any(row.kind.startswith("unsub") for row in self.rows)


def mid(row: Event) -> Mid:
    return (row.topic, row.source, row.counter)


class Dumb:
    def __init__(self, events: list[Event]) -> None:
        self.logs: dict[int, list[Event]] = {}
        for event in sorted(events, key=lambda e: (e.node, e.seq)):
            self.logs.setdefault(event.node, []).append(event)
        self.publish = {mid(e): (e.node, e.seq) for e in events if e.kind == "publish"}
        self.rows = {(e.node, e.seq): e for e in events}
        self.happened = self.closed(self.direct_edges())
        named = set(self.publish) | {mid(e) for e in events if e.kind in ("deliver", "gap")}
        for event in events:
            named |= {(event.topic, d.source, d.counter) for d in event.deps or ()}
        self.messages = {(t, s, i) for t, s, c in named for i in range(1, c + 1)}
        self.causes = {m: self.causes_of(m) for m in self.messages}
        self.sigmas = [sigma for node in self.logs for sigma in self.sigmas_of(node)]

    def direct_edges(self) -> set[tuple[Place, Place]]:
        edges = {((n, a.seq), (n, b.seq)) for n, log in self.logs.items() for a, b in combinations(log, 2)}
        delivers = [place for place, row in self.rows.items() if row.kind == "deliver"]
        return edges | {(self.publish[m], d) for d in delivers if (m := mid(self.rows[d])) in self.publish}

    def closed(self, edges: set[tuple[Place, Place]]) -> dict[Place, set[Place]]:
        after: dict[Place, set[Place]] = {place: set() for place in self.rows}
        for a, b in edges:
            after[a].add(b)
        changed = True
        while changed:
            changed = False
            for followers in after.values():
                more = set().union(*(after[b] for b in followers)) - followers
                if more:
                    followers |= more
                    changed = True
        return after

    def causes_of(self, message: Mid) -> set[Mid]:
        """→t, by walking back again and again until nothing new turns up; nothing lies behind the unpublished."""
        found: set[Mid] = set()
        behind_unpublished: set[Mid] = set()
        while True:
            step = set()
            for topic, source, counter in {message} | found:
                lower = {(topic, source, i) for i in range(1, counter)}
                place = self.publish.get((topic, source, counter))
                if place is None:
                    behind_unpublished |= lower
                else:
                    before = self.logs[place[0]][: place[1]]
                    step |= lower | {mid(row) for row in before if row.kind == "deliver" and row.topic == topic}
            if step <= found:
                return found | behind_unpublished
            found |= step

    def sigmas_of(self, node: int) -> list[Sigma]:
        found, log = [], self.logs[node]
        for start, row in enumerate(log):
            if row.kind == "subscribe":
                ends = [e.seq for e in log[start:] if e.kind == "unsubscribed" and e.topic == row.topic]
                stop = ends[0] + 1 if ends else len(log)
                found.append(Sigma(node, row.topic, log[start:stop], log[-1].kind))
        return found

    def in_cut(self, sigma: Sigma, message: Mid) -> bool:
        _, source, counter = message
        if source in sigma.stated:
            return counter <= max(sigma.stated[source], 0)
        if any(m[1] == source for m, _ in sigma.delivered):
            return False
        return not self.confirmed_before(sigma, message)

    def confirmed_before(self, sigma: Sigma, message: Mid) -> bool:
        place = self.publish.get(message)
        if place is None:
            earlier = [m for m in self.publish if m[:2] == message[:2] and m[2] < message[2]]
            return any(self.confirmed_before(sigma, m) for m in earlier)
        return any(place in self.happened[c] for c in sigma.confirmed)

    def wanted(self, sigma: Sigma, message: Mid) -> bool:
        if sigma.wants is None:
            return True
        place = self.publish.get(message)
        if place is None:
            return False
        return sigma.wants({"topic": message[0], **json.loads(self.rows[place].attributes or "{}")})

    def of_topic(self, sigma: Sigma) -> list[Mid]:
        return [m for m in self.messages if m[0] == sigma.topic]

    def accounted(self, sigma: Sigma, cause: Mid, seq: int) -> bool:
        early = (s < seq for m, s in [*sigma.delivered, *sigma.gaps] if m == cause)
        skipped = cause in self.publish and not self.wanted(sigma, cause)
        return skipped or self.in_cut(sigma, cause) or any(early)

    # True: violated

    def k1(self) -> bool:
        count = {(s.topic, p): sum(m[:2] == (s.topic, p) for m in self.publish) for s in self.sigmas for p in s.stated}
        return any(not 0 <= c <= count[s.topic, p] for s in self.sigmas for p, c in s.stated.items())

    def stated_out(self, sigma: Sigma) -> list[Mid]:
        return [m for m in self.publish if m[0] == sigma.topic and m[2] <= sigma.stated.get(m[1], 0)]

    def k2(self) -> bool:
        return any(
            not self.in_cut(s, a)
            for s in self.sigmas
            for m in self.stated_out(s)
            for a in self.causes[m]
            if a[1] != m[1]
        )

    def k3(self) -> bool:
        return any(self.confirmed_before(s, m) for s in self.sigmas for m in self.stated_out(s))

    def p1(self) -> bool:
        failed = {mid(e) for e in self.rows.values() if e.kind == "failed"}
        delivered = {mid(e) for e in self.rows.values() if e.kind == "deliver"}
        return any(m not in self.publish or m in failed for m in delivered)

    def p1b(self) -> bool:
        pairs = [(e, self.publish.get(mid(e))) for e in self.rows.values() if e.kind == "deliver"]
        told = [(e.digest, self.rows[place].digest) for e, place in pairs if place is not None]
        return any(None not in both and min(both) >= 0 and both[0] != both[1] for both in told)

    def p2(self) -> bool:
        for s in self.sigmas:
            mids = [mid(row) for row in s.rows if row.kind == "deliver"]
            if len(mids) != len(set(mids)) or any(m[2] <= s.stated.get(m[1], 0) for m in mids):
                return True
        return False

    def p3(self) -> bool:
        acked = {mid(e) for e in self.rows.values() if e.kind == "acknowledged"}
        owed = {m for m in acked if self.logs[m[1]][-1].kind == "quiescent"}
        return any(
            m not in s.at and not self.in_cut(s, m) and self.wanted(s, m)
            for s in self.sigmas
            if s.correct
            for m in owed
            if m[0] == s.topic
        )

    def p4(self, uniform: bool = False) -> bool:
        for one, other in permutations(self.sigmas, 2):
            if one.topic == other.topic and other.correct and (uniform or one.correct):
                for m in one.at:
                    reached = any(mine[1] == m[1] and mine[2] >= m[2] for mine in other.at)
                    if not reached and not self.in_cut(other, m) and self.wanted(other, m):
                        return True
        return False

    def p4u(self) -> bool:
        return self.p4(uniform=True)

    def p5(self) -> bool:
        return any(
            i[1] == j[1] and i[2] < j[2] and s.at[i] > s.at[j] for s in self.sigmas for i, j in product(s.at, repeat=2)
        )

    def p6(self) -> bool:
        return any(
            not self.accounted(s, (m[0], m[1], i), seq)
            for s in self.sigmas
            for m, seq in s.delivered
            if not self.in_cut(s, m)
            for i in range(1, m[2])
        )

    def p7(self) -> bool:
        return any(a in self.causes[m] and s.at[a] > s.at[m] for s in self.sigmas for a, m in product(s.at, repeat=2))

    def p8(self) -> bool:
        return self.k2() or any(
            not self.accounted(s, a, seq) for s in self.sigmas for m, seq in s.delivered for a in self.causes[m]
        )

    def p9a(self) -> bool:
        return any(
            (one.at[a] < one.at[b]) != (other.at[a] < other.at[b])
            for one, other in combinations(self.sigmas, 2)
            for a, b in combinations(one.at.keys() & other.at.keys(), 2)
        )

    def p11(self) -> bool:
        inside = {(s.node, row.seq) for s in self.sigmas for row in s.rows}
        unwanted = any(m in self.publish and not self.wanted(s, m) for s in self.sigmas for m in s.at)
        return unwanted or any(row.kind == "deliver" and place not in inside for place, row in self.rows.items())

    def p12(self) -> bool:
        lost_and_found = any(
            m in s.at or (s.correct and o.correct and m in o.at)
            for s in self.sigmas
            for m, _ in s.gaps
            for o in self.sigmas
        )
        return lost_and_found or any(self.holds(s) for s in self.sigmas if s.correct)

    def holds(self, sigma: Sigma) -> bool:
        settled = {mid(r) for r in self.logs[sigma.node] if r.kind in ("deliver", "gap", "discard")}
        return any(
            message not in settled and message[2] > sigma.stated.get(message[1], 0) and self.wanted(sigma, message)
            for message in sigma.received
        )

    def p13(self) -> bool:
        """Here the claims are closed transitively, as the property says."""
        claimed: dict[Mid, set[Mid]] = {}

        def close(message: Mid) -> set[Mid]:
            if message not in claimed:
                topic, source, counter = message
                named = {(topic, source, i) for i in range(1, counter)}
                place = self.publish.get(message)
                for dep in (self.rows[place].deps or ()) if place is not None else ():
                    named |= {(topic, dep.source, i) for i in range(1, dep.counter + 1)}
                claimed[message] = named
                for other in named if place is not None else ():
                    claimed[message] = claimed[message] | close(other)
            return claimed[message]

        return any(close(m) != self.causes[m] for m in self.publish)

    def p3b(self) -> bool:
        failed = {mid(e) for e in self.rows.values() if e.kind == "failed"}
        return any(
            row.kind == "publish"
            and any(row.seq > c[1] for c in s.confirmed)
            and mid(row) not in {*s.at, *failed}
            and self.wanted(s, mid(row))
            for s in self.sigmas
            if s.correct
            for row in s.rows
            if row.topic == s.topic
        )

    PREDICATES: ClassVar[dict[str, Callable[["Dumb"], bool]]] = {
        "K1": k1,
        "K2": k2,
        "K3": k3,
        "P1": p1,
        "P1b": p1b,
        "P2": p2,
        "P3": p3,
        "P4": p4,
        "P4u": p4u,
        "P5": p5,
        "P6": p6,
        "P7": p7,
        "P8": p8,
        "P9a": p9a,
        "P11": p11,
        "P12": p12,
        "P13": p13,
        "P3b": p3b,
    }

    def violated(self) -> set[str]:
        return {name for name, broken in self.PREDICATES.items() if broken(self)}
