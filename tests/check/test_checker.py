"""What the checker answers and refuses, apart from the predicates themselves."""

import json

import pytest

from cubecast.check import Verdict, check_directory, check_trace
from cubecast.errors import BadInput, TraceError
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import RUN_FILE
from cubecast.trace.writer import TraceWriter
from support.histories import parse_rows
from support.model_traces import clean_trace

BROKEN = """
node 0
publish a 0:1
publish a 0:2
quiescent
node 1
subscribe a
deliver a 0:2
deliver a 0:1
quiescent
"""


def trace_of(text: str, *promises: str, nodes: int | None = None) -> Trace:
    return Trace(RunInfo("r", "by hand", promises, nodes=nodes), parse_rows(text))


def write(trace: Trace, directory):
    with TraceWriter(directory, trace.info) as writer:
        writer.write_all(trace.events)
    return directory


def test_only_what_was_promised_is_judged():
    report = check_trace(trace_of(BROKEN, "P1", "P2"))
    assert report.verdict is Verdict.VALID
    assert list(report.verdicts) == ["K0", "P1", "P2"]


def test_or_what_was_asked_for():
    report = check_trace(trace_of(BROKEN, "P1"), ["P5"])
    assert report.verdicts == {"K0": Verdict.VALID, "P5": Verdict.VIOLATED}


def test_an_unknown_property_is_refused():
    with pytest.raises(BadInput, match="no property P99; choose from K0"):
        check_trace(trace_of(BROKEN), ["P5", "P99"])


def test_json_has_the_promised_shape():
    report = check_trace(trace_of(BROKEN, "P5", "P2"))
    assert json.loads(json.dumps(report.to_json())) == {
        "verdict": "VIOLATED",
        "properties": {
            "K0": {"verdict": "VALID", "violations": 0},
            "P2": {"verdict": "VALID", "violations": 0},
            "P5": {"verdict": "VIOLATED", "violations": 1},
        },
        "witnesses": [
            {
                "run": "r",
                "property": "P5",
                "node": 1,
                "incarnation": 0,
                "topic": "a",
                "subscription": 0,
                "seq": 2,
                "message": [0, 0, 1],
                "other": [0, 0, 2],
                "other_seq": 1,
                "reason": "(0, 0, 1) is delivered after (0, 0, 2)",
            }
        ],
        "deliveries": 2,
        "messages": 2,
        "runs": 1,
        "measured": {},
        "premises": {"P2": 2, "P5": 1},
        "vacuous": [],
        "unknown_because": [],
    }


def test_at_most_ten_witnesses_smallest_first():
    rows = "\n".join(["node 0", "subscribe a", *["deliver a 7:1"] * 15, "quiescent"])
    report = check_trace(trace_of(rows, "P2", "P1"))
    assert len(report.witnesses) == 10
    assert [(w.seq, w.promise) for w in report.witnesses[:3]] == [(1, "P1"), (2, "P1"), (2, "P2")]
    assert report.to_json()["properties"]["P2"]["violations"] == 14


def test_a_trace_that_contradicts_itself_is_not_judged_further():
    report = check_trace(trace_of(BROKEN.replace("publish a 0:1", "publish a 0:7"), "P5"))
    assert report.verdicts == {"K0": Verdict.VIOLATED, "P5": Verdict.UNKNOWN}
    assert report.verdict is Verdict.VIOLATED


def test_no_rows_no_verdict():
    report = check_trace(trace_of("", "P1"))
    assert report.verdict is Verdict.UNKNOWN
    assert report.unknown_because == ("the trace has no rows",)


def test_unknown_says_why():
    report = check_trace(trace_of("node 3.1\nstart", "P1", nodes=2))
    assert report.unknown_because == (
        "rows of 1 nodes instead of 2",
        "the log of node 3, incarnation 1, is incomplete after 1 rows",
    )


def test_a_directory_is_judged_like_the_trace_in_it(tmp_path):
    trace = clean_trace(3)
    assert check_directory(write(trace, tmp_path / "t")).to_json() == check_trace(trace).to_json()


def test_a_truncated_file_is_unknown(tmp_path):
    directory = write(clean_trace(3), tmp_path / "t")
    path = min(directory.glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-100])
    report = check_directory(directory)
    assert set(report.verdicts.values()) == {Verdict.UNKNOWN}
    assert path.name in report.unknown_because[0]


def test_a_missing_file_is_unknown(tmp_path):
    directory = write(clean_trace(3), tmp_path / "t")
    min(directory.glob("*.parquet")).unlink()
    assert check_directory(directory).verdict is Verdict.UNKNOWN


def test_a_header_without_any_file_is_no_trace(tmp_path):
    directory = write(clean_trace(3), tmp_path / "t")
    for path in directory.glob("*.parquet"):
        path.unlink()
    with pytest.raises(TraceError, match="wrote no events"):
        check_directory(directory)


def test_what_is_not_a_trace_is_an_error(tmp_path):
    with pytest.raises(TraceError, match="not a directory"):
        check_directory(tmp_path / "nowhere")
    with pytest.raises(TraceError, match=f"holds no {RUN_FILE}"):
        check_directory(tmp_path)


def test_another_schema_version_is_an_error(tmp_path):
    directory = write(clean_trace(3), tmp_path / "t")
    header = directory / RUN_FILE
    header.write_text(header.read_text().replace('"schema_version": 3', '"schema_version": 4'))
    with pytest.raises(TraceError, match="schema version 4"):
        check_directory(directory)


def test_a_hundred_thousand_deliveries_are_no_problem():
    """64 nodes, one topic, everybody delivers everything: frontiers keep this linear."""
    rows: dict[int, list[tuple]] = {node: [("subscribe",), ("subscribed",)] for node in range(64)}
    messages = 1600
    for number in range(messages):
        source, counter = number % 64, number // 64 + 1
        rows[source].append(("publish", source, counter))
        for log in rows.values():
            log.append(("deliver", source, counter))
    events = []
    for node, log in rows.items():
        for seq, (kind, *message) in enumerate([*log, ("quiescent",)]):
            source, counter = message or (None, None)
            topic = None if kind == "quiescent" else "a"
            events.append(Event(node, 0, seq, 0.0, kind, topic, source, None if source is None else 0, counter))
    report = check_trace(Trace(RunInfo("big", "by hand", ("P3", "P4", "P5", "P6", "P7", "P8"), nodes=64), events))
    assert report.verdict is Verdict.VALID
    assert report.deliveries == 64 * messages
