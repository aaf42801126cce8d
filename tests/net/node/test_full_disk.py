"""A disk that is full while a node serves: it says so once, and goes on with everything but its records."""

import errno
import logging
import os

import pytest

from cubecast.check import check_directory
from cubecast.check.verdict import Verdict
from cubecast.errors import BadInput
from cubecast.net.live_node import LiveNode
from cubecast.net.members import memory
from cubecast.net.node import input_log
from cubecast.net.settings.config import NodeConfig
from cubecast.report.journals import collect_journals
from cubecast.trace import journal
from support.cluster import FAST
from support.running import run, until


class FullDisk:
    """Stands for `os` in one module: its writes fail from some moment on."""

    def __init__(self) -> None:
        self.is_full = False
        self.files = None
        """Those that are on it; all when None."""

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, file, data):
        if self.is_full and (self.files is None or file in self.files):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(file, data)


@pytest.mark.parametrize(("module", "settings"), [(journal, ("journal",)), (input_log, ("inputs",))])
def test_the_node_goes_on(module, settings, tmp_path, monkeypatch, caplog):
    disk = FullDisk()
    monkeypatch.setattr(module, "os", disk)

    async def main():
        records = {name: tmp_path / name for name in settings}
        first = LiveNode(NodeConfig(**FAST | {"patience": 2.0, "round_length": 0.5}, **records))
        await first.start()
        second = LiveNode(NodeConfig(join=(first.address,), **FAST))
        await second.start()
        disk.is_full = True
        for _ in range(3):
            await first.port.stable("t", first.port.publish("t", [b"x"]))
            await second.port.stable("t", second.port.publish("t", [b"y"]))
        # Its timers live: it notices that the other one is silent, which takes rounds of tests.
        second.life.driver.stop()
        await until(lambda: first.machine.living == [first.place.node])
        await first.close()
        await second.close()

    with caplog.at_level(logging.ERROR):
        run(main())
    told = [record.getMessage() for record in caplog.records if "No space left" in record.getMessage()]
    assert len(told) == 1 and "goes on" in told[0]


def test_nobody_is_judged_by_a_journal_that_was_lost(tmp_path, monkeypatch):
    """The other node delivers what its publisher could not write down any more: that is no invention of anybody's."""
    disk = FullDisk()
    monkeypatch.setattr(journal, "os", disk)

    class Heard:
        count = 0

        def __getattr__(self, name):
            return lambda *_: None

        def on_batch(self, topic, first, payloads, logged=None):
            self.count += len(payloads)

    async def main():
        first = LiveNode(NodeConfig(**FAST, journal=tmp_path / "journals"))
        await first.start()
        second = LiveNode(NodeConfig(join=(first.address,), **FAST, journal=tmp_path / "journals"))
        await second.start()
        heard = Heard()
        second.port.subscribe("t", heard)
        while not heard.count:  # until the subscription is known there
            await first.port.stable("t", first.port.publish("t", [b"before"]))
        disk.files, disk.is_full, before = [first.life.driver.journalling.journal._writer._file], True, heard.count
        first.port.publish("t", [b"after"])
        await until(lambda: heard.count > before)
        await first.close()
        await second.close()

    run(main())
    found = collect_journals(tmp_path / "journals", tmp_path / "trace")
    assert len(found["lost_journals"]) == 1
    report = check_directory(tmp_path / "trace")
    assert report.verdict == Verdict.UNKNOWN
    assert any("is incomplete" in reason for reason in report.unknown_because)


def test_a_journal_that_cannot_begin_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")

    async def main():
        with pytest.raises(BadInput, match="no journal can be written in"):
            await LiveNode(NodeConfig(journal=tmp_path / "file" / "below", **FAST)).start()

    run(main())


def test_a_new_incarnation_that_cannot_be_remembered_is_lived_all_the_same(tmp_path, monkeypatch, caplog):
    """In a living node it is news from others, in the midst of a step whose other effects must be carried out."""

    async def main():
        live = LiveNode(NodeConfig(data=tmp_path, log=(">",), **FAST))
        await live.start()

        def full(directory):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(memory, "sync_directory", full)
        live.port.on_reincarnated(7)
        assert live.place.incarnation == 7 and live.life.recorder.me == (live.place.node, 7)
        await live.close()

    with caplog.at_level(logging.ERROR):
        run(main())
    (told,) = [record.getMessage() for record in caplog.records if "No space left" in record.getMessage()]
    assert "cannot remember its incarnation" in told and "goes on" in told
