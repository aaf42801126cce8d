"""Room of forgotten messages comes back, and what is kept survives it."""

import pytest

from cubecast.log import retention as cleaning
from cubecast.log import segments
from cubecast.log.check import check_log
from cubecast.log.segments import segment_numbers
from cubecast.log.store import Store
from cubecast.net.settings.config import Retention
from support.logs import batch, everything, fill, payloads
from support.running import run, until

SMALL = 5_000


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", SMALL)
    monkeypatch.setattr(cleaning, "SEGMENT_BYTES", SMALL)


async def turn_over(store: Store, steps: int) -> None:
    """Much that is forgotten, a little that is kept."""
    for step in range(steps):
        store.append("kept", *batch(1, step + 1, 1), 0.0)
        for number in range(10):
            store.append("passing", *batch(2, 1 + 40 * step + 4 * number, 4, 100), 0.0)
        await store.synced(store.ticket)


def test_segments_nothing_is_kept_of_are_removed(tmp_path, small_segments):
    async def story():
        store = await Store.open(tmp_path, retention={">": Retention(max_messages=8)})
        for step in range(20):
            await fill(store, f"t{step}", 10, size=100)
        assert segment_numbers(tmp_path)[-1] >= 10  # of which some may be gone by now
        for step in range(20):
            store.append("last", *batch(1, 1 + 8 * step, 8, 200), 0.0)
            await store.synced(store.ticket)
        await until(lambda: segment_numbers(tmp_path)[0] > 1)
        await store.close()

    run(story())


def test_what_is_kept_moves_when_most_around_it_is_forgotten(tmp_path, small_segments):
    async def story():
        store = await Store.open(tmp_path, retention={"passing": Retention(max_messages=40)})
        await turn_over(store, 40)
        await until(lambda: len(segment_numbers(tmp_path)) <= 6)
        kept = [f"m1.{number}".encode() for number in range(1, 41)]
        assert payloads(await everything(store, "kept")) == kept
        await store.close()
        assert check_log(tmp_path).problems == []
        store = await Store.open(tmp_path)
        assert payloads(await everything(store, "kept")) == kept
        assert store.bounds("passing") == (1561, 1600)
        await store.close()

    run(story())
