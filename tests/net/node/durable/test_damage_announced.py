"""Damage is a gap in its place for whoever reads from the beginning, at once: also where nothing follows it."""

from pathlib import Path

import pytest

from cubecast.log import segments
from cubecast.log.check import check_log
from cubecast.log.segments import segment_numbers, segment_path
from cubecast.log.store import Store
from support.logs import flip
from support.replays import Entry, LoggingNode, Reader, caught_up
from support.running import run

BATCHES, EACH = 36, 4
LAST = BATCHES * EACH


async def write(directory: Path) -> list[Entry]:
    """Each batch with a commit of its own, and in the segments one behind the other."""
    store = await Store.open(directory)
    node = LoggingNode(store)
    for number in range(BATCHES):
        node.deliver("t", number % 3, EACH)
        await store.synced(store.ticket)
    await store.close()
    return node.sequence


async def read(directory: Path, pattern: str = "t", since="beginning") -> Reader:
    """As far as it comes before anything new is published."""
    store = await Store.open(directory)
    reader = LoggingNode(store, recent=0).subscribe(pattern, since)
    await caught_up([reader])
    assert reader.is_live
    await store.close()
    return reader


def harmed(tmp_path: Path, harm, since="beginning", pattern: str = "t") -> tuple[list[Entry], Reader]:
    written = run(write(tmp_path))
    harm(tmp_path)
    assert check_log(tmp_path).problems, "the check calls good what is not"
    return written, run(read(tmp_path, pattern, since))


def flip_the_last(directory: Path) -> None:
    path = segment_path(directory, 1)
    flip(path, path.stat().st_size - 3)


def insert(directory: Path) -> None:
    path = segment_path(directory, 1)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(4096) + content[len(content) // 2 :])


@pytest.mark.parametrize("pattern", ["t", ">"])
def test_a_flipped_bit_in_the_last_frame(tmp_path, pattern):
    written, reader = harmed(tmp_path, flip_the_last, pattern=pattern)
    assert reader.entries == written[:-EACH]
    assert reader.got[-1] == reader.gaps[0] and reader.gaps[0].offsets == (LAST - EACH + 1, LAST)
    assert reader.gaps[0].count == EACH


@pytest.mark.parametrize("pattern", ["t", ">"])
def test_an_insertion_in_the_middle(tmp_path, pattern):
    """Everything behind it is in another place than the index says: one gap, not one for each batch."""
    written, reader = harmed(tmp_path, insert, pattern=pattern)
    (gap,) = reader.gaps
    first, last = gap.offsets
    assert reader.entries == [*written[: first - 1], *written[last:]]
    assert 0 < first - 1 < LAST and gap.count == last - first + 1 == LAST - len(reader.entries)


def test_what_is_published_behind_the_damage_follows_the_gap_and_the_gap_is_told_once(tmp_path):
    async def story():
        written = await write(tmp_path)
        flip_the_last(tmp_path)
        store = await Store.open(tmp_path)
        node = LoggingNode(store, recent=0)
        node._counters = {("t", source): LAST // 3 for source in range(3)}
        reader = node.subscribe("t", "beginning")
        await caught_up([reader])
        node.deliver("t", 1)
        await caught_up([reader])
        assert reader.entries[:-1] == written[:-EACH] and reader.entries[-1].offset == LAST + 1
        assert [gap.offsets for gap in reader.gaps] == [(LAST - EACH + 1, LAST)]
        assert reader.got.index(reader.gaps[0]) == LAST - EACH
        await store.close()

    run(story())


def test_behind_a_cut_that_holds_what_is_damaged_nothing_is_missing(tmp_path):
    cut = {("t", source, 0): LAST // 3 for source in range(3)}
    _, reader = harmed(tmp_path, flip_the_last, since=cut)
    assert reader.got == []


@pytest.mark.parametrize("which", ["first", "middle", "last", "all"])
def test_a_missing_segment_is_a_damaged_range_and_its_offsets_are_not_given_again(tmp_path, which, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1000)

    async def story():
        written = await write(tmp_path)
        numbers = segment_numbers(tmp_path)
        assert len(numbers) > 2
        chosen = {"first": numbers[:1], "middle": numbers[1:2], "last": numbers[-1:], "all": numbers}[which]
        for number in chosen:
            segment_path(tmp_path, number).unlink()
        assert "is gone" in check_log(tmp_path).problems[0]
        reader = await read(tmp_path)
        (gap,) = reader.gaps
        first, last = gap.offsets
        assert reader.entries == [*written[: first - 1], *written[last:]]
        assert len(reader.entries) + gap.count == LAST
        store = await Store.open(tmp_path)
        node = LoggingNode(store, recent=0)
        node._counters = {("t", source): LAST // 3 for source in range(3)}
        node.deliver("t", 0)
        await store.synced(store.ticket)
        assert store.bounds("t") == (1, LAST + 1)
        await store.close()
        again = await read(tmp_path)
        assert [one.offset for one in again.entries] == [*(one.offset for one in reader.entries), LAST + 1]
        assert again.entries[:-1] == reader.entries, "new messages were taken for those that are gone"
        assert [one.offsets for one in again.gaps] == [gap.offsets]

    run(story())
