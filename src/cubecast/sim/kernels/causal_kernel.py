"""Vector-clock tree broadcast, with and without causal aggregation, compiled.

Mirrors `protocol.hypercube.causal_aggregation` on the network of `sim.network`, event for event: equal draws give equal
packets, times and deliveries, which the tests show over hundreds of configurations. The machine's docstring explains
levels; this file only says them with bit sets.
"""

import numpy as np

from cubecast.sim.kernels.calendar import COUNT, pop, push
from cubecast.sim.kernels.causal_tables import (
    AWAITED,
    BATCHED,
    CAUSAL,
    DELIVERED,
    EVENTS,
    LINK_QUEUE,
    MESSAGE_BITS,
    NO_QUEUE,
    POOLED,
    RECEIVED,
    TAKEN,
    WHOLE,
    Bits,
    CausalScenario,
    CausalTables,
)
from cubecast.sim.kernels.compiled import compiled, prefetch

HEADER_BYTES = 20
SOURCE_BYTES = 2
ENTRY_BYTES = 4

_AHEAD = 8  # events: about as many as memory takes to answer

_ONE = np.uint64(1)
_LOW = np.uint64(63)

# A de Bruijn sequence: multiplied by a power of two, its upper six bits are different for each of the 64.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_PLACES = np.zeros(64, np.int32)
for _bit in range(64):
    _PLACES[(int(_SEQUENCE) << _bit & (1 << 64) - 1) >> 58] = _bit


@compiled
def run(s: CausalScenario, t: CausalTables) -> None:
    """From the first publication to rest. Events are numbered: publications by message, then packets."""
    messages = len(s.times)
    for m in range(messages):
        if s.times[m] < np.inf:
            push(t.calendar, m, s.times[m], 0)
    t.used[EVENTS] = messages
    while True:
        place = pop(t.calendar)
        if place < 0:
            return
        _look_ahead(s, t, place + _AHEAD)
        entry = t.calendar.due[place]
        if entry.event < messages:
            _publish(s, t, entry.event, entry.time)
        elif s.reception > 0 and not entry.note & TAKEN:
            _wait_for_receiver(s, t, entry.event, entry.time, entry.note)
        else:
            _receive(s, t, entry.time, entry.note & ~TAKEN if s.reception > 0 else entry.note)


@compiled
def _wait_for_receiver(s: CausalScenario, t: CausalTables, event: int, time: float, note: int) -> None:
    """Its receiver deals with it when it is done with those before it."""
    node = note >> MESSAGE_BITS
    t.ready_at[node] = max(time, t.ready_at[node]) + s.reception
    t.packets[event - len(s.times)].time = t.ready_at[node]
    push(t.calendar, event, t.ready_at[node], note | TAKEN)


@compiled
def _look_ahead(s: CausalScenario, t: CausalTables, place: int) -> None:
    """Fetch what an event that is soon due will touch: by then it has left the cache."""
    if place < t.calendar.now[COUNT]:
        note = t.calendar.due[place].note
        if note >= 0:
            node, m = (note & ~TAKEN) >> MESSAGE_BITS, note & (1 << MESSAGE_BITS) - 1
            prefetch(s.delays, (m, node))
            prefetch(t.times, (node, m))
        else:
            prefetch(t.pool, (~note,))


# Bit sets, as rows of a matrix


@compiled
def _lowest(word: np.uint64) -> int:
    """Index of the lowest bit of a word that is not zero."""
    return int(_PLACES[(word & (~word + _ONE)) * _SEQUENCE >> _SHIFT])


@compiled
def _add(here: Bits, node: int, which: int, m: int) -> None:
    here[node, which, m >> 6] |= _ONE << (np.uint64(m) & _LOW)


@compiled
def _has(here: Bits, node: int, which: int, m: int) -> bool:
    return bool(here[node, which, m >> 6] >> (np.uint64(m) & _LOW) & _ONE)


@compiled
def _first_undelivered(past: Bits, m: int, here: Bits, node: int) -> int:
    """The lowest message of m's past not delivered at the node; −1 for none."""
    for w in range(past.shape[1]):
        word = past[m, w] & ~here[node, DELIVERED, w]
        if word != 0:
            return (w << 6) + _lowest(word)
    return -1


@compiled
def _deliverable(past: Bits, m: int, here: Bits, node: int) -> bool:
    """Whether all of m's past is delivered. No early exit: the usual answer is yes, and this way it takes vectors."""
    missing = np.uint64(0)
    for w in range(past.shape[1]):
        missing |= past[m, w] & ~here[node, DELIVERED, w]
    return bool(missing == 0)


# Trees


