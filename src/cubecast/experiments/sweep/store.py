"""A sweep's directory: who it belongs to, one file per finished point, what is running now; and all of it as one
Parquet table.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast import __version__
from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters, Point, Sweep

FORMAT = 1
_TEMPORARY = ".part"


@dataclass(frozen=True)
class Running:
    """A point some worker has begun and not finished."""

    point: str
    since: float
    worker: str


@dataclass(frozen=True)
class SweepStore:
    directory: Path

    @property
    def results(self) -> Path:
        return self.directory / "results.parquet"

    def trace_of(self, point: str) -> Path:
        return self.directory / "traces" / point

    def open(self, sweep: Sweep) -> None:
        """Make the directory this sweep's own, or take it up again; refuse one that is not."""
        manifest = self.directory / "sweep.json"
        mine = {"format": FORMAT, "code_version": __version__, **sweep.identity()}
        if manifest.exists():
            self._compare(manifest, mine)
        elif self.directory.exists() and (not self.directory.is_dir() or any(self.directory.iterdir())):
            raise BadInput(f"{self.directory} exists and holds no sweep; name another directory with --out")
        try:
            for name in ("points", "running", "traces"):
                (self.directory / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.directory} cannot be written: {error.strerror}") from None
        write_atomically(manifest, json.dumps(mine, indent=2) + "\n")
        self._sweep_up()

    def _compare(self, manifest: Path, mine: dict[str, Any]) -> None:
        try:
            theirs = json.loads(manifest.read_text())
        except ValueError:
            raise BadInput(f"{manifest} is damaged; name another directory with --out") from None
        for name, value in mine.items():
            if theirs.get(name) != value:
                raise BadInput(
                    f"{self.directory} holds another sweep ({name} is {theirs.get(name)!r} there, {value!r} here); "
                    "name another directory with --out"
                )

    def _sweep_up(self) -> None:
        """What an interrupted sweep left half done."""
        for mark in (self.directory / "running").iterdir():
            mark.unlink(missing_ok=True)
        for leftover in self.directory.glob(f"*/*{_TEMPORARY}"):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)

    def begin(self, point: Point, worker: str) -> None:
        mark = {"point": point.id, "since": time.time(), "worker": worker}
        write_atomically(self.directory / "running" / f"{point.id}.json", json.dumps(mark))

    def finish(self, point: Point, result: dict[str, Any]) -> None:
        write_atomically(self._file_of(point.id), json.dumps(result, default=_plain))
        (self.directory / "running" / f"{point.id}.json").unlink(missing_ok=True)

    def keep_trace(self, point: str, temporary: Path) -> None:
        final = self.trace_of(point)
        if final.exists():
            # An attempt that was lost after its trace and before its result: the same trace, written again.
            shutil.rmtree(final)
        temporary.replace(final)

    def temporary_trace(self, point: str) -> Path:
        return temporary_name(self.trace_of(point))

    def is_finished(self, point: str) -> bool:
        return self._file_of(point).exists()

    def finished(self) -> set[str]:
        return {path.stem for path in (self.directory / "points").iterdir() if path.suffix == ".json"}

    def running(self) -> list[Running]:
        """Longest first. Marks vanish while they are read; that is no error."""
        found = []
        for mark in (self.directory / "running").glob("*.json"):
            try:
                found.append(Running(**json.loads(mark.read_text())))
            except FileNotFoundError:
                continue
        return sorted(found, key=lambda one: one.since)

    def read(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        """The results of these points, all finished, in this order."""
        return [json.loads(self._file_of(point.id).read_text()) for point in points]

    def _file_of(self, point: str) -> Path:
        return self.directory / "points" / f"{point}.json"


def temporary_name(path: Path) -> Path:
    """Of this process alone: two attempts at a point never write the same file."""
    return path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")


def write_atomically(path: Path, text: str) -> None:
    temporary = temporary_name(path)
    temporary.write_text(text)
    temporary.replace(path)


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a point's figures hold a {type(value).__name__}, which is not plain data")


# From finished points to one Parquet table: parameters, figures, timing, a row per point; and means over the runs.

TIMING = ("started", "seconds", "cpu_seconds", "attempt", "worker", "wall_seconds", "events_per_second")
"""Columns that differ between two executions of the same sweep; all others do not."""
ABOUT = b"cubecast.sweep"


def row_of(sweep: str, parameters: Parameters, result: Mapping[str, Any]) -> dict[str, Any]:
    """One point, flat. A figure that has the name of a parameter is called measured_…"""
    head = {"sweep": sweep, **{name: result[name] for name in ("id", "run", "seed", "status", "error")}}
    given = {column(name): value for name, value in parameters.items()}
    taken = head.keys() | given.keys() | result["timing"].keys()
    figures = {f"measured_{name}" if name in taken else name: v for name, v in flat(result["figures"])}
    return {**head, **given, **figures, **result["timing"]}


def column(name: str) -> str:
    """Dots would have to be quoted in every query."""
    return name.replace(".", "_")


def flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{column(name)}_")
        else:
            yield f"{prefix}{column(name)}", value


@dataclass(frozen=True)
class About:
    """What the table says of itself, in its Parquet metadata: enough to summarise it without the sweep's definition."""

    sweep: str
    seed: int
    varied: list[str]
    headline: list[str]


def write_results(rows: Sequence[Mapping[str, Any]], path: Path, about: About) -> None:
    """In one step, with null where a point has no such column."""
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: _array([row.get(name) for row in rows]) for name in names})
    temporary = temporary_name(path)
    pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(asdict(about))}), temporary)
    temporary.replace(path)


def read_results(path: Path) -> tuple[About, list[dict[str, Any]]]:
    """A table that `write_results` wrote, and nothing else."""
    try:
        table = pq.read_table(path)
        about = About(**json.loads(table.schema.metadata[ABOUT]))
    except (OSError, pa.ArrowException, TypeError, KeyError, ValueError):
        raise BadInput(f"{path} is not the result of a sweep") from None
    return about, table.to_pylist()


def _array(values: list[Any]) -> pa.Array:
    """Whole and broken numbers together are doubles; values that have no common type become JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array(values, pa.float64())
    try:
        return pa.array(values, pa.string() if not kinds else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())


def means(rows: Sequence[Mapping[str, Any]], by: Sequence[str], of: Sequence[str]) -> list[dict[str, Any]]:
    """For each combination of the columns `by`, in order of appearance: runs, failures, and the means of `of`."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return [
        {
            **dict(zip(by, key, strict=True)),
            "runs": len(group),
            "errors": sum(row["status"] != "ok" for row in group),
            **{name: _mean([row[name] for row in group if name in row]) for name in of},
        }
        for key, group in groups.items()
    ]


def _mean(values: Sequence[Any]) -> float | None:
    numbers = [value for value in values if isinstance(value, int | float)]
    return fmean(numbers) if numbers else None
