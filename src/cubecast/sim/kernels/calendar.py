"""A calendar queue in arrays: buckets of equal width, sorted when their turn comes.

Ordered by (time, event number): numbers are given in order of scheduling, so equal times keep that order, as in the
simulator. A bucket is a chain of chunks, filled from its front, so that scheduling writes where it wrote last and
opening reads what lies together: a bucket is wide enough for the places being written to stay in the cache. The chunks
are reused, so that the queue takes the memory of what is under way and not of all that ever was. An opened bucket is
sorted into slots of time first; an event that still falls into it is inserted.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled

_BUCKET, _INDEX, COUNT, _LEFT, _FREE, _FRESH = range(6)
_CHUNK_BITS = 5
_ENTRIES = 1 << _CHUNK_BITS
_SLOTS = 256
_FEW = 8  # so many are sorted without slots
_ENTRY = np.dtype([("time", np.float64), ("event", np.int32), ("note", np.int32)])


class Calendar(NamedTuple):
    per_unit: float
    """Buckets per unit of time."""
    ends: NDArray[np.int32]
    """Per bucket (modulo their number): behind its newest entry; 0 when it is empty. A bucket may hold events of later
    rounds too."""
    before: NDArray[np.int32]
    """Per chunk: the one filled before it in its bucket, or the next free one; 0 for none, as chunk 0 is not used."""
    entries: NDArray[Any]
    """Chunk by chunk."""
    opened: NDArray[Any]
    """The current bucket's events as they were found."""
    slots: NDArray[np.int32]
    due: NDArray[Any]
    """The current bucket's events, sorted."""
    now: NDArray[np.int64]
    """The current bucket; position in, and length of, `due`; events in other buckets; first free chunk; chunks never
    used begin here."""


def make_calendar(events: int, per_unit: float, buckets: int = 1 << 14) -> Calendar:
    chunks = events // _ENTRIES + buckets + 2
    return Calendar(
        per_unit,
        np.zeros(buckets, np.int32),
        np.empty(chunks, np.int32),
        np.empty(chunks * _ENTRIES, _ENTRY),
        np.empty(events, _ENTRY),
        np.zeros(_SLOTS + 1, np.int32),
        np.empty(events, _ENTRY),
        np.array([-1, 0, 0, 0, 0, 1], np.int64),
    )


@compiled
def push(calendar: Calendar, event: int, time: float, note: int) -> None:
    """`note` comes back with the event."""
    now = calendar.now
    bucket = int(time * calendar.per_unit)
    if bucket == now[_BUCKET]:
        _insert(calendar, event, time, note)
        return
    place = bucket & (len(calendar.ends) - 1)
    end = calendar.ends[place]
    if end & (_ENTRIES - 1) == 0:
        end = _new_chunk(calendar, end)
    calendar.ends[place] = end + 1
    entry = calendar.entries[end]
    entry.time = time
    entry.event = event
    entry.note = note
    now[_LEFT] += 1


@compiled
def _new_chunk(calendar: Calendar, end: int) -> int:
    """Where the chunk begins that follows a full one, or an empty bucket."""
    now = calendar.now
    chunk = now[_FREE]
    if chunk:
        now[_FREE] = calendar.before[chunk]
    else:
        chunk = now[_FRESH]
        now[_FRESH] += 1
    calendar.before[chunk] = (end - 1) >> _CHUNK_BITS if end else 0
    return int(chunk << _CHUNK_BITS)


@compiled
def _insert(calendar: Calendar, event: int, time: float, note: int) -> None:
    """Into the sorted rest of the current bucket, by time and number."""
    due, now = calendar.due, calendar.now
    k = now[COUNT]
    while k > now[_INDEX] and (due[k - 1].time > time or (due[k - 1].time == time and due[k - 1].event > event)):
        _copy(due[k], due[k - 1])
        k -= 1
    due[k].time = time
    due[k].event = event
    due[k].note = note
    now[COUNT] += 1


@compiled
def _copy(to: Any, entry: Any) -> None:
    to.time = entry.time
    to.event = entry.event
    to.note = entry.note


@compiled
def pop(calendar: Calendar) -> int:
    """The place in `due` of the earliest event, or −1 when none is left."""
    now = calendar.now
    while now[_INDEX] == now[COUNT]:
        if now[_LEFT] == 0:
            return -1
        now[_BUCKET] += 1
        now[_INDEX] = now[COUNT] = 0
        if calendar.ends[now[_BUCKET] & (len(calendar.ends) - 1)]:
            _open(calendar)
    now[_INDEX] += 1
    return int(now[_INDEX] - 1)


@compiled
def _open(calendar: Calendar) -> None:
    """Move the current bucket's events into the sorted array."""
    count = _take_out(calendar)
    opened, due, slots = calendar.opened, calendar.due, calendar.slots
    if count > _FEW:
        slots[:] = 0
        for k in range(count):
            slots[_slot(calendar, opened[k].time) + 1] += 1
        for k in range(_SLOTS):
            slots[k + 1] += slots[k]
        for k in range(count):
            slot = _slot(calendar, opened[k].time)
            _copy(due[slots[slot]], opened[k])
            slots[slot] += 1
        opened = due
    for k in range(count):
        _insert(calendar, opened[k].event, opened[k].time, opened[k].note)


@compiled
def _slot(calendar: Calendar, time: float) -> int:
    return int((time * calendar.per_unit - calendar.now[_BUCKET]) * _SLOTS)


@compiled
def _take_out(calendar: Calendar) -> int:
    """Copy the current bucket's events out of their chunks, which are free then; those of later rounds stay."""
    now, entries = calendar.now, calendar.entries
    place, count = now[_BUCKET] & (len(calendar.ends) - 1), 0
    end = calendar.ends[place]
    calendar.ends[place] = 0
    while end:
        chunk = (end - 1) >> _CHUNK_BITS
        for k in range(chunk << _CHUNK_BITS, end):
            now[_LEFT] -= 1
            if int(entries[k].time * calendar.per_unit) == now[_BUCKET]:
                _copy(calendar.opened[count], entries[k])
                count += 1
            else:
                push(calendar, entries[k].event, entries[k].time, entries[k].note)
        before = calendar.before[chunk]
        calendar.before[chunk] = now[_FREE]
        now[_FREE] = chunk
        end = (before + 1) << _CHUNK_BITS if before else 0
    return count
