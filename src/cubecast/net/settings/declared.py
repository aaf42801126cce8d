"""Settings that are parameters of the users' protocol: text, default, limits and unit come from its declaration."""

from dataclasses import field
from enum import Enum
from math import inf
from typing import Any

from cubecast.net.settings.fields import Limits
from cubecast.protocol.families import DEFAULT_PROTOCOL, find

_UNITS = {"time": "seconds"}
"""What the driver's unit is in a live node."""


def declared(name: str, *, least: float | None = None, most: float | None = None, alone: bool = True) -> Any:
    """A field of a settings dataclass. A network takes less than the protocol could: `least` and `most` are then given.

    A choice of `on` and `off` is a truth here. `alone`: nothing but the protocol reads it.
    """
    known = find(DEFAULT_PROTOCOL).settings[name]
    if known.above and least is None:
        raise ValueError(f"{name}: say which is the least, because {known.least:g} itself is not allowed")
    low, high = known.least if least is None else least, known.most if most is None else most
    if low < known.least or high > known.most:
        raise ValueError(f"{name}: the declaration allows from {known.least:g} to {known.most:g}")
    default = known.live.value == "on" if isinstance(known.live, Enum) else known.live
    unit = _UNITS.get(known.unit, known.unit)
    limits = Limits(None if low == -inf else low, None if high == inf else high, unit)
    text = f"{known.text[:1].upper()}{known.text[1:]}."
    return field(default=default, metadata={"limits": limits, "text": text, "alone": alone})
