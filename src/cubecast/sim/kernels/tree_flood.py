"""Messages down the trees of a cube through output queues, compiled: when each reaches each node, and nothing else.

Mirrors VCube-PS and SRPT where all nodes subscribe to all topics, on the network of `sim.network` with constant delays
and control packets that go past the queues. Order is not looked at, so that a run with millions of packets takes
seconds. With acknowledgements a message begins when the one before it, of its source and topic, is acknowledged.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.kernels.calendar import Calendar, make_calendar, pop, push
from cubecast.sim.kernels.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Numbers = NDArray[np.integer[Any]]

_BITS = 15
_MASK = (1 << _BITS) - 1
_ACK = 1 << 2 * _BITS
"""In an event's note, above message and receiver."""
NOBODY = -1


@dataclass(frozen=True)
class Messages:
    """By message: when it is asked for, by whom, and at which node its tree begins."""

    times: Floats
    sources: Numbers
    roots: Numbers
    topics: Numbers


class FloodScenario(NamedTuple):
    dimension: int
    times: Floats
    sources: Ints
    roots: Ints
    before: Ints
    """By message: the one that has to be acknowledged first, or nobody's."""
    behind: Ints
    """The inverse."""
    acknowledged: bool
    per_link: bool
    processing: float
    transmission: float
    propagation: float


class FloodTables(NamedTuple):
    calendar: Calendar
    heights: Ints
    events: NDArray[np.int64]
    free_at: Floats
    waited: Floats
    queued: NDArray[np.int64]
    begun: Floats
    received: Floats
    """By message and node; NaN where it has not come."""
    pending: NDArray[np.uint8]
    """By message and node: children that have not acknowledged."""
    state: NDArray[np.uint8]
    """By message: asked for, or done."""


_ASKED, _DONE = 1, 2


@dataclass(frozen=True)
class TreeFlood:
    nodes: int
    acknowledged: bool = False
    per_link: bool = False
    """An output queue for each link instead of one for each node."""
    processing: float = 1.0
    transmission: float = 1.0
    propagation: float = 100.0

    def simulate(self, messages: Messages) -> "FloodRun":
        count = len(messages.times)
        if not 0 < count <= _MASK or self.nodes > _MASK:
            raise BadInput(f"the kernel takes 1 to {_MASK} messages and nodes, not {count} and {self.nodes}")
        if self.per_link and (messages.sources != messages.roots).any():
            raise BadInput("with a queue for each link, every message has to begin at its source")
        before, behind = _order(messages)
        dimension = dimension_of(self.nodes)
        scenario = FloodScenario(
            dimension, np.ascontiguousarray(messages.times, np.float64),
            messages.sources.astype(np.int32), messages.roots.astype(np.int32), before, behind,
            self.acknowledged, self.per_link, self.processing, self.transmission, self.propagation,
        )  # fmt: skip
        tables = self._tables(count, dimension)
        _run(scenario, tables)
        return FloodRun(scenario, tables)

    def _tables(self, messages: int, dimension: int) -> FloodTables:
        events = messages * self.nodes * (3 if self.acknowledged else 1) // 2 + messages
        pending = (messages, self.nodes) if self.acknowledged else (1, 1)
        return FloodTables(
            calendar=make_calendar(events, max(1.0, events / (1 << 17))),
            heights=np.array([(x & -x).bit_length() - 1 if x else dimension for x in range(self.nodes)], np.int32),
            events=np.array([messages], np.int64),
            free_at=np.zeros((self.nodes, dimension + 1)),
            waited=np.zeros(self.nodes),
            queued=np.zeros(self.nodes, np.int64),
            begun=np.full(messages, np.nan),
            received=np.full((messages, self.nodes), np.nan),
            pending=np.zeros(pending, np.uint8),
            state=np.zeros(messages, np.uint8),
        )


class FloodRun:
    """A finished run, as arrays."""

    def __init__(self, scenario: FloodScenario, tables: FloodTables) -> None:
        self._scenario = scenario
        self._tables = tables
        self.begun = tables.begun
        """By message."""
        self.queued = tables.queued
        """By node: packets that went through its output queue."""

    @property
    def receptions(self) -> Floats:
        """By message and node: when it came; NaN at its publisher and where it has not come."""
        times: Floats = self._tables.received.copy()
        times[np.arange(len(times)), self._scenario.sources] = np.nan
        return times

    @property
    def latency(self) -> float:
        """Mean over all receptions, from when the message began."""
        return float(np.nanmean(self.receptions - self.begun[:, None]))

    @property
    def mean_queue_lengths(self) -> Floats:
        """By node, as a packet joins, itself included; 0 where none did."""
        service = self._scenario.transmission or 1.0
        count = np.maximum(self.queued, 1)
        lengths: Floats = np.where(self.queued > 0, self._tables.waited / service / count + 1, 0.0)
        return lengths


