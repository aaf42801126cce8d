"""Where a sweep comes from: a TOML file, or an experiment that has a name."""

import tomllib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters, Sweep, Value

NAMED: dict[str, str] = {
    "causal-aggregation": "cubecast.experiments.causal_aggregation.sweeps:CHAPTER",
    "causal-aggregation-readings": "cubecast.experiments.causal_aggregation.sweeps:ALL_READINGS",
    "vcube-ps-publishers": "cubecast.experiments.vcube_ps_sweeps:PUBLISHERS",
    "vcube-ps-publishers-large": "cubecast.experiments.vcube_ps_sweeps:PUBLISHERS_LARGE",
    "vcube-ps-subscribers": "cubecast.experiments.vcube_ps_sweeps:SUBSCRIBERS",
    "vcube-ps-subscriber-share": "cubecast.experiments.vcube_ps_sweeps:SUBSCRIBER_SHARE",
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
