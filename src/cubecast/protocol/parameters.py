"""The parameters of a family: one frozen dataclass whose fields say all there is to say about each.

`parameter(...)` makes such a field: default, default of a live node where that differs, limits, unit and text. A field
made any other way is not a parameter: what the population decides, such as the dimension of a cube.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from math import inf, isfinite
from typing import Any

from cubecast.errors import BadInput

_KEY = "parameter"
_TRUTHS = {"true": True, "false": False, "on": True, "off": False}


@dataclass(frozen=True)
class Parameter:
    """What is known of one parameter."""

    name: str
    text: str
    default: Any
    live: Any
    """The default of a live node."""
    least: float
    most: float
    above: bool
    """`least` itself is not allowed."""
    unit: str
    agree: bool
    """All nodes of a cluster must have the same value."""

    @property
    def kind(self) -> type:
        return type(self.default)

    @property
    def allowed(self) -> str:
        """What it takes, in words."""
        if issubclass(self.kind, Enum):
            return " or ".join(str(one.value) for one in self.kind)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "text"
        noun = "a whole number" if self.kind is int else "a number"
        low = "" if self.least == -inf else f"above {self.least:g}" if self.above else f"from {self.least:g}"
        high = "" if self.most == inf else f" to {self.most:g}" if low else f"up to {self.most:g}"
        on = " on" if low and not high and not self.above else ""
        return f"{noun} {low}{high}{on}".strip()

    def parse(self, text: str) -> Any:
        """The value that a person wrote, or one line about what is wrong with it."""
        try:
            value = _TRUTHS[text] if self.kind is bool else self.kind(text)
        except (ValueError, KeyError):
            raise BadInput(f"{self.name} takes {self.allowed}, not {text!r}") from None
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = value > self.least if self.above else value >= self.least
            if not (low and value <= self.most and isfinite(value)):
                raise BadInput(f"{self.name} takes {self.allowed}, not {value}")


def parameter(
    default: Any,
    text: str,
    *,
    live: Any = None,
    least: float = -inf,
    most: float = inf,
    above: float | None = None,
    unit: str = "",
    agree: bool = False,
) -> Any:
    """A field of a parameters dataclass. Any, so that the field's own type is what counts.

    `unit="time"` is the driver's: u.t. simulated, seconds live.
    """
    low = least if above is None else above
    said = (text, default if live is None else live, low, most, above is not None, unit, agree)
    return field(default=default, metadata={_KEY: said})


def parameters_of(kind: type) -> dict[str, Parameter]:
    """By name, in the order of the fields."""
    found = {}
    for one in fields(kind):
        if _KEY in one.metadata:
            text, live, least, most, above, unit, agree = one.metadata[_KEY]
            found[one.name] = Parameter(one.name, text, one.default, live, least, most, above, unit, agree)
    return found


def check_parameters(chosen: Any) -> None:
    """For `__post_init__`: every parameter within its limits."""
    for name, known in parameters_of(type(chosen)).items():
        known.check(getattr(chosen, name))


def choose(owner: str, kind: type, given: Mapping[str, str], *, live: bool = False) -> dict[str, Any]:
    """The parameters by name, `given` ones changed. `owner` is what an error calls the family."""
    known = parameters_of(kind)
    for name in given:
        if name not in known:
            raise BadInput(f"{owner} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
    defaults = {name: one.live if live else one.default for name, one in known.items()}
    return defaults | {name: known[name].parse(text) for name, text in given.items()}


@dataclass(frozen=True)
class NoParameters:
    """Of a family with nothing to choose."""
