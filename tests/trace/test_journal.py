"""Journals of live nodes: what a kill leaves is readable, and what was torn is left out."""

import os
from pathlib import Path

import pytest

from cubecast.check import check_directory
from cubecast.errors import TraceError
from cubecast.protocol.families import DEFAULT_PROTOCOL, find
from cubecast.report.journals import collect_journals
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import JournalWriter, collect, events, journals
from cubecast.trace.reader import read_info, read_trace

INFO = RunInfo("r", "cubecast", ("K0", "P1", "P2", "P5", "P7"))


def written(directory: Path, node: int, lines: list[tuple], incarnation: int = 0, instance: str = "aa") -> Path:
    writer = JournalWriter(directory, node, incarnation, instance)
    for line in lines:
        writer.line(*line)
    writer.close()
    (path,) = directory.glob(f"node-{node:05d}-{incarnation:05d}-{instance}*")
    return path


PUBLISHER = [
    ("start", 0.0, 0),
    ("publish", 0.1, "t", 1, 2, []),
    ("acknowledged", 0.2, "t", 2),
    ("quiescent", 0.3),
]
READER = [
    ("start", 0.0, 0),
    ("subscribe", 0.0, "t"),
    ("cut", 0.1, "t", [[0, 0, 0]]),
    ("deliver", 0.1, "t", 0, 0, 1, 2),
]


def test_one_line_per_batch_becomes_one_row_per_message(tmp_path: Path):
    written(tmp_path, 0, PUBLISHER)
    rows = list(events(0, journals(tmp_path)[0]))
    assert [(row.seq, row.kind, row.counter) for row in rows] == [
        (0, "start", None),
        (1, "publish", 1),
        (2, "publish", 2),
        (3, "acknowledged", 1),
        (4, "acknowledged", 2),
        (5, "quiescent", None),
    ]
    assert [row.deps for row in rows[1:3]] == [(), ((0, 0, 1),)]


def test_digests_of_a_batch_belong_to_its_messages_and_older_journals_have_none(tmp_path: Path):
    publisher = [("publish", 0.1, "t", 1, 2, [], [71, 72]) if line[0] == "publish" else line for line in PUBLISHER]
    reader = [("deliver", 0.1, "t", 0, 0, 1, 2, [71, 73]) if line[0] == "deliver" else line for line in READER]
    written(tmp_path / "journals", 0, publisher)
    written(tmp_path / "journals", 1, reader)
    written(tmp_path / "journals", 2, READER)
    collect(tmp_path / "journals", tmp_path / "trace", INFO)
    _, rows = read_trace(tmp_path / "trace")
    told = {(row.node, row.kind, row.counter): row.digest for row in rows if row.kind in ("publish", "deliver")}
    assert told == {
        (0, "publish", 1): 71,
        (0, "publish", 2): 72,
        (1, "deliver", 1): 71,
        (1, "deliver", 2): 73,
        (2, "deliver", 1): None,
        (2, "deliver", 2): None,
    }
    (witness,) = check_directory(tmp_path / "trace", ["P1b"]).witnesses
    assert (witness.node, witness.message) == (1, (0, 0, 2))


def test_a_journal_without_an_end_ends_in_a_crash(tmp_path: Path):
    written(tmp_path / "journals", 0, PUBLISHER)
    written(tmp_path / "journals", 1, READER)
    collect(tmp_path / "journals", tmp_path / "trace", INFO)
    info, rows = read_trace(tmp_path / "trace")
    assert (info.nodes, info.clock_unit) == (2, "s")
    assert [row.kind for row in rows if row.node == 1][-1] == "crash"
    assert check_directory(tmp_path / "trace").to_json()["verdict"] == "VALID"


@pytest.mark.parametrize("kept", range(1, 12))
def test_a_torn_last_line_is_left_out(tmp_path: Path, kept: int):
    path = written(tmp_path, 1, READER)
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    os.truncate(path, last + kept)
    assert [row.kind for row in events(1, [path])] == ["start", "subscribe", "cut", "crash"]


