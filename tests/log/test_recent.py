"""The newest records in memory: served from there as long as they are there, and never with a hole."""

from itertools import pairwise

import pytest

from cubecast.ids import MessageId
from cubecast.log.history import History
from cubecast.log.record import pack
from support.memory_log import MemoryLog


def filled(recent: int, batches: int) -> History:
    history = History(MemoryLog(), recent=recent)
    for number in range(batches):
        for source, topic in enumerate(("a", "b")):
            history.append(topic, MessageId(source, 0, 1 + 2 * number), pack([b"x" * 50, b"y"]))
    return history


@pytest.mark.parametrize("recent", [0, 300, 2000, 10_000])
def test_what_memory_says_is_all_there_is_from_an_offset_on(recent):
    history = filled(recent, 20)
    known = [offset for offset in range(1, 41) if history.recent("a", offset) is not None]
    assert known == list(range(41 - len(known), 41)), "the newest ones"
    for offset in known:
        records = history.recent("a", offset)
        assert records[0].offset == offset and records[-1].last == 40
        assert all(after.offset == before.last + 1 for before, after in pairwise(records))


def test_memory_keeps_at_least_half_of_what_it_may_and_not_more():
    batches = 200
    history = filled(20_000, batches)
    kept = sum(len(history.recent(topic, first)) for topic in "ab" for first in [oldest(history, topic, 2 * batches)])
    size = 200 + len(pack([b"x" * 50, b"y"]).block)
    assert 10_000 - size <= kept * size <= 20_000 + size


def oldest(history: History, topic: str, last: int) -> int:
    return next(offset for offset in range(1, last + 1) if history.recent(topic, offset) is not None)


def test_without_room_in_memory_nothing_is_kept():
    history = filled(0, 3)
    assert history.recent("a", 5) is None
    assert history.recent("a", 7) == [], "there is nothing yet"
