"""Runs the points of an experiment: one process per core, or as Spark tasks; and keeps what is done, to go on later."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias

from cubecast.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CPU_SECONDS = "cpu_seconds"
"""In figures: what computing them took."""
SIMULATED = ("ids.py", "errors.py", "protocol", "sim", "wire", "trace", "check")
"""What the figures of every experiment may depend on."""

TASKS_PER_CORE = 8
"""That Spark is given at a time."""

Point: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = dict[str, Any]
PointFunction: TypeAlias = Callable[[Point], Figures]
Runner: TypeAlias = Callable[[PointFunction, Sequence[Point]], Iterator[Figures]]
"""(function, points) → their figures, in the order of the points."""


def in_processes(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
    with ProcessPoolExecutor(min(len(points), os.cpu_count() or 1)) as pool:
        yield from pool.map(function, points)


def here(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
    return map(function, points)


def on_spark(session: "SparkSession") -> Runner:
    """A task for each point, some per core at a time: what is done can be kept before the rest is."""

    def run(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
        context = session.sparkContext
        at_once = TASKS_PER_CORE * context.defaultParallelism
        for first in range(0, len(points), at_once):
            some = points[first : first + at_once]
            yield from context.parallelize(some, len(some)).map(function).collect()

    return run


def kept(runner: Runner, directory: Path) -> Runner:
    """Figures that the same sources computed for the same point before are read; others are run and written down."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{directory} cannot be written: {error.strerror}") from None

    def run(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
        places = [directory / f"{_key(function, point)}.json" for point in points]
        known = [_read(file) for file in places]
        missing = [point for point, figures in zip(points, known, strict=True) if figures is None]
        fresh = runner(function, missing) if missing else iter(())
        for file, figures in zip(places, known, strict=True):
            if figures is None:
                figures = next(fresh)
                _write(file, figures)
            yield figures

    return run


@dataclass(frozen=True)
class Timed:
    """The function, whose figures say what they cost."""

    function: PointFunction

    def __call__(self, point: Point) -> Figures:
        begun = process_time()
        figures = self.function(point)
        return figures | {CPU_SECONDS: process_time() - begun}


def name_of(function: PointFunction) -> str:
    inner = function.function if isinstance(function, Timed) else function
    return f"{inner.__module__}.{inner.__qualname__}"


def _key(function: PointFunction, point: Point) -> str:
    described, name = json.dumps(point, sort_keys=True, default=repr), name_of(function)
    return blake2b(f"{_sources(_package(name))} {name} {described}".encode(), digest_size=16).hexdigest()


def _package(name: str) -> str:
    """The folder of the experiment that a point function belongs to; its own modules are what it may differ by."""
    package = name.rpartition(".")[0].rpartition(".")[0]
    return package.removeprefix("cubecast.").replace(".", "/") if package.startswith("cubecast.") else ""


@cache
def _sources(package: str) -> str:
    """Other sources may give other figures: those of the experiment, and of everything that simulates and judges."""
    root, digest = Path(str(files("cubecast"))), blake2b(digest_size=16)
    for room in (*SIMULATED, *([package] if package else [])):
        place = root / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(file: Path) -> Figures | None:
    try:
        figures: Figures = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return figures


def _write(file: Path, figures: Figures) -> None:
    """Whole or not at all; what JSON would change is computed again rather than kept."""
    text = json.dumps(figures)
    if json.loads(text) == _as_lists(figures):
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(text)
        unfinished.replace(file)


def _as_lists(value: Any) -> Any:
    """Tuples as lists: that is all JSON may change."""
    if isinstance(value, dict):
        return {key: _as_lists(one) for key, one in value.items()}
    return [_as_lists(one) for one in value] if isinstance(value, (list, tuple)) else value
