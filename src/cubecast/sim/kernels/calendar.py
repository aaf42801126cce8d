"""A calendar queue in arrays: buckets of equal width, linked through the events, sorted when their turn comes.

Ordered by (time, event number): numbers are given in order of scheduling, so equal times keep that order, as in the
simulator. The bucket being emptied is a small sorted array, into which an event that still falls into it is inserted.

Events are records with at least the fields `time` and `following` (the event before it in its bucket, or −1).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecast.sim.kernels.compiled import compiled

_BUCKET, _INDEX, _COUNT, _LEFT = range(4)
_DUE = np.dtype([("time", np.float64), ("event", np.int64)])


class Calendar(NamedTuple):
    per_unit: float
    """Buckets per unit of time."""
    heads: NDArray[np.int32]
    """Per bucket (modulo their number), its latest event or −1. A bucket may hold events of later rounds too."""
    events: NDArray[Any]
    due: NDArray[Any]
    """The current bucket's events, sorted."""
    now: NDArray[np.int64]
    """The current bucket; position in, and length of, `due`; events left in other buckets."""


def make_calendar(events: NDArray[Any], per_unit: float, buckets: int = 1 << 16) -> Calendar:
    heads = np.full(buckets, -1, np.int32)
    return Calendar(per_unit, heads, events, np.empty(len(events), _DUE), np.array([-1, 0, 0, 0], np.int64))


@compiled
def push(calendar: Calendar, event: int, time: float) -> None:
    record = calendar.events[event]
    record.time = time
    bucket = int(time * calendar.per_unit)
    if bucket == calendar.now[_BUCKET]:
        _insert(calendar.due, calendar.now, event, time)
        return
    place = bucket & (len(calendar.heads) - 1)
    record.following = calendar.heads[place]
    calendar.heads[place] = event
    calendar.now[_LEFT] += 1


@compiled
def _insert(due: NDArray[Any], now: NDArray[np.int64], event: int, time: float) -> None:
    """Into the sorted rest of the current bucket, by time and number."""
    k = now[_COUNT]
    while k > now[_INDEX] and (due[k - 1].time > time or (due[k - 1].time == time and due[k - 1].event > event)):
        due[k].time = due[k - 1].time
        due[k].event = due[k - 1].event
        k -= 1
    due[k].time = time
    due[k].event = event
    now[_COUNT] += 1


@compiled
def pop(calendar: Calendar) -> int:
    """The earliest event, or −1 when none is left."""
    now = calendar.now
    while now[_INDEX] == now[_COUNT]:
        if now[_LEFT] == 0:
            return -1
        now[_BUCKET] += 1
        now[_INDEX] = now[_COUNT] = 0
        if calendar.heads[now[_BUCKET] & (len(calendar.heads) - 1)] >= 0:
            _open(calendar)
    now[_INDEX] += 1
    return int(calendar.due[now[_INDEX] - 1].event)


@compiled
def _open(calendar: Calendar) -> None:
    """Move the current bucket's events from their list into the sorted array."""
    now = calendar.now
    place = now[_BUCKET] & (len(calendar.heads) - 1)
    event = calendar.heads[place]
    rest = -1
    while event >= 0:
        record = calendar.events[event]
        after = record.following
        if int(record.time * calendar.per_unit) == now[_BUCKET]:
            _insert(calendar.due, now, event, record.time)
            now[_LEFT] -= 1
        else:
            record.following = rest
            rest = event
        event = after
    calendar.heads[place] = rest
