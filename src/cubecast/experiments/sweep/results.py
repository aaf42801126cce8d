"""From finished points to one Parquet table: parameters, figures, timing, a row per point; and means over the runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters
from cubecast.experiments.sweep.store import temporary_name

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
