"""A sweep as data: which parameter values, how many runs of each, and the seed of every single run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from typing import Any, TypeAlias

from cubecast.errors import BadInput

Value: TypeAlias = str | int | float | bool
Parameters: TypeAlias = dict[str, Value]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SEED_BITS = 48  # exact in JSON readers that know only doubles


@dataclass(frozen=True)
class Point:
    """One run of one combination of parameter values."""

    combination: str
    """Digest of the parameters: the runs of a combination share it."""
    run: int
    parameters: Parameters
    seed: int

    @property
    def id(self) -> str:
        return point_id(self.combination, self.run)

    @property
    def label(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{values} run {self.run}"


@dataclass(frozen=True)
class Sweep:
    """`parameters` hold for all points, `grid` lists are multiplied with each other and with each of `points`."""

    name: str
    grid: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    points: Sequence[Parameters] = ()
    parameters: Parameters = field(default_factory=dict)
    runs: int = 1
    seed: int = 1
    point: str = "sim"
    keep_traces: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"a sweep's name is letters, digits, '.', '_' and '-', not {self.name!r}")
        if self.runs < 1:
            raise BadInput(f"a sweep needs at least 1 run of each point, not {self.runs}")
        if not self.grid and not self.points:
            raise BadInput(f"sweep {self.name} has nothing to vary: give a [grid] or [[points]]")
        for name, values in self.grid.items():
            if not values:
                raise BadInput(f"the grid of sweep {self.name} has no values for {name}")
        self._refuse_double_names()

    def _refuse_double_names(self) -> None:
        listed = {name for point in self.points for name in point}
        for name in self.parameters.keys() | self.grid.keys() | listed:
            if name == "seed":
                raise BadInput("seed is derived for every point; choose the sweep's own seed in [sweep] instead")
            if (name in self.parameters) + (name in self.grid) + (name in listed) > 1:
                raise BadInput(f"{name} is given twice: it belongs into one of [parameters], [grid] and [[points]]")

    def combinations(self) -> Iterator[Parameters]:
        """Every combination of parameter values, the last name of the grid varying fastest."""
        for point in self.points or ({},):
            for values in product(*self.grid.values()):
                yield {**self.parameters, **point, **dict(zip(self.grid, values, strict=True))}

    def varied(self) -> list[str]:
        """The names of the parameters that differ between points."""
        listed = dict.fromkeys(name for point in self.points for name in point)
        several = [name for name, values in self.grid.items() if len(values) > 1]
        return [*listed, *several]

    def expand(self) -> list[Point]:
        """All points of the sweep, all distinct."""
        seen: set[str] = set()
        found = []
        for parameters in self.combinations():
            digest = digest_of(parameters)
            if digest in seen:
                raise BadInput(f"sweep {self.name} holds the point {canonical(parameters)} twice")
            seen.add(digest)
            found += [Point(digest, run, parameters, self.seed_of(digest, run)) for run in range(self.runs)]
        return found

    def seed_of(self, combination: str, run: int) -> int:
        """From the sweep and the point alone: neither order, attempt nor time has a say."""
        text = f"{self.name}/{self.seed}/{point_id(combination, run)}"
        return int.from_bytes(blake2b(text.encode(), digest_size=_SEED_BITS // 8).digest())

    def identity(self) -> dict[str, Any]:
        """What must be equal for results to belong together. More runs of the same points do belong together."""
        points = "\n".join(sorted(canonical(parameters) for parameters in self.combinations()))
        return {
            "name": self.name,
            "seed": self.seed,
            "point": self.point,
            "keep_traces": self.keep_traces,
            "points": blake2b(points.encode(), digest_size=8).hexdigest(),
        }


def point_id(combination: str, run: int) -> str:
    return f"{combination}-{run:04d}"


def canonical(parameters: Parameters) -> str:
    return json.dumps(parameters, sort_keys=True)


def digest_of(parameters: Parameters) -> str:
    return blake2b(canonical(parameters).encode(), digest_size=6).hexdigest()
