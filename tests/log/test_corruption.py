"""Any byte of any file may change, any file may be cut short: it is found, or nothing of the log has changed."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cubecast.errors import BadInput, DamagedLog
from cubecast.log.check import check_log, read_all, still
from cubecast.log.load import load
from cubecast.log.record import Record
from cubecast.log.schema import DATABASE, MARKS
from cubecast.log.segments import segment_path
from cubecast.log.store import Store
from support.logs import everything, fill, flip, payloads
from support.running import run

WAL = f"{DATABASE}-wal"
SEGMENT = segment_path(Path(), 1).name
TOPICS = ("a", "b.c")


async def write(directory: Path, image: Path) -> None:
    """A log half in the index and half in its write-ahead log, as a killed process leaves it."""
    store = await Store.open(directory)
    await fill(store, "a", 40, size=64)
    await store.close()
    store = await Store.open(directory)
    await fill(store, "b.c", 30, size=200)
    for step in range(10):
        await fill(store, "a", 4 + step, sources=1, size=64)
    shutil.copytree(directory, image, ignore=shutil.ignore_patterns("*-shm"))
    await store.close()


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("log")
    run(write(base / "log", base / "image"))
    return base / "image"


def content(directory: Path) -> dict[str, list[Record]]:
    """DamagedLog unless everything is good."""
    found = {}
    with still(directory) as reader:
        for topic, held in load(reader.database).topics.items():
            found[topic] = list(read_all(reader, topic, held))
            for piece in found[topic]:
                if isinstance(piece, DamagedLog):
                    raise piece
    return found


def is_found_by_check(directory: Path) -> bool:
    try:
        return bool(check_log(directory).problems)
    except BadInput:
        return True


async def replay(directory: Path) -> dict[str, list[bytes]] | None:
    """What a node that starts with this log reads from it; None when it says that something is wrong."""
    try:
        store = await Store.open(directory)
    except BadInput:
        return None
    try:
        return {topic: payloads(await everything(store, topic, 1 << 20)) for topic in store.topics()}
    except DamagedLog:
        return None
    finally:
        await store.close()


def try_it(killed: Path, directory: Path, name: str, harm) -> None:
    good = content_of(killed, directory)
    harm(directory / name)
    found = is_found_by_check(copied(directory))
    told = run(replay(directory))
    expected = {topic: payloads(records) for topic, records in good.items()}
    assert told is None or told == expected, "a node reads something else and does not say so"
    assert found or told == expected, "the check calls good what is not"


def content_of(killed: Path, directory: Path) -> dict[str, list[Record]]:
    shutil.rmtree(directory, ignore_errors=True)
    good = content(shutil.copytree(killed, directory))
    shutil.rmtree(directory)
    shutil.copytree(killed, directory)
    return good


def copied(directory: Path) -> Path:
    copy = directory.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(directory, copy)


UNTIMED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
EXAMPLES = settings(max_examples=20, deadline=None, suppress_health_check=UNTIMED)


@EXAMPLES
@given(st.sampled_from([SEGMENT, DATABASE, WAL, MARKS]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_found_or_has_no_effect(killed, tmp_path, name, place, mask):
    used = (killed / name).stat().st_size if name != MARKS else 4000
    try_it(killed, tmp_path / "log", name, lambda path: flip(path, int(place * used), mask))


@EXAMPLES
@given(st.sampled_from([SEGMENT, DATABASE, WAL, MARKS]), st.floats(0, 1, exclude_max=True))
def test_a_file_cut_short_is_found_or_has_no_effect(killed, tmp_path, name, place):
    def cut(path: Path) -> None:
        with path.open("r+b") as file:
            file.truncate(int(place * path.stat().st_size))

    try_it(killed, tmp_path / "log", name, cut)


@EXAMPLES
@given(st.sampled_from([SEGMENT, DATABASE, WAL]), st.floats(0, 1, exclude_max=True), st.integers(1, 600))
def test_a_torn_write_is_found_or_has_no_effect(killed, tmp_path, name, place, length):
    def tear(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(int(place * path.stat().st_size))
            file.write(bytes(length))

    try_it(killed, tmp_path / "log", name, tear)


@pytest.mark.parametrize("name", [WAL, DATABASE, MARKS])
def test_what_can_be_made_again_may_be_lost(killed, tmp_path, name):
    try_it(killed, tmp_path / "log", name, Path.unlink)
    assert run(replay(tmp_path / "log")) is not None


def test_a_lost_segment_is_found(killed, tmp_path):
    try_it(killed, tmp_path / "log", SEGMENT, Path.unlink)
    assert run(replay(tmp_path / "log")) is None


def test_the_image_is_good_and_its_index_needs_its_write_ahead_log(killed, tmp_path):
    assert set(content_of(killed, tmp_path / "log")) == set(TOPICS)
    assert not is_found_by_check(tmp_path / "log")
    assert (killed / WAL).stat().st_size > 20_000