def _order(messages: Messages) -> tuple[Ints, Ints]:
    before, behind = (np.full(len(messages.times), NOBODY, np.int32) for _ in range(2))
    last: dict[tuple[int, int], int] = {}
    for m in np.argsort(messages.times, kind="stable"):
        key = (int(messages.sources[m]), int(messages.topics[m]))
        if key in last:
            before[m], behind[last[key]] = last[key], m
        last[key] = int(m)
    return before, behind


@compiled
def _run(s: FloodScenario, t: FloodTables) -> None:
    """Events are numbered in the order of scheduling: what is asked for, then packets."""
    messages = len(s.times)
    for m in range(messages):
        if s.times[m] < np.inf:
            push(t.calendar, m, s.times[m], m)
    while True:
        place = pop(t.calendar)
        if place < 0:
            return
        entry = t.calendar.due[place]
        event, time, note = entry.event, entry.time, entry.note
        m, node = note & _MASK, note >> _BITS & _MASK
        if event < messages:
            if s.acknowledged and s.before[m] != NOBODY and t.state[s.before[m]] != _DONE:
                t.state[m] = _ASKED
            else:
                _begin(s, t, m, time)
        elif note & _ACK:
            _acknowledge(s, t, m, node, time)
        else:
            _receive(s, t, m, node, time)


@compiled
def _begin(s: FloodScenario, t: FloodTables, m: int, time: float) -> None:
    node = s.sources[m]
    t.begun[m] = time
    if node == s.roots[m]:
        _receive(s, t, m, node, time)
    else:
        _send(s, t, m, node, s.dimension, time)


@compiled
def _receive(s: FloodScenario, t: FloodTables, m: int, node: int, time: float) -> None:
    t.received[m, node] = time
    height = t.heights[node ^ s.roots[m]]
    for c in range(height):
        _send(s, t, m, node, c, time)
    if s.acknowledged:
        t.pending[m, node] = height


@compiled
def _send(s: FloodScenario, t: FloodTables, m: int, node: int, c: int, time: float) -> None:
    """To the neighbour c; c = dimension stands for the root."""
    peer = node ^ (1 << c) if c < s.dimension else s.roots[m]
    queue = c if s.per_link else 0
    ready = time + s.processing
    free = max(t.free_at[node, queue], ready)
    t.waited[node] += free - ready
    free += s.transmission
    t.free_at[node, queue] = free
    t.queued[node] += 1
    arrival = free + s.propagation
    if t.heights[peer ^ s.roots[m]] == 0:
        _reach_leaf(s, t, m, peer, arrival)
        return
    event = t.events[0]
    t.events[0] = event + 1
    push(t.calendar, event, arrival, peer << _BITS | m)


@compiled
def _reach_leaf(s: FloodScenario, t: FloodTables, m: int, node: int, arrival: float) -> None:
    """Half of all receptions: nothing is forwarded, so nothing waits for their turn."""
    t.received[m, node] = arrival
    if s.acknowledged:
        _send_ack(s, t, m, node, arrival)


@compiled
def _send_ack(s: FloodScenario, t: FloodTables, m: int, node: int, time: float) -> None:
    place = node ^ s.roots[m]
    parent = node ^ (place & -place)
    event = t.events[0]
    t.events[0] = event + 1
    push(t.calendar, event, time + s.processing + s.transmission + s.propagation, _ACK | parent << _BITS | m)


@compiled
def _acknowledge(s: FloodScenario, t: FloodTables, m: int, node: int, time: float) -> None:
    t.pending[m, node] -= 1
    if t.pending[m, node]:
        return
    if node != s.roots[m]:
        _send_ack(s, t, m, node, time)
        return
    t.state[m] = _DONE
    after = s.behind[m]
    if after != NOBODY and t.state[after] == _ASKED:
        _begin(s, t, after, time)
