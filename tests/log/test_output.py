"""Writing past the page cache: the same bytes in the file, whichever way they went."""

import errno
import os

import pytest

from cubecast.log.segments import BLOCK, BUFFER, LARGE, Output

SIZES = [
    [LARGE],
    [1, LARGE, 3],
    [BLOCK - 1] * 40,
    [30_000] * 90,
    [BUFFER + 5],
    [BUFFER - 7, 7, 1, BUFFER],
    [10, 3 * BUFFER + 10, LARGE],
    [LARGE - 1],
    [40] * 3000,
]


def parts_of(sizes):
    return [os.urandom(size) for size in sizes]


@pytest.fixture(params=["as it is", "no direct writes", "refused when tried", "half of it at a time"])
def disk(request, monkeypatch):
    """What a file system may do with direct writes."""
    write = os.pwrite
    if request.param == "no direct writes":
        monkeypatch.delattr(os, "O_DIRECT")
    elif request.param == "refused when tried":

        def refuse(descriptor, data, position):
            if len(data) >= BLOCK and position % BLOCK == 0:
                raise OSError(errno.EINVAL, "not here")
            return write(descriptor, data, position)

        monkeypatch.setattr(os, "pwrite", Once(refuse, write))
    elif request.param == "half of it at a time":
        monkeypatch.setattr(os, "pwrite", lambda file, data, place: write(file, data[: -(-len(data) // 2)], place))
    return request.param


class Once:
    """Fails the first time it would, and never again."""

    def __init__(self, first, then):
        self._first, self._then = first, then

    def __call__(self, descriptor, data, position):
        try:
            return self._first(descriptor, data, position)
        except OSError:
            self._first = self._then
            raise


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("position", [0, 1, BLOCK, 3 * BLOCK - 1])
def test_the_file_holds_what_was_written(tmp_path, disk, sizes, position):
    before, parts = os.urandom(position), parts_of(sizes)
    file = Output(tmp_path / "file")
    file.write([before], 0)
    file.write(parts, position)
    file.write([b"end"], position + sum(sizes))
    file.sync()
    file.close()
    assert (tmp_path / "file").read_bytes() == before + b"".join(parts) + b"end", disk


def test_what_was_cut_off_is_written_over(tmp_path):
    file = Output(tmp_path / "file")
    kept, lost, new = parts_of([5000, 2 * LARGE, LARGE])
    file.write([kept], 0)
    file.write([lost], 5000)
    file.cut(5000)
    file.write([new], 5000)
    file.close()
    assert (tmp_path / "file").read_bytes() == kept + new


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def full(descriptor, data, position):
        raise OSError(errno.ENOSPC, "full")

    file = Output(tmp_path / "file")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="full"):
        file.write(parts_of([LARGE]), 0)
    file.close()
