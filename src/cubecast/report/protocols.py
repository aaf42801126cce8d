"""The protocols and their parameters, for people."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from cubecast.protocol.family import Family

_UNITS = {"time": "u.t.; live seconds"}


def protocols_table(families: Sequence[Family]) -> Table:
    table = Table("protocol", "what it is", "promises", "measured")
    for one in families:
        table.add_row(one.name, one.summary, " ".join(one.promises), " ".join(one.measured))
    return table


def parameters_table(family: Family) -> Table:
    table = Table("parameter", "default", "live", "takes", "unit", "meaning")
    for one in family.settings.values():
        unit = _UNITS.get(one.unit, one.unit)
        table.add_row(one.name, _shown(one.default), _shown(one.live), one.allowed, unit, one.text)
    return table


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))
