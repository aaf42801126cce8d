"""A sweep as data: which parameter values, how many runs of each, the seed of every single run; from a TOML file, or
from an experiment that has a name.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from itertools import product
from pathlib import Path
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


# Where a sweep comes from: a TOML file, or an experiment that has a name.

NAMED: dict[str, str] = {
    "causal-aggregation": "cubecast.experiments.causal_aggregation.reproduce:CHAPTER",
    "causal-aggregation-readings": "cubecast.experiments.causal_aggregation.reproduce:ALL_READINGS",
    "vcube-ps-publishers": "cubecast.experiments.vcube_ps.publishers:PUBLISHERS",
    "vcube-ps-publishers-large": "cubecast.experiments.vcube_ps.publishers:PUBLISHERS_LARGE",
    "vcube-ps-subscribers": "cubecast.experiments.vcube_ps.publishers:SUBSCRIBERS",
    "vcube-ps-subscriber-share": "cubecast.experiments.vcube_ps.publishers:SUBSCRIBER_SHARE",
}
"""Name → module:attribute. Loaded when asked for, so that listing the names imports nothing."""

_TABLES = ("sweep", "parameters", "grid", "points")
_SWEEP_KEYS: dict[str, type] = {"name": str, "runs": int, "seed": int, "point": str, "keep_traces": bool}


def find_sweep(text: str) -> Sweep:
    """The sweep a user names: an experiment of ours, or a TOML file."""
    if text in NAMED:
        module, _, attribute = NAMED[text].partition(":")
        sweep: Sweep = getattr(import_module(module), attribute)
        return sweep
    path = Path(text)
    if path.suffix != ".toml" and not path.exists():
        raise BadInput(f"there is no sweep {text!r}; there are {', '.join(NAMED)}, or name a .toml file")
    return read_sweep(path)


def read_sweep(path: Path) -> Sweep:
    """The sweep a TOML file describes."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    try:
        return _sweep_of(data, path.stem)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _sweep_of(data: Mapping[str, Any], default_name: str) -> Sweep:
    for name in data:
        if name not in _TABLES:
            raise BadInput(f"unknown table [{name}]; there are {', '.join(_TABLES)}")
    head = {"name": default_name, **_table(data, "sweep")}
    for name, value in head.items():
        kind = _SWEEP_KEYS.get(name)
        if kind is None:
            raise BadInput(f"[sweep] has no {name!r}; it has {', '.join(_SWEEP_KEYS)}")
        if type(value) is not kind:
            raise BadInput(f"[sweep] {name} must be {_called(kind)}, not {value!r}")
    points = data.get("points", [])
    if not isinstance(points, list) or not all(isinstance(one, dict) for one in points):
        raise BadInput("points must be written as [[points]] tables")
    grid = dict(_flat(_table(data, "grid")))
    for name, values in grid.items():
        if not isinstance(values, list):
            raise BadInput(f"[grid] {name} must be a list of values, not {values!r}")
    return Sweep(
        **head,
        grid={name: [_value(name, one) for one in values] for name, values in grid.items()},
        points=[_parameters(one) for one in points],
        parameters=_parameters(_table(data, "parameters")),
    )


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise BadInput(f"{name} must be a table, written [{name}]")
    return table


def _parameters(table: Mapping[str, Any]) -> Parameters:
    return {name: _value(name, value) for name, value in _flat(table)}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`settings.brokers = 32` is one parameter with a dot in its name, however the file writes it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(name: str, value: Any) -> Value:
    if not isinstance(value, str | int | float | bool):
        raise BadInput(f"{name} must be text, a number or true/false, not {value!r}")
    return value


def _called(kind: type) -> str:
    return {str: "text", int: "a whole number", bool: "true or false"}[kind]
