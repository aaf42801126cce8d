"""EpTO, compiled: mirrors `protocol.epidemic` rule by rule, event for event; equal draws give equal deliveries.

One topic, everybody subscribes, rounds from a table. What a process received is kept sorted by key, so that what it
may deliver is a prefix: the stable events below the least unstable one. Ages are kept relative to the rounds a process
has made, so that growing older costs nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.calendar import Calendar, make_calendar, pop, push
from cubecast.sim.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

GLOBAL, LOGICAL, HYBRID = range(3)
NEVER_SEEN, NOT_WAITING = -2, -1  # values of `Tables.waiting` besides a ttl
_TTL_BITS = 7
_TTL_MASK = (1 << _TTL_BITS) - 1
_REPLACE = -1  # receiver of the events at which processes are replaced
ARRIVALS, EVENTS, BALLS, POOLED, OLDEST, COPIES, INVERSIONS = range(7)  # indices of `Tables.used`


class Draws(NamedTuple):
    """All chance of a run. By process and round: when it begins, whether its process publishes, and who gets its ball
    when. `replaced[k]` are the processes that are replaced at the end of the k-th period."""

    phases: Floats
    periods: Floats
    publishes: NDArray[np.bool_]
    peers: NDArray[np.int32]
    latencies: Floats
    replaced: NDArray[np.bool_]


class Rules(NamedTuple):
    clock: int
    hops: int
    threshold: int
    relays: int
    """0: no limit."""
    drop: bool
    printed_ties: bool
    tick: float
    period: float


class Tables(NamedTuple):
    calendar: Calendar
    used: NDArray[np.int64]
    receiver: Ints
    ball: Ints
    """Of each arrival."""
    life_at: Ints
    """Of its receiver, when it was sent."""
    first: NDArray[np.int64]
    size: Ints
    until: Floats
    latest: Floats
    """Of each ball: its entries in the pool, when its last copy arrives, its greatest timestamp."""
    pool: Ints
    """Entries of the balls under way: event and ttl; a power of two of places, used again when a ball has arrived."""
    ts: Floats
    tie: NDArray[np.int64]
    published_at: Floats
    source: Ints
    counter: Ints
    waiting: NDArray[np.int8]
    """Per process and event: its ttl in the next ball."""
    sent: NDArray[np.int8]
    next_ball: Ints
    next_count: Ints
    age: NDArray[np.int16]
    """Per process and event that was received: its ttl, less the rounds made."""
    held: NDArray[np.bool_]
    received: Ints
    head: Ints
    tail: Ints
    """Per process: what it received and did not deliver, sorted, from head to tail."""
    last_ts: Floats
    last_tie: NDArray[np.int64]
    at: Ints
    """Per process and source: counter delivered or given up."""
    clock: Floats
    rounds: Ints
    life: Ints
    counters: Ints
    received_at: Floats
    heard: Ints
    """Per process: events in the order of their first reception, those of one ball in the order they stand in it."""
    heard_count: Ints
    delivered_at: Floats


def make_tables(draws: Draws, pooled: int) -> Tables:
    n, rounds = draws.periods.shape
    events = int(draws.publishes.sum())
    sends = n * rounds
    steps = sends * (draws.peers.shape[2] + 1) + len(draws.replaced) + n
    cells = (n, max(1, events))
    return Tables(
        calendar=make_calendar(steps, 1.0),
        used=np.zeros(7, np.int64),
        receiver=np.empty(steps, np.int32),
        ball=np.empty(steps, np.int32),
        life_at=np.empty(steps, np.int32),
        first=np.empty(sends, np.int64),
        size=np.empty(sends, np.int32),
        until=np.empty(sends),
        latest=np.empty(sends),
        pool=np.empty(pooled, np.int32),
        ts=np.empty(events),
        tie=np.empty(events, np.int64),
        published_at=np.empty(events),
        source=np.empty(events, np.int32),
        counter=np.empty(events, np.int32),
        waiting=np.full(cells, NEVER_SEEN, np.int8),
        sent=np.zeros(cells, np.int8),
        next_ball=np.empty(cells, np.int32),
        next_count=np.zeros(n, np.int32),
        age=np.zeros(cells, np.int16),
        held=np.zeros(cells, np.bool_),
        received=np.empty(cells, np.int32),
        head=np.zeros(n, np.int32),
        tail=np.zeros(n, np.int32),
        last_ts=np.full(n, -1.0),
        last_tie=np.full(n, -1, np.int64),
        at=np.zeros((n, n), np.int32),
        clock=np.zeros(n),
        rounds=np.zeros(n, np.int32),
        life=np.zeros(n, np.int32),
        counters=np.zeros(n, np.int32),
        received_at=np.full(cells, np.inf),
        heard=np.empty(cells, np.int32),
        heard_count=np.zeros(n, np.int32),
        delivered_at=np.full(cells, np.inf),
    )


@compiled
def run(r: Rules, d: Draws, t: Tables) -> bool:
    """Until all rounds are made or nothing is left to do; False where the pool was too small."""
    n, _ = d.periods.shape
    for p in range(n):
        _schedule(t, d.phases[p], p, -1)
    for k in range(len(d.replaced)):
        _schedule(t, (k + 1) * r.period, _REPLACE, k)
    while True:
        place = pop(t.calendar)
        if place < 0:
            return True
        now, number = t.calendar.due[place].time, t.calendar.due[place].event
        p, ball = t.receiver[number], t.ball[number]
        if p == _REPLACE:
            for victim in range(n):
                if d.replaced[ball, victim]:
                    _replace(t, victim)
        elif ball >= 0:
            if t.life_at[number] == t.life[p]:
                _receive(r, t, now, p, ball)
        elif not _round(r, d, t, now, p):
            return False


@compiled
def _schedule(t: Tables, time: float, receiver: int, ball: int) -> None:
    number = t.used[ARRIVALS]
    t.used[ARRIVALS] += 1
    t.receiver[number] = receiver
    t.ball[number] = ball
    t.life_at[number] = t.life[receiver] if receiver >= 0 else 0
    push(t.calendar, number, time, 0)


@compiled
def _replace(t: Tables, p: int) -> None:
    """A new process in the place of an old one: it knows nothing."""
    t.life[p] += 1
    t.counters[p] = 0
    t.clock[p] = 0.0
    t.last_ts[p] = -1.0
    t.last_tie[p] = -1
    t.next_count[p] = 0
    t.heard_count[p] = 0
    t.head[p] = t.tail[p] = 0
    for e in range(t.used[EVENTS]):
        t.waiting[p, e] = NEVER_SEEN
        t.held[p, e] = False


@compiled
def _receive(r: Rules, t: Tables, now: float, p: int, ball: int) -> None:
    if r.clock != GLOBAL and t.latest[ball] > t.clock[p]:
        t.clock[p] = t.latest[ball]
    first = t.first[ball]
    waiting, next_ball = t.waiting[p], t.next_ball[p]
    for k in range(first, first + t.size[ball]):
        entry = t.pool[k & (len(t.pool) - 1)]
        e, ttl = entry >> _TTL_BITS, entry & _TTL_MASK
        before = waiting[e]
        if before == NEVER_SEEN:
            _hear(t, now, p, e)
            before = NOT_WAITING
            waiting[e] = before
        if before == NOT_WAITING and not t.held[p, e] and _done(r, t, p, e):
            continue
        live = ttl < r.hops
        if before == NOT_WAITING:
            if live or not (r.drop or t.held[p, e]):
                next_ball[t.next_count[p]] = e
                t.next_count[p] += 1
                waiting[e] = ttl
                if not t.held[p, e]:
                    t.sent[p, e] = 0
        elif live and (before >= r.hops or before < ttl):
            waiting[e] = ttl


@compiled
def _hear(t: Tables, now: float, p: int, e: int) -> None:
    t.received_at[p, e] = now
    t.heard[p, t.heard_count[p]] = e
    t.heard_count[p] += 1


@compiled
def _done(r: Rules, t: Tables, p: int, e: int) -> bool:
    return bool(r.relays > 0 and not _above_last(t, p, e) and t.counter[e] <= t.at[p, t.source[e]])


@compiled
def _above_last(t: Tables, p: int, e: int) -> bool:
    return bool(t.ts[e] > t.last_ts[p] or (t.ts[e] == t.last_ts[p] and t.tie[e] > t.last_tie[p]))


@compiled
def _round(r: Rules, d: Draws, t: Tables, now: float, p: int) -> bool:
    k = t.rounds[p]
    t.rounds[p] += 1
    if d.publishes[p, k]:
        _publish(r, t, now, p)
    if t.next_count[p] and not _send(r, d, t, now, p, k):
        return False
    _merge(r, t, p)
    _deliver(r, t, now, p)
    if k + 1 < d.periods.shape[1]:
        _schedule(t, now + d.periods[p, k], p, -1)
    return True


@compiled
def _publish(r: Rules, t: Tables, now: float, p: int) -> None:
    e = t.used[EVENTS]
    t.used[EVENTS] += 1
    if r.clock == LOGICAL:
        t.clock[p] += 1.0
    elif r.clock == HYBRID:
        t.clock[p] = max(t.clock[p] + r.tick, now)
    else:
        t.clock[p] = max(t.clock[p], now)
    t.counters[p] += 1
    t.ts[e] = t.clock[p]
    t.source[e] = p
    t.counter[e] = t.counters[p]
    t.tie[e] = (p << 40) | (t.life[p] << 20) | t.counters[p]
    t.published_at[e] = now
    _hear(t, now, p, e)
    t.waiting[p, e] = 0
    t.next_ball[p, t.next_count[p]] = e
    t.next_count[p] += 1


@compiled
def _send(r: Rules, d: Draws, t: Tables, now: float, p: int, k: int) -> bool:
    """The live entries of the next ball, one hop older, to the round's peers; False where the pool is full."""
    ball, first, latest = t.used[BALLS], t.used[POOLED], -1.0
    while t.used[OLDEST] < ball and t.until[t.used[OLDEST]] < now:
        t.used[OLDEST] += 1
    free = len(t.pool) - (first - (t.first[t.used[OLDEST]] if t.used[OLDEST] < ball else first))
    if t.next_count[p] > free:
        return False
    end = first
    for place in range(t.next_count[p]):
        e = t.next_ball[p, place]
        ttl = t.waiting[p, e]
        if ttl >= r.hops:
            continue
        ttl += 1
        t.waiting[p, e] = ttl
        if (r.relays > 0 and t.sent[p, e] >= r.relays) or (ttl == r.hops and r.drop):
            continue
        if t.sent[p, e] < 100:
            t.sent[p, e] += 1
        t.pool[end & (len(t.pool) - 1)] = (e << _TTL_BITS) | ttl
        end += 1
        latest = max(latest, t.ts[e])
    if end > first:
        t.first[ball] = first
        t.size[ball] = end - first
        t.latest[ball] = latest
        t.until[ball] = now
        t.used[BALLS] += 1
        t.used[POOLED] = end
        fanout = d.peers.shape[2]
        t.used[COPIES] += (end - first) * fanout
        for j in range(fanout):
            arrival = now + d.latencies[p, k, j]
            t.until[ball] = max(t.until[ball], arrival)
            _schedule(t, arrival, d.peers[p, k, j], ball)
    return True


