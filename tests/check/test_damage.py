"""Damaged traces: both judges read them the same way, in bounded time, and none of them fails over one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cubecast.check import check_directory
from cubecast.cli import main
from cubecast.errors import TraceError
from cubecast.pipeline.metrics.in_memory.measure import measure_in_memory
from cubecast.pipeline.metrics.measure import measure
from cubecast.pipeline.metrics.source import measurable, read_headers
from cubecast.pipeline.staging import find_runs
from cubecast.pipeline.verify import verify
from cubecast.trace.schema import COLUMN_NAMES, RUN_FILE
from support.agreeing import write_trace
from support.model_traces import ALL_PROMISES, clean_trace

SEED = 11
"""A trace with joins, leaves, gaps and batches."""
HUGE, LOWEST = 2**63 - 1, -(2**63)
Damage = Callable[[Path], None]


def rewritten(path: Path, **columns: Callable[[list[Any], list[str]], pa.Array]) -> None:
    table = pq.read_table(path)
    kinds = table.column("kind").to_pylist()
    for name, change in columns.items():
        values = change(table.column(name).to_pylist(), kinds)
        table = table.set_column(table.column_names.index(name), name, values)
    pq.write_table(table, path)


def files(run: Path) -> list[Path]:
    return sorted(run.glob("*.parquet"))


def value(name: str, new: Any, kind: str | None = None) -> Damage:
    """The first value of a column, in the first row of a kind in the first file that has one, is another."""

    def damage(run: Path) -> None:
        for path in files(run):
            table = pq.read_table(path)
            kinds = table.column("kind").to_pylist()
            where = [place for place, found in enumerate(kinds) if kind in (None, found)]
            if where:
                values = table.column(name).to_pylist()
                values[where[0]] = new
                column = pa.array(values, table.schema.field(name).type)
                pq.write_table(table.set_column(table.column_names.index(name), name, column), path)
                return
        raise AssertionError(f"no {kind} row")

    return damage


def bad_bytes(name: str) -> Damage:
    def damage(run: Path) -> None:
        def spoil(values: list[Any], _: list[str]) -> pa.Array:
            spoiled = [
                None if one is None else b"\xff\xfe" if place == 2 else one.encode() for place, one in enumerate(values)
            ]
            array = pa.array(spoiled, pa.binary())
            return pa.Array.from_buffers(pa.string(), len(array), array.buffers(), array.null_count)

        rewritten(files(run)[0], **{name: spoil})

    return damage


def typed(name: str, kind: pa.DataType) -> Damage:
    def damage(run: Path) -> None:
        for path in files(run):
            table = pq.read_table(path)
            column = table.column(name).cast(kind)
            pq.write_table(table.set_column(table.column_names.index(name), name, column), path)

    return damage


def header(**changes: Any) -> Damage:
    def damage(run: Path) -> None:
        path = run / RUN_FILE
        kept = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({name: one for name, one in kept.items() if one != "left out"}))

    return damage


def file(change: Callable[[bytes], bytes]) -> Damage:
    def damage(run: Path) -> None:
        files(run)[0].write_bytes(change(files(run)[0].read_bytes()))

    return damage


def without(name: str) -> Damage:
    return lambda run: pq.write_table(pq.read_table(files(run)[0]).drop_columns([name]), files(run)[0])


def spoiled_page(run: Path) -> None:
    data = bytearray(files(run)[0].read_bytes())
    place = pq.read_metadata(files(run)[0]).row_group(0).column(COLUMN_NAMES.index("seq")).data_page_offset + 20
    data[place : place + 24] = bytes(24)
    files(run)[0].write_bytes(bytes(data))


WHOLE = {"source": 0, "source_incarnation": 0, "counter": 1}
INSIDE = {"topic": None, **WHOLE}
VARIANTS: dict[str, Damage] = {
    **{f"null {name}": value(name, None) for name in ("node", "incarnation", "seq", "time", "kind")},
    **{f"{name} {new}": value(name, new) for name in ("node", "incarnation") for new in (2**31 - 1, -(2**31))},
    **{f"seq {new}": value("seq", new) for new in (-1, HUGE, LOWEST)},
    **{f"unknown kind {new!r}": value("kind", new) for new in ("", "Deliver", "no such thing")},
    **{
        f"{kind} {name} {new}": value(name, new, kind)
        for kind in ("publish", "deliver", "receive", "acknowledged")
        for name, values in {
            "topic": (None, "", "other"),
            "source": (None, -1, 2**31 - 1),
            "source_incarnation": (None, -1),
            "counter": (None, 0, -1, HUGE, LOWEST),
        }.items()
        for new in values
    },
    **{
        f"receive messages {which}": value("messages", new, "receive")
        for which, new in {
            "null": None,
            "empty": [],
            "null inside": [None],
            "no source": [INSIDE | {"source": None}],
            "no counter": [INSIDE | {"counter": None}],
            "of another topic": [INSIDE | {"topic": "other"}],
            "huge": [INSIDE | {"counter": HUGE}],
            "negative": [INSIDE | {"counter": LOWEST}],
            "a stranger": [INSIDE | {"source": 77}],
        }.items()
    },
    **{f"filter {new!r}": value("filter", new, "subscribe") for new in ("", "price >", "price > 3", "not exists(a)")},
    **{f"attributes {new!r}": value("attributes", new, "publish") for new in ("", "[]", "{", '{"a": 1}', "null")},
    **{
        f"{name} of {kind}: {which}": value(name, new, kind)
        for name, kind in (("deps", "publish"), ("cut", "subscribed"), ("cut", "subscribe"), ("deps", "deliver"))
        for which, new in {
            "empty": [],
            "null inside": [None],
            "no source": [WHOLE | {"source": None}],
            "no counter": [WHOLE, WHOLE | {"counter": None}],
            "huge": [WHOLE | {"counter": HUGE}],
            "negative": [WHOLE | {"counter": LOWEST}],
            "a stranger": [WHOLE | {"source": 77}],
        }.items()
    },
    **{f"{name} is no UTF-8": bad_bytes(name) for name in ("run", "kind", "topic", "detail", "filter", "attributes")},
    **{f"{name} as text": typed(name, pa.string()) for name in ("node", "seq", "counter", "time")},
    **{f"{name} as a double": typed(name, pa.float64()) for name in ("node", "counter", "bytes")},
    **{f"{name} wider": typed(name, pa.int64()) for name in ("incarnation", "bytes")},
    **{f"{name} narrower": typed(name, pa.int32()) for name in ("node", "source")},
    **{f"without {name}": without(name) for name in ("node", "deps", "detail")},
    "cut short": file(lambda data: data[: len(data) // 2]),
    "no footer": file(lambda data: data[:-8]),
    "empty file": file(lambda data: b""),
    "zeros in a page": spoiled_page,
    "a file gone": lambda run: files(run)[0].unlink(),
    "all files gone": lambda run: [path.unlink() for path in files(run)],
    "rows twice": lambda run: shutil.copy(files(run)[0], run / "again.parquet"),
    **{f"nodes {new!r}": header(nodes=new) for new in ("5", 5.5, True, [5], -1, 10**6, None, "left out")},
    **{f"promises {new!r}": header(promises=new) for new in ("P1", None, ["P99"], [7], [["P1"]], {}, "left out")},
    **{f"run {new!r}": header(run=new) for new in (None, 7, "another", "left out")},
    **{f"protocol {new!r}": header(protocol=new) for new in (None, 7, "left out")},
    **{f"schema_version {new!r}": header(schema_version=new) for new in ("1", None, 99, "left out")},
    "a field of tomorrow": header(tomorrow=1),
    "parameters of another type": header(parameters=[]),
    "seed of another type": header(seed="1"),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("damaged")
    whole = write_trace(place / "whole", clean_trace(SEED, total_order=True))
    found = {}
    for number, (name, damage) in enumerate(VARIANTS.items()):
        found[name] = place / f"{number:03d}"
        shutil.copytree(whole, found[name])
        damage(found[name])
    return found


def said_by_the_checker(run: Path) -> dict[str, str] | str:
    try:
        report = check_directory(run, ALL_PROMISES)
    except TraceError:
        return "REFUSED"
    return {name: str(verdict) for name, verdict in report.verdicts.items()}


def said_by_verify(run: Path) -> dict[str, str] | str:
    try:
        (found,) = verify(None, [run], ALL_PROMISES).runs
    except TraceError:
        return "REFUSED"
    return "REFUSED" if found.refused else {name: one.verdict for name, one in found.properties.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_both_judges_say_the_same(damaged, name: str):
    assert said_by_the_checker(damaged[name]) == said_by_verify(damaged[name])


def test_spark_says_what_this_process_says(spark, damaged):
    """All in one call: what is wrong with one run concerns no other."""
    runs = [run for name, run in damaged.items() if name != "run 'another'"][::4]
    here, there = verify(None, runs, ALL_PROMISES), verify(spark, runs, ALL_PROMISES)
    names = {str(run): name for name, run in damaged.items()}
    differing = [
        (names[one.run.directory], one.verdict, other.verdict, one.refused, other.unknown_because)
        for one, other in zip(here.runs, there.runs, strict=True)
        if one.verdict != other.verdict
    ]
    assert not differing
    assert {one.verdict for one in here.runs} >= {"REFUSED", "UNKNOWN", "VIOLATED", "VALID"}


@pytest.mark.parametrize("name", VARIANTS)
def test_metrics_measure_or_say_in_one_line_why_not(damaged, name: str):
    try:
        runs, _ = measurable(find_runs([damaged[name]]))
        measure_in_memory(runs, read_headers(runs))
    except TraceError as error:
        assert "\n" not in str(error)


@pytest.mark.slow
def test_metrics_on_spark_read_wider_numbers_and_name_what_they_cannot_read(spark, damaged):
    assert measure(spark, [damaged["source narrower"]]).runs[0]["deliveries"] > 0
    with pytest.raises(TraceError, match="cannot be read to its end") as refused:
        measure(spark, [damaged["zeros in a page"]])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("command", ["check", "verify", "metrics"])
def test_a_mistake_of_ours_is_no_verdict(damaged, monkeypatch, command: str):
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("cubecast.check.check_directory", fail)
    monkeypatch.setattr("cubecast.report.small_or_spark.find_runs", fail)
    done = CliRunner().invoke(main, [command, str(damaged["null time"])])
    assert done.exit_code == 70
    assert "a mistake in cubecast" in done.stderr
