"""What a point of a sweep runs. The default is one simulation; an experiment can plug in its own function."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from cubecast.errors import BadInput
from cubecast.experiments.sweep.grid import Parameters

Figures: TypeAlias = dict[str, Any]

KINDS: dict[str, str] = {"sim": "cubecast.experiments.sweep.simulation:SIMULATION"}
"""Short names; any other kind is written module:attribute."""


def _as_given(parameters: Parameters) -> Parameters:
    return parameters


@dataclass(frozen=True)
class PointKind:
    """`run` gets the point's parameters and its `seed`, and returns figures, nested dictionaries allowed."""

    run: Callable[[Parameters], Figures]
    check: Callable[[Parameters], Parameters] = _as_given
    """Raises BadInput before anything runs; returns the complete parameters, defaults included, for the results."""
    trace: Callable[[Parameters, Path], Figures] | None = None
    """As `run`, and writes the trace to a new directory."""
    cost: Callable[[Parameters], float] | None = None
    """Rough seconds of a run: short ones share a Spark task, long ones go first."""
    headline: tuple[str, ...] = ()
    """Columns of the results that a summary shows."""


@cache
def find_kind(name: str) -> PointKind:
    """Once per process: a Python worker keeps what it imported and compiled from one task to the next."""
    module_name, colon, attribute = KINDS.get(name, name).partition(":")
    if not colon:
        raise BadInput(f"there is no kind of point {name!r}; there are {', '.join(KINDS)}, or write module:function")
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"the kind of point {name!r} cannot be loaded: {error}") from None
    if isinstance(found, PointKind):
        return found
    if not callable(found):
        raise BadInput(f"the kind of point {name!r} is neither a function nor a PointKind")
    return PointKind(found)