@compiled
def _merge(r: Rules, t: Tables, p: int) -> None:
    made = t.rounds[p]
    for place in range(t.next_count[p]):
        e = t.next_ball[p, place]
        age = t.waiting[p, e] - made
        t.waiting[p, e] = NOT_WAITING
        if t.held[p, e]:
            t.age[p, e] = max(t.age[p, e], age)
        elif t.ts[e] > t.last_ts[p] if r.printed_ties else _above_last(t, p, e):
            t.age[p, e] = age
            t.held[p, e] = True
            _insert(t, p, e)
        elif t.counter[e] > t.at[p, t.source[e]]:
            t.at[p, t.source[e]] = t.counter[e]
    t.next_count[p] = 0


@compiled
def _insert(t: Tables, p: int, e: int) -> None:
    received = t.received[p]
    k = t.tail[p]
    while k > t.head[p]:
        other = received[k - 1]
        if t.ts[other] < t.ts[e] or (t.ts[other] == t.ts[e] and t.tie[other] < t.tie[e]):
            break
        received[k] = other
        k -= 1
    received[k] = e
    t.tail[p] += 1


@compiled
def _deliver(r: Rules, t: Tables, now: float, p: int) -> None:
    """The stable prefix; by the printed rule, also what is stable and as old as the first that is not."""
    made, received = t.rounds[p], t.received[p]
    while t.head[p] < t.tail[p] and t.age[p, received[t.head[p]]] + made > r.threshold:
        _hand_over(t, now, p, received[t.head[p]])
        t.head[p] += 1
    if not r.printed_ties or t.head[p] == t.tail[p]:
        return
    end = t.head[p]
    while end < t.tail[p] and t.ts[received[end]] == t.ts[received[t.head[p]]]:
        if t.age[p, received[end]] + made > r.threshold:
            _hand_over(t, now, p, received[end])
        end += 1
    kept = end
    for k in range(end - 1, t.head[p] - 1, -1):
        if t.held[p, received[k]]:
            kept -= 1
            received[kept] = received[k]
    t.head[p] = kept


@compiled
def _hand_over(t: Tables, now: float, p: int, e: int) -> None:
    t.held[p, e] = False
    if not _above_last(t, p, e):
        t.used[INVERSIONS] += 1
    t.last_ts[p] = t.ts[e]
    t.last_tie[p] = t.tie[e]
    t.at[p, t.source[e]] = max(t.at[p, t.source[e]], t.counter[e])
    t.delivered_at[p, e] = now
