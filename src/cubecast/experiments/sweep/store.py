"""A sweep's directory: who it belongs to, one file per finished point, what is running now.

    sweep.json            the identity of the sweep; another one is refused
    points/ID.json        a finished point, put there in one step; what is here is never run again
    running/ID.json       who works on a point, since when; gone when the point is finished
    traces/ID/            its trace, when traces are kept
    results.parquet       all of it as one table, when everything is finished

Everything is written under a temporary name first. So a directory can be left at any moment and taken up again.
"""

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Point, Sweep

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
