"""A calendar queue in arrays: buckets of equal width, sorted when their turn comes.

Ordered by (time, event number): numbers are given in order of scheduling, so equal times keep that order, as in the
simulator. A bucket is a chain of chunks of two cache lines, so that opening it does not chase a pointer per event; the
chunks are reused, so that the queue takes the memory of what is under way and not of all that ever was. The bucket
being emptied is a small sorted array, into which an event that still falls into it is inserted.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled

_BUCKET, _INDEX, _COUNT, _LEFT, _FREE, _FRESH = range(6)
_ENTRIES = 8
_ENTRY = np.dtype([("time", np.float64), ("event", np.int32), ("note", np.int32)])


class Calendar(NamedTuple):
    per_unit: float
    """Buckets per unit of time."""
    heads: NDArray[np.int32]
    """Per bucket (modulo their number): its newest chunk, or −1. A bucket may hold events of later rounds too."""
    filled: NDArray[np.int32]
    """Per chunk: entries in use."""
    after: NDArray[np.int32]
    """Per chunk: the next one of its bucket, or of the free ones."""
    chunks: NDArray[Any]
    due: NDArray[Any]
    """The current bucket's events, sorted."""
    now: NDArray[np.int64]
    """The current bucket; position in, and length of, `due`; events in other buckets; first free chunk; chunks never
    used begin here."""


def make_calendar(events: int, per_unit: float, buckets: int = 1 << 16) -> Calendar:
    chunks = events // _ENTRIES + buckets + 1
    return Calendar(
        per_unit,
        np.full(buckets, -1, np.int32),
        np.zeros(chunks, np.int32),
        np.empty(chunks, np.int32),
        np.empty((chunks, _ENTRIES), _ENTRY),
        np.empty(events, _ENTRY),
        np.array([-1, 0, 0, 0, -1, 0], np.int64),
    )


@compiled
def push(calendar: Calendar, event: int, time: float, note: int) -> None:
    """`note` comes back with the event."""
    now = calendar.now
    bucket = int(time * calendar.per_unit)
    if bucket == now[_BUCKET]:
        _insert(calendar, event, time, note)
        return
    place = bucket & (len(calendar.heads) - 1)
    chunk = calendar.heads[place]
    if chunk < 0 or calendar.filled[chunk] == _ENTRIES:
        chunk = _new_chunk(calendar, place)
    k = calendar.filled[chunk]
    calendar.filled[chunk] = k + 1
    entry = calendar.chunks[chunk, k]
    entry.time = time
    entry.event = event
    entry.note = note
    now[_LEFT] += 1


@compiled
def _new_chunk(calendar: Calendar, place: int) -> int:
    now = calendar.now
    chunk = now[_FREE]
    if chunk >= 0:
        now[_FREE] = calendar.after[chunk]
    else:
        chunk = now[_FRESH]
        now[_FRESH] += 1
    calendar.filled[chunk] = 0
    calendar.after[chunk] = calendar.heads[place]
    calendar.heads[place] = chunk
    return int(chunk)


@compiled
def _insert(calendar: Calendar, event: int, time: float, note: int) -> None:
    """Into the sorted rest of the current bucket, by time and number."""
    due, now = calendar.due, calendar.now
    k = now[_COUNT]
    while k > now[_INDEX] and (due[k - 1].time > time or (due[k - 1].time == time and due[k - 1].event > event)):
        due[k].time = due[k - 1].time
        due[k].event = due[k - 1].event
        due[k].note = due[k - 1].note
        k -= 1
    due[k].time = time
    due[k].event = event
    due[k].note = note
    now[_COUNT] += 1


@compiled
def pop(calendar: Calendar) -> int:
    """The place in `due` of the earliest event, or −1 when none is left."""
    now = calendar.now
    while now[_INDEX] == now[_COUNT]:
        if now[_LEFT] == 0:
            return -1
        now[_BUCKET] += 1
        now[_INDEX] = now[_COUNT] = 0
        if calendar.heads[now[_BUCKET] & (len(calendar.heads) - 1)] >= 0:
            _open(calendar)
    now[_INDEX] += 1
    return int(now[_INDEX] - 1)


@compiled
def _open(calendar: Calendar) -> None:
    """Move the current bucket's events into the sorted array; those of later rounds stay."""
    now = calendar.now
    place = now[_BUCKET] & (len(calendar.heads) - 1)
    chunk = calendar.heads[place]
    calendar.heads[place] = -1
    while chunk >= 0:
        for k in range(calendar.filled[chunk]):
            entry = calendar.chunks[chunk, k]
            now[_LEFT] -= 1
            push(calendar, entry.event, entry.time, entry.note)
        after = calendar.after[chunk]
        calendar.after[chunk] = now[_FREE]
        now[_FREE] = chunk
        chunk = after
