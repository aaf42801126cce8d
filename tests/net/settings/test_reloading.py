"""A living node takes over what may change, says what may not, and nothing of a broken file."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cubecast.errors import BadInput
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig, Retention
from cubecast.net.settings.logs import Logging, set_up
from cubecast.net.settings.resolve import Reloader, Sources, resolve, taking
from support.certificates import certificates
from support.cluster import FAST
from support.running import run, until

MIB = 1 << 20


class Fixture:
    """A file, a node that never started, and what `prepare` saw."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.write_text(text)
        self.seen: list[NodeConfig] = []
        self.applied: list[NodeConfig] = []
        self.objection: str | None = None
        self.reloader = Reloader(NodeConfig, self._read().config, self._read, [self.prepare])

    def _read(self):
        return resolve(NodeConfig, Sources(self.path, {"CUBECAST_CLUSTER": "c"}))

    def prepare(self, config: NodeConfig) -> Callable[[], None]:
        self.seen.append(config)
        if self.objection:
            raise BadInput(self.objection)
        return lambda: self.applied.append(config)


@pytest.fixture
def fixture(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path / "c.toml", "window = 4\ntopic_budget = 100\n")


def test_what_may_change_changes_and_the_rest_is_named(fixture: Fixture, caplog: pytest.LogCaptureFixture):
    fixture.path.write_text("window = 8\ntopic_budget = 200\nlogging.level = 'debug'\n")
    reloaded = fixture.reloader.reload()
    assert reloaded is not None
    assert (reloaded.changed, reloaded.left) == (["topic_budget", "logging.level"], ["window"])
    (applied,) = fixture.applied
    assert (applied.window, applied.topic_budget, applied.logging.level, applied.cluster) == (4, 200, "debug", "c")
    (line,) = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert line.startswith("only a restart takes over window;")


def test_a_broken_file_changes_nothing(fixture: Fixture, caplog: pytest.LogCaptureFixture):
    before = fixture.reloader.current
    fixture.path.write_text("topic_budget = 200\nwindo = 1\n")
    assert fixture.reloader.reload() is None
    assert fixture.reloader.current is before
    assert not fixture.seen
    (line,) = [one.getMessage() for one in caplog.records]
    assert "nothing changed" in line and "did you mean window?" in line


def test_when_one_objects_nobody_changes(fixture: Fixture):
    others: list[NodeConfig] = []
    fixture.reloader._prepare.insert(0, lambda config: lambda: others.append(config))
    fixture.path.write_text("topic_budget = 200\n")
    fixture.objection = "the certificate is none"
    assert fixture.reloader.reload() is None
    assert not others and not fixture.applied
    fixture.objection = None
    fixture.reloader.reload()
    assert others == fixture.applied == [fixture.reloader.current]


def test_files_behind_settings_are_looked_at_even_if_no_setting_changed(fixture: Fixture):
    assert fixture.reloader.reload() is not None
    assert len(fixture.applied) == 1


def test_taking_some_keys():
    ours, theirs = NodeConfig(), NodeConfig(window=3, topic_budget=7, logging=Logging(level="error"))
    assert taking(ours, theirs, []) is ours
    assert taking(ours, theirs, ["topic_budget"]) == NodeConfig(topic_budget=7)
    assert taking(ours, theirs, ["logging.level"]) == NodeConfig(logging=Logging(level="error"))


def test_budgets_of_a_living_node():
    async def main():
        first = LiveNode(NodeConfig(**FAST, topic_budget=1))
        await first.start()
        second = LiveNode(NodeConfig(join=(first.address,), **FAST))
        await second.start()
        first.port.publish("t", [b"xx"])
        assert not first.port.has_room("t")
        wanted = replace(
            first.config, topic_budget=MIB, peer_budget=3 * MIB, client_budget=2 * MIB, max_clients=0, max_payload=1
        )
        for prepare in first.reloads:
            prepare(wanted)()
        assert first.port.has_room("t"), "who waits for room gets it at once"
        link = first.link_to(second.place.node)
        assert link is not None and link.budget == 3 * MIB
        with pytest.raises(BadInput, match="at most 1"):
            first.port.publish("t", [b"xx"])
        await second.close()
        await first.close()

    run(main())


def test_a_node_stays_who_its_certificate_says_it_is():
    node = LiveNode(NodeConfig(tls=certificates().make("seven", (7,)), **FAST))
    assert node.config.node == 7
    for prepare in node.reloads:
        prepare(replace(node.config, node=None, topic_budget=7))()
    assert (node.config.node, node.config.topic_budget) == (7, 7)


def test_what_the_log_keeps(tmp_path: Path):
    async def main():
        node = LiveNode(NodeConfig(**FAST, data=tmp_path, log=(">",)))
        await node.start()
        for _ in range(5):
            await node.port.durable("t", node.port.publish("t", [b"x"] * 4))
        store = node.port.recorder.store
        assert store.bounds("t") == (1, 20)
        wanted = replace(node.config, retention={"t": Retention(max_messages=8)}, log_quota=MIB, log_budget=1)
        for prepare in node.reloads:
            prepare(wanted)()
        await until(lambda: store.bounds("t") == (13, 20))
        await node.close()

    run(main())


def test_the_log_is_as_loud_as_asked():
    root = logging.getLogger("cubecast")
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    try:
        set_up(Logging(level="debug"))
        set_up(Logging(level="error"))
        assert root.level == logging.ERROR
        assert len(root.handlers) == max(1, len(handlers))
    finally:
        root.handlers[:], root.propagate = handlers, propagate
        root.setLevel(level)