@pytest.mark.parametrize(
    "damage", [b'["publish', b'["poblish"', b'5 \n["publish"', b'[]\n["publish"', b'[[]]\n["publish"']
)
def test_damage_anywhere_else_is_an_error(tmp_path: Path, damage: bytes):
    path = written(tmp_path, 0, PUBLISHER)
    path.write_bytes(path.read_bytes().replace(b'["publish"', damage, 1))
    with pytest.raises(TraceError, match="line 2: this is not a line of a journal"):
        list(events(0, [path]))
    with pytest.raises(TraceError, match="holds no journals"):
        collect(tmp_path / "nothing", tmp_path / "trace", INFO)


def test_a_restarted_node_continues_in_another_file(tmp_path: Path):
    written(tmp_path, 0, PUBLISHER[:-1], instance="ff")
    written(tmp_path, 0, [("start", 1.0, 1), ("quiescent", 2.0)], incarnation=1, instance="bb")
    rows = list(events(0, journals(tmp_path)[0]))
    assert [(row.incarnation, row.seq, row.kind) for row in rows][-3:] == [
        (0, 5, "crash"),
        (1, 0, "start"),
        (1, 1, "quiescent"),
    ]


def lost(directory: Path, node: int, lines: list[tuple], instance: str = "aa") -> None:
    writer = JournalWriter(directory, node, 0, instance)
    for line in lines:
        writer.line(*line)
    writer.flush()
    writer.line("publish", 9.0, "t", 9, 1, [])
    writer.abandon()


HEARD = [*READER, ("deliver", 0.3, "t", 0, 0, 3, 1), ("quiescent", 0.4)]
"""One message more than its publisher could write down."""
REINCARNATED = [*PUBLISHER[:-1], ("stop", 0.3)]
"""The line about the next incarnation did not fit any more."""


@pytest.mark.parametrize(
    "before", [PUBLISHER[:-1], REINCARNATED, [], [*PUBLISHER[:1], ("base", 0.0, {}), *PUBLISHER[1:-1]]]
)
def test_a_lost_journal_is_incomplete_and_nobody_is_blamed(tmp_path: Path, before: list[tuple]):
    lost(tmp_path / "journals", 0, before)
    written(tmp_path / "journals", 1, HEARD)
    collect(tmp_path / "journals", tmp_path / "trace", INFO)
    report = check_directory(tmp_path / "trace").to_json()
    assert report["verdict"] == "UNKNOWN" and report["properties"]["P1"]["verdict"] == "UNKNOWN"
    assert "the log of node 0, incarnation 0, is incomplete" in " ".join(report["unknown_because"])
    info, _ = read_trace(tmp_path / "trace")
    assert info.parameters["lost_journals"] == ["node-00000-00000-aa.lost.jsonl"]


def test_the_same_without_a_loss_is_a_violation(tmp_path: Path):
    written(tmp_path / "journals", 0, PUBLISHER[:-1])
    written(tmp_path / "journals", 1, HEARD)
    collect(tmp_path / "journals", tmp_path / "trace", INFO)
    assert check_directory(tmp_path / "trace").to_json()["properties"]["P1"]["verdict"] == "VIOLATED"


def test_a_removed_journal_leaves_nothing(tmp_path: Path):
    writer = JournalWriter(tmp_path, 0, 0, "aa")
    writer.line("start", 0.0, 0)
    writer.remove()
    assert not list(tmp_path.iterdir())


def test_journals_say_which_protocol_ran_and_those_of_two_are_not_mixed(tmp_path: Path):
    written(tmp_path / "epto", 0, [("run", 0.0, "epto"), *PUBLISHER])
    written(tmp_path / "older", 0, PUBLISHER)
    found = collect_journals(tmp_path / "epto", tmp_path / "trace")
    assert set(found["promises"]) == set(find("epto").promises) and read_info(tmp_path / "trace").protocol == "epto"
    collect_journals(tmp_path / "older", tmp_path / "trace-of-older")
    assert read_info(tmp_path / "trace-of-older").protocol == DEFAULT_PROTOCOL
    written(tmp_path / "epto", 1, [("run", 0.0, "brisa"), *READER])
    with pytest.raises(TraceError, match="journals of brisa and of epto; collect those of one cluster"):
        collect_journals(tmp_path / "epto", tmp_path / "mixed")