@compiled
def _height(s: CausalScenario, t: CausalTables, node: int, m: int) -> int:
    """To how many children a node forwards message m."""
    return int(t.heights[node if s.single else node ^ (m // s.per_node if s.per_node > 1 else m)])


@compiled
def _level(s: CausalScenario, t: CausalTables, node: int, m: int) -> tuple[int, int]:
    """The highest level at which something of m's past is missing at the node, and what; (0, −1) for nothing."""
    level, found = 0, -1
    for w in range(t.past.shape[1]):
        word = t.past[m, w] & ~t.here[node, RECEIVED, w]
        while word != 0:
            x = (w << 6) + _lowest(word)
            word &= word - _ONE
            height = _height(s, t, node, x)
            if height > level:
                level, found = height, x
    return level, found


# Publishing and sending


@compiled
def _publish(s: CausalScenario, t: CausalTables, m: int, time: float) -> None:
    node = m // s.per_node
    for w in range(t.past.shape[1]):
        word = t.here[node, DELIVERED, w]
        t.past[m, w] = word
        while word != 0:
            t.depth[m] += 1
            word &= word - _ONE
    t.entries[m] = _entries(s, t, m)
    _add(t.here, node, DELIVERED, m)
    t.times[node, m].delivery = time
    if s.single and node != 0:
        _send_one(s, t, time, node, s.dimension, m)
        return
    _add(t.here, node, RECEIVED, m)
    t.times[node, m].reception = time
    for c in range(s.dimension):
        _send_one(s, t, time, node, c, m)


@compiled
def _entries(s: CausalScenario, t: CausalTables, m: int) -> int:
    """Sources heard from since the publisher's previous message, and the publisher itself."""
    publisher = m // s.per_node
    count, last = 1, publisher
    for w in range(t.past.shape[1]):
        word = t.past[m, w]
        if m % s.per_node:
            word &= ~t.past[m - 1, w]
        while word != 0:
            source = ((w << 6) + _lowest(word)) // s.per_node
            word &= word - _ONE
            if source != last and source != publisher:
                count += 1
                last = source
    return count


@compiled
def _message_bytes(s: CausalScenario, t: CausalTables, m: int) -> int:
    return s.payload + SOURCE_BYTES + ENTRY_BYTES * int(t.entries[m])


@compiled
def _send_one(s: CausalScenario, t: CausalTables, time: float, node: int, c: int, m: int) -> None:
    t.pool[t.used[POOLED]] = m
    t.used[POOLED] += 1
    _send(s, t, time, node, c, 1, HEADER_BYTES + _message_bytes(s, t, m))


@compiled
def _send(s: CausalScenario, t: CausalTables, time: float, node: int, c: int, count: int, size: int) -> None:
    """A packet of the last `count` messages in the pool to neighbour c; c = dimension stands for the root."""
    peer = node ^ (1 << c) if c < s.dimension else 0
    queue = c if s.queue == LINK_QUEUE else 0
    ready = time + s.processing
    free = ready if s.queue == NO_QUEUE else max(t.free_at[node, queue], ready)
    t.nodes[node].waited += free - ready
    free += s.transmission
    t.free_at[node, queue] = free
    event, pooled = t.used[EVENTS], t.used[POOLED]
    t.used[EVENTS] = event + 1
    last = t.pool[pooled - 1]
    arrival = free + s.delays[last, peer]
    packet = t.packets[event - len(s.times)]
    packet.time = arrival
    packet.receiver = peer
    packet.sender = node
    packet.first = pooled - count
    packet.count = count
    packet.size = size
    # What is needed on arrival comes back with the event, or stands behind the messages: nobody looks at the packet.
    if count == 1:
        push(t.calendar, event, arrival, peer << MESSAGE_BITS | last)
    else:
        t.pool[pooled] = peer << MESSAGE_BITS | count
        t.used[POOLED] = pooled + 1
        push(t.calendar, event, arrival, ~pooled)


# Receiving


@compiled
def _receive(s: CausalScenario, t: CausalTables, time: float, note: int) -> None:
    if note >= 0:
        _receive_one(s, t, time, note >> MESSAGE_BITS, note & (1 << MESSAGE_BITS) - 1)
        return
    end = ~note
    node, count = t.pool[end] >> MESSAGE_BITS, t.pool[end] & (1 << MESSAGE_BITS) - 1
    first = end - count
    t.used[BATCHED] = 0
    for index in range(first, first + count):
        m = t.pool[index]
        _add(t.here, node, RECEIVED, m)
        t.times[node, m].reception = time
        if s.order != WHOLE:
            t.used[BATCHED] = 0
            _release(s, t, node, m)
            _emit(s, t, time, node)
        t.worklist[index - first] = m
    if s.order == WHOLE:
        for index in range(first, first + count):
            _release(s, t, node, t.pool[index])
        _emit(s, t, time, node)
    _deliver(t, time, node, count)


@compiled
def _receive_one(s: CausalScenario, t: CausalTables, time: float, node: int, m: int) -> None:
    _add(t.here, node, RECEIVED, m)
    t.times[node, m].reception = time
    # The usual case, in one look: nothing is missing, nobody waits. On the single tree it may be an own message.
    plain = not s.single and _deliverable(t.past, m, t.here, node) and not _has(t.here, node, AWAITED, m)
    if s.aggregate and not plain:
        t.used[BATCHED] = 0
        _release(s, t, node, m)
        _emit(s, t, time, node)
    else:
        height = _height(s, t, node, m)
        t.nodes[node].arrivals += height > 0
        for c in range(height):
            _send_one(s, t, time, node, c, m)
    if plain:
        _add(t.here, node, DELIVERED, m)
        t.times[node, m].delivery = time
    else:
        t.worklist[0] = m
        _deliver(t, time, node, 1)


@compiled
def _release(s: CausalScenario, t: CausalTables, node: int, m: int) -> None:
    """Put m, and what was postponed until it arrived, into the batch with their levels."""
    height = _height(s, t, node, m)
    if height == 0:
        return
    arrival = t.nodes[node].arrivals
    t.nodes[node].arrivals = arrival + 1
    _put(s, t, node, m, height, arrival)
    if _has(t.here, node, AWAITED, m):
        x = t.waiting[node, m].postponed_head - 1
        while x >= 0:
            cell = t.waiting[node, x]
            after = cell.postponed_next - 1
            _put(s, t, node, x, cell.blocked, cell.arrival)
            x = after


@compiled
def _put(s: CausalScenario, t: CausalTables, node: int, m: int, before: int, arrival: int) -> None:
    level = 0
    # An own message on the single tree is delivered before it is received; otherwise what is delivered is received.
    if s.single or not _deliverable(t.past, m, t.here, node):
        level, missing = _level(s, t, node, m)
        level = min(level, before)
        if level:
            cell = t.waiting[node, m]
            cell.arrival = arrival
            cell.blocked = level
            cell.postponed_next = t.waiting[node, missing].postponed_head
            t.waiting[node, missing].postponed_head = m + 1
            _add(t.here, node, AWAITED, missing)
    if level < before:
        _sort_in(t, m, level, before, t.depth[m] if s.order == CAUSAL else arrival)


@compiled
def _sort_in(t: CausalTables, m: int, level: int, before: int, rank: int) -> None:
    """Into the batch by rank, then number."""
    batch, k = t.batch, t.used[BATCHED]
    while k > 0 and (batch[k - 1, 3] > rank or (batch[k - 1, 3] == rank and batch[k - 1, 0] > m)):
        for column in range(4):
            batch[k, column] = batch[k - 1, column]
        k -= 1
    batch[k, 0] = m
    batch[k, 1] = level
    batch[k, 2] = before
    batch[k, 3] = rank
    t.used[BATCHED] += 1


@compiled
def _emit(s: CausalScenario, t: CausalTables, time: float, node: int) -> None:
    """To each child, what became complete for it, cut at the MTU."""
    batch, length = t.batch, t.used[BATCHED]
    if length == 1:
        for c in range(batch[0, 1], batch[0, 2]):
            _send_one(s, t, time, node, c, batch[0, 0])
        return
    low, high = s.dimension, 0
    for k in range(length):
        low, high = min(low, batch[k, 1]), max(high, batch[k, 2])
    for c in range(low, high):
        count, size = 0, HEADER_BYTES
        for k in range(length):
            if batch[k, 1] <= c < batch[k, 2]:
                more = _message_bytes(s, t, batch[k, 0])
                if size + more > s.mtu and count:
                    _send(s, t, time, node, c, count, size)
                    count, size = 0, HEADER_BYTES
                t.pool[t.used[POOLED]] = batch[k, 0]
                t.used[POOLED] += 1
                count += 1
                size += more
        if count:
            _send(s, t, time, node, c, count, size)


@compiled
def _deliver(t: CausalTables, time: float, node: int, count: int) -> None:
    """Whatever of the first `count` messages in `worklist`, and of what waited for it, has its whole past here."""
    worklist, length, here, k = t.worklist, count, t.nodes[node], 0
    here.pending += count
    while k < length:
        m = worklist[k]
        k += 1
        if _has(t.here, node, DELIVERED, m):  # an own message on its way down the single tree
            here.pending -= 1
            continue
        if not _deliverable(t.past, m, t.here, node):
            missing = _first_undelivered(t.past, m, t.here, node)
            t.waiting[node, m].held_next = t.waiting[node, missing].held_head
            t.waiting[node, missing].held_head = m + 1
            _add(t.here, node, AWAITED, missing)
            continue
        _add(t.here, node, DELIVERED, m)
        t.times[node, m].delivery = time
        here.pending -= 1
        if _has(t.here, node, AWAITED, m):
            x = t.waiting[node, m].held_head - 1
            while x >= 0:
                worklist[length] = x
                length += 1
                x = t.waiting[node, x].held_next - 1
    here.most_pending = max(here.most_pending, here.pending)
