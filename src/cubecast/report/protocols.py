"""The protocols and their parameters, for people."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from cubecast.protocol.family import Family

_UNITS = {"time": "u.t.; live seconds"}


def protocols_table(families: Sequence[Family]) -> Table:
    table = Table("protocol", "what it is", "promises", "besides, while no process joins or leaves", "measured")
    for one in families:
        lists = (one.promises, one.static_promises, one.measured)
        table.add_row(one.name, one.summary, *map(" ".join, lists))
    return table


def parameters_table(family: Family) -> Table:
    table = Table("parameter", "default", "live", "takes", "unit", "meaning")
    for one in family.settings.values():
        unit = _UNITS.get(one.unit, one.unit)
        table.add_row(one.name, _shown(one.default), _shown(one.live), one.allowed, unit, one.text)
    return table


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))
