"""Trace files as one frame of events in the trace's own columns, and the headers beside them."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cubecast.errors import TraceError
from cubecast.pipeline.layout import file_footer
from cubecast.pipeline.metrics.journeys import is_named
from cubecast.pipeline.staging import Run
from cubecast.trace.schema import COLUMN_NAMES, COLUMNS, CONTENTS, LISTS, MESSAGE_IDS, MOST_COUNTED, NODE_IDS, RUN_FILE

_TRANSMISSION = ("transmission_time", "transmission")


class Header(NamedTuple):
    run: str
    protocol: str
    seed: int | None
    clock_unit: str
    setting: str
    """Protocol, nodes and parameters as text: equal for runs that differ only in their seed."""
    transmission_time: float | None
    """Service time of a node's output queue, if the run had such a thing."""
    queued_control: bool = True
    """Whether control packets wait in that queue too."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def header_of(info: Mapping[str, Any]) -> Header:
    """From the content of `run.json`."""
    parameters = {key: value for key, value in dict(info.get("parameters") or {}).items() if key != "seed"}
    setting = {"protocol": info["protocol"], "nodes": info.get("nodes"), **parameters}
    return Header(
        run=info["run"],
        protocol=info["protocol"],
        seed=info.get("seed"),
        clock_unit=info.get("clock_unit") or "",
        setting=json.dumps(setting, sort_keys=True, default=str),
        transmission_time=_transmission_time(parameters),
        queued_control=parameters.get("queued_control", True) is not False,
    )


def _transmission_time(parameters: Mapping[str, Any]) -> float | None:
    """Stated directly or among the parameters of the network; nothing else is guessed."""
    network = parameters.get("network")
    for place in (parameters, network if isinstance(network, Mapping) else {}):
        for name in _TRANSMISSION:
            if isinstance(value := place.get(name), int | float) and value > 0:
                return float(value)
    return None


_SPARK_TYPES = {
    "string": "string",
    "int32": "int",
    "int64": "bigint",
    "double": "double",
    MESSAGE_IDS: "array<struct<source:bigint,source_incarnation:int,counter:bigint>>",
    CONTENTS: "array<struct<topic:string,source:bigint,source_incarnation:int,counter:bigint>>",
    NODE_IDS: "array<bigint>",
}
ABSENT = "absent"
TRACE_DDL = ", ".join(f"{name} {_SPARK_TYPES[kind]}" for name, kind, _ in COLUMNS)


def read_headers(runs: Sequence[Run]) -> list[Header]:
    """One per run, in their order. Runs of one name are told apart by their directory: `name@directory`."""
    often = Counter(run.name for run in runs)
    headers = [header_of(json.loads((Path(run.directory) / RUN_FILE).read_text())) for run in runs]
    return [
        header._replace(run=f"{run.name}@{run.directory}") if often[run.name] > 1 else header
        for run, header in zip(runs, headers, strict=True)
    ]


def read_events(spark: SparkSession, runs: Sequence[Run], headers: Sequence[Header]) -> DataFrame:
    """All rows, `run` as in `headers`. → the trace's columns"""
    rounds: defaultdict[int, list[tuple[Run, str]]] = defaultdict(list)
    seen: Counter[str] = Counter()
    for run, header in zip(runs, headers, strict=True):
        rounds[seen[run.name]].append((run, header.run))
        seen[run.name] += 1
    return reduce(DataFrame.unionByName, (_read_round(spark, some) for some in rounds.values()))


def _read_round(spark: SparkSession, runs: Sequence[tuple[Run, str]]) -> DataFrame:
    """Runs that all have different names, each renamed to its label."""
    events = _read_files(spark, [path for run, _ in runs for path in run.files])
    renamed = {run.name: label for run, label in runs if run.name != label}
    if renamed:
        labels = F.create_map(*(F.lit(text) for text in chain.from_iterable(renamed.items())))
        events = events.withColumn("run", F.coalesce(F.try_element_at(labels, F.col("run")), F.col("run")))
    return events.select(*COLUMN_NAMES)


def _read_files(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Spark reads a column only as the type it has in the file: files with wider numbers are cast."""
    shapes: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        found = pq.read_schema(path)
        kinds = [_shape(found.field(name).type) if name in found.names else ABSENT for name, _, _ in COLUMNS]
        shapes[" ".join(kinds)].append(path)
    declared = " ".join("list" if kind in LISTS else kind for _, kind, _ in COLUMNS)
    frames = []
    for shape, some in shapes.items():
        if shape == declared:
            frames.append(spark.read.schema(TRACE_DDL).parquet(*some))
        else:
            read = spark.read.parquet(*some)
            have = {name: F.col(name) for name in read.columns}
            if read.schema["messages"].dataType.typeName() in ("integer", "long", "short", "byte"):
                have["messages"] = _counted()
            casts = (have.get(name, F.lit(None)).cast(_SPARK_TYPES[kind]).alias(name) for name, kind, _ in COLUMNS)
            frames.append(read.select(*casts))
    return reduce(DataFrame.unionByName, frames)


def _shape(kind: pa.DataType) -> str:
    return "list" if pa.types.is_list(kind) or pa.types.is_large_list(kind) else str(kind)


def _counted() -> Column:
    """What the packets of an older trace hold: the message that the row names and the next ones of its publisher."""
    more = F.greatest(F.least(F.coalesce("messages", F.lit(1)), F.lit(MOST_COUNTED)), F.lit(1)) - 1
    counters = F.sequence(F.col("counter"), F.col("counter") + more)

    def inside(counter: Column) -> Column:
        names = F.lit(None).cast("string").alias("topic"), F.col("source"), F.col("source_incarnation")
        return F.struct(*names, counter.alias("counter"))

    return F.when(is_named(), F.transform(counters, inside))


def measurable(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs whose files can all be read, and why the others are left out. Raises TraceError when none is left.

    Spark would fail in the middle of a job, with a page of text: the footers are looked at first.
    """
    kept, refused = [], []
    for run in runs:
        wrong = (
            [run.refusal]
            if run.refusal is not None
            else [*filter(None, (_wrong(path, run.version) for path in run.files))]
        )
        refused += wrong[:1]
        kept += [] if wrong else [run]
    if not kept:
        raise TraceError(refused[0])
    return kept, refused


def _wrong(path: str, version: int) -> str | None:
    for row in file_footer(0, "", path, version):
        if row.get("refusal") or row.get("damage"):
            return str(row.get("refusal") or row.get("damage"))
    return None


def require_pages(runs: Sequence[Run]) -> None:
    """Raises TraceError at the first file that cannot be read to its end."""
    for run in runs:
        for path in run.files:
            try:
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        file.read_row_group(group, columns=list(COLUMN_NAMES))
            except (pa.ArrowException, OSError) as error:
                reason = str(error).splitlines()[0]
                told = f"{path} cannot be read to its end ({reason}); the trace was cut short or damaged"
                raise TraceError(told) from None
