"""Finds runs on disk and reads their headers: what is to be judged, before a single row is read.

A directory with a `run.json` is one run; any other directory is searched for such directories below it. The header is
read here and not with the writer's own code: the judge shares the schema with what it judges, nothing else.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from cubecast.errors import BadInput, TraceError
from cubecast.trace.schema import (
    FILE_SUFFIX,
    OLDEST_VERSION,
    PROPERTIES,
    RUN_FILE,
    SCHEMA_VERSION,
    WELL_FORMED,
    is_readable,
)


def require_new(directory: Path) -> None:
    """Asked before a long computation, not after it."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadInput(f"{directory} exists and is not an empty directory; name another one for the results")


CHECKABLE = (*WELL_FORMED, *PROPERTIES)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "protocol"), (str,)),
    "promises": (list,),
    **dict.fromkeys(("nodes", "seed"), (int, NoneType)),
    **dict.fromkeys(("clock_unit", "code_version"), (str, NoneType)),
    "parameters": (dict, NoneType),
}
"""What a header must say, or may leave out."""


@dataclass(frozen=True)
class Run:
    """One run to judge; `index` stands for it in every frame and array of the pipeline."""

    index: int
    name: str
    directory: str
    files: tuple[str, ...]
    promises: tuple[str, ...]
    nodes: int | None
    refusal: str | None = None
    """Why it cannot be judged, found in its header already."""
    version: int = SCHEMA_VERSION
    measured: tuple[str, ...] = ()
    """What is likely and not promised."""


def find_runs(directories: Sequence[Path]) -> list[Run]:
    """Every run in and below these directories, in the order given; one of several that is no trace says why.

    Raises TraceError with one clear line when nothing is left to judge.
    """
    if not directories:
        raise BadInput("name at least one directory with a trace in it")
    places = dict.fromkeys(place for directory in directories for place in _run_directories(directory))
    runs = [_run_at(index, place) for index, place in enumerate(places)]
    if all(run.refusal is not None for run in runs):
        raise TraceError(runs[0].refusal)
    return runs


def checked_properties(runs: Iterable[Run], asked: Sequence[str] | None) -> dict[int, tuple[str, ...]]:
    """What is to be decided for each run, in the schema's order. K0 is always among it."""
    if asked is not None:
        unknown = [name for name in asked if name not in CHECKABLE]
        if unknown:
            raise BadInput(f"there is no property {', '.join(unknown)}; choose from {', '.join(CHECKABLE)}")
    wanted = {run.index: {"K0", *(run.promises if asked is None else asked)} for run in runs}
    return {index: tuple(name for name in CHECKABLE if name in names) for index, names in wanted.items()}


def _run_directories(directory: Path) -> list[Path]:
    if not directory.exists():
        raise TraceError(f"{directory} does not exist; name the directory a trace was written to")
    if not directory.is_dir():
        raise TraceError(f"{directory} is not a directory; name the directory a trace was written to")
    if (directory / RUN_FILE).is_file():
        return [directory.resolve()]
    below = sorted(header.parent.resolve() for header in directory.rglob(RUN_FILE))
    if not below:
        raise TraceError(f"{directory} holds no {RUN_FILE}; it is not a trace, or its writer never started")
    return below


def _read_header(place: Path) -> dict[str, Any]:
    path = place / RUN_FILE
    try:
        header = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise TraceError(f"{path} is not a JSON object")
    return header


def _run_at(index: int, place: Path) -> Run:
    try:
        header = _read_header(place)
        version = header.get("schema_version")
        if not is_readable(version):
            known = f"{OLDEST_VERSION} to {SCHEMA_VERSION}"
            raise TraceError(f"{place} has schema version {version!r}; this program reads versions {known}")
        return _run_of(index, place, header)
    except TraceError as error:
        return Run(index, place.name, str(place), (), (), None, str(error))


def _run_of(index: int, place: Path, header: dict[str, Any]) -> Run:
    for field, kinds in _TYPES.items():
        value = header.get(field)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise TraceError(f"{place / RUN_FILE} lacks `{field}`, or it is of another type: {value!r}")
    name, promises, nodes = header["run"], header["promises"], header.get("nodes")
    unknown = [promise for promise in promises if promise not in CHECKABLE]
    if unknown:
        raise TraceError(f"run {name!r} promises {unknown}, which this version does not know")
    measured = header.get("measured") or ()
    if not isinstance(measured, list | tuple) or not all(isinstance(one, str) for one in measured):
        raise TraceError(f"{place / RUN_FILE} names as `measured` what is no list of properties: {measured!r}")
    files = tuple(str(path) for path in sorted(place.glob(f"*{FILE_SUFFIX}")))
    if not files:
        raise TraceError(f"{place} holds no {FILE_SUFFIX} file; the run wrote no events")
    return Run(
        index,
        name,
        str(place),
        files,
        tuple(promises),
        nodes,
        version=header["schema_version"],
        measured=tuple(measured),
    )
