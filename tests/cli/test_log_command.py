"""`cubecast log`: list, export, check."""

import base64
import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cubecast.api.envelope import seal
from cubecast.cli import main, screen
from cubecast.ids import MessageId
from cubecast.log.segments import segment_path
from cubecast.log.store import Store
from support.logs import fill, flip
from support.running import run


def cubecast(*arguments: object):
    """In this process, because loading Parquet takes longer than all these commands."""
    return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def a_log(tmp_path):
    async def write() -> None:
        store = await Store.open(tmp_path / "data")
        await fill(store, "a", 5)
        contents = [seal("text"), seal({"x": 1}, {"h": "v"}), b"\x00\xff", b"\xc1garbled"]
        store.append("b.c", MessageId(7, 2, 11), contents, 1_000_000.5)
        await store.close()

    run(write())
    return tmp_path / "data"


def test_ls_tells_topics_offsets_sizes_and_times(a_log):
    done = cubecast("log", "ls", a_log, "--json")
    assert done.exit_code == 0
    topics = {one["topic"]: one for one in json.loads(done.stdout)["topics"]}
    assert {name: (one["first"], one["last"], one["messages"]) for name, one in topics.items()} == {
        "a": (1, 20, 20),
        "b.c": (1, 4, 4),
    }
    assert topics["b.c"]["since"] == topics["b.c"]["until"] == 1_000_000.5
    table = cubecast("log", "ls", a_log).stdout
    assert "b.c" in table
    assert "1970-01-12" in table


@pytest.mark.parametrize("columns", ["80", None], ids=["terminal", "pipe"])
def test_nothing_in_the_table_is_cut(a_log, monkeypatch, columns):
    if columns is not None:
        monkeypatch.setattr(screen.output, "width", int(columns))
    table = cubecast("log", "ls", a_log).stdout
    assert "1970-01-12 13:46:40" in table and "…" not in table


def test_names_of_topics_are_no_markup(tmp_path):
    async def write() -> None:
        store = await Store.open(tmp_path / "data")
        store.append("a[/b]", MessageId(7, 2, 11), [seal("\x9b2J\u202e")], 1.0)
        await store.close()

    run(write())
    assert "a[/b]" in cubecast("log", "ls", tmp_path / "data").stdout
    (line,) = cubecast("log", "export", tmp_path / "data").stdout.splitlines()
    assert line.isprintable() and json.loads(line)["data"] == "\x9b2J\u202e"


def test_export_gives_every_message_as_it_was_published(a_log):
    done = cubecast("log", "export", a_log, "--topic", "b.>")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [1, 2, 3, 4]
    assert [line["counter"] for line in lines] == [11, 12, 13, 14]
    assert lines[0]["data"] == "text"
    assert lines[1]["data"] == {"x": 1}
    assert lines[1]["headers"] == {"h": "v"}
    assert base64.b64decode(lines[2]["base64"]) == b"\x00\xff"
    assert base64.b64decode(lines[3]["base64"]) == b"\xc1garbled"
    assert len(cubecast("log", "export", a_log).stdout.splitlines()) == 24


def test_export_as_parquet(a_log, tmp_path):
    assert cubecast("log", "export", a_log, "--parquet", tmp_path / "log.parquet").exit_code == 0
    table = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert [(row["topic"], row["offset"]) for row in table] == [("a", n) for n in range(1, 21)] + [
        ("b.c", n) for n in range(1, 5)
    ]
    assert table[-1]["payload"] == b"\xc1garbled"


def test_check_finds_nothing_wrong_beside_a_running_node(a_log):
    async def story() -> None:
        store = await Store.open(a_log)
        await fill(store, "later", 3)
        report = json.loads(cubecast("log", "check", a_log, "--json").stdout)
        assert report["problems"] == []
        assert [one["topic"] for one in report["topics"]] == ["a", "b.c", "later"]
        await store.close()

    run(story())
    done = cubecast("log", "check", a_log)
    assert done.exit_code == 0 and "36 messages, and each is as it was written" in done.stdout


def test_damage_is_named_with_file_and_place(a_log):
    segment = segment_path(a_log, 1)
    flip(segment, segment.read_bytes().index(b"m1.3"))
    done = cubecast("log", "check", a_log)
    assert done.exit_code == 1
    assert "log.00000001.segment: topic a, offsets 5 to 8: the frame at" in done.stderr
    done = cubecast("log", "export", a_log, "--topic", "a")
    assert done.exit_code == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("offset") for line in lines] == [1, 2, 3, 4, None, *range(9, 21)]
    assert lines[4]["damaged"] | {"why": ""} == {"first": 5, "last": 8, "why": ""}


@pytest.mark.parametrize("command", ["ls", "export", "check"])
def test_without_a_log_there_is_one_clear_line(tmp_path, command):
    done = cubecast("log", command, tmp_path)
    assert done.exit_code == 2
    assert done.stderr == f"cubecast: {tmp_path} holds no log: there is no log.index\n"
