"""What an attribute may hold, and when two of them are the same.

A boolean is not a number (Python says `True == 1`), an integer equals the float of the same size, and a NaN equals
nothing: it matches no term.
"""

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str
Attributes: TypeAlias = Mapping[str, Value]

Key: TypeAlias = tuple[str, Value]
"""A value with its kind in front, for tables and sets."""


def kind_of(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def key_of(value: Value) -> Key:
    return ("text", value) if type(value) is str else (kind_of(value), value)


def is_nan(value: Value) -> bool:
    return value != value  # which is what a NaN is


def as_text(value: Value) -> str:
    """As the text form of a filter writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
