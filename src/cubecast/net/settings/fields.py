"""How a field of a settings dataclass says more than its type: limits, unit, whether it may change in a living node.

A table of the configuration file is a frozen dataclass; its fields are documented by the text below them, as in
`net.settings.config`. `NodeConfig` gets a table by one line: `tls: Tls = table(Tls)`.
"""

import ast
import inspect
import textwrap
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from math import inf
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from cubecast.protocol.families import DEFAULT_PROTOCOL, find

# Settings that are parameters of the users' protocol: text, default, limits and unit come from its declaration.

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


# What no setting can exceed: sizes that the wire and the machine fix, whatever a node's operator chooses.

MAX_FRAME: Final = (1 << 20) + (1 << 17)
"""Bytes of a largest packet with its envelope."""
MAX_DIMENSION: Final = 13
"""Of a cube of nodes."""
FULL_BATCH: Final = 1024
"""Messages that wait in the machine: with so many it can always fill a batch."""


@dataclass(frozen=True)
class Limits:
    """What is known of a field besides its type."""

    least: float | None = None
    most: float | None = None
    unit: str = ""
    """`bytes` and `seconds` may be written with other units: "64 MiB", "7 d"."""
    reload: bool = False
    """A living node takes over a new value."""
    secret: bool = False
    """Never shown."""
    file: bool = False
    """Names a file that must be there."""


NO_LIMITS = Limits()


def setting(
    default: Any = MISSING,
    *,
    factory: Any = MISSING,
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
    reload: bool = False,
    secret: bool = False,
    file: bool = False,
) -> Any:
    """A field with limits. Any, so that the field's own type is what counts."""
    limits = Limits(least, most, unit, reload, secret, file)
    metadata = {"limits": limits}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def table(kind: type) -> Any:
    """A field that is a table of its own."""
    return field(default_factory=kind)


@dataclass(frozen=True)
class Leaf:
    """A single setting: `listen`, `tls.cert`."""

    key: str
    kind: Any
    limits: Limits
    text: str
    default: Any

    @property
    def variable(self) -> str:
        """What it is called in the environment."""
        return "CUBECAST_" + self.key.upper().replace(".", "__")


@cache
def leaves(kind: type, prefix: str = "") -> dict[str, Leaf]:
    """Every single setting in a dataclass and its tables, by dotted name, in the order of the fields."""
    found: dict[str, Leaf] = {}
    hints, texts = get_type_hints(kind), _texts(kind)
    for one in fields(kind):
        key, below = prefix + one.name, table_of(hints[one.name])
        if below is not None:
            found |= leaves(below, key + ".")
        else:
            default = one.default_factory() if one.default_factory is not MISSING else one.default
            limits = one.metadata.get("limits", NO_LIMITS)
            found[key] = Leaf(
                key, hints[one.name], limits, texts.get(one.name) or one.metadata.get("text", ""), default
            )
    return found


def table_of(kind: Any) -> type | None:
    """The dataclass of a field that is a table, present always (`Tls`) or sometimes (`Tls | None`)."""
    kind = without_none(kind)
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        rest = [one for one in get_args(kind) if one is not NoneType]
        return rest[0] if len(rest) == 1 else kind
    return kind


def tables(kind: type, prefix: str = "") -> dict[str, type]:
    """The tables of a dataclass by dotted name, with those inside them."""
    found: dict[str, type] = {}
    for name, hint in get_type_hints(kind).items():
        below = table_of(hint)
        if below is not None:
            found[prefix + name] = below
            found |= tables(below, f"{prefix}{name}.")
    return found


def value_of(config: Any, key: str) -> Any:
    """The value of a dotted key; None inside a table that is absent."""
    for name in key.split("."):
        config = None if config is None else getattr(config, name)
    return config


@cache
def _texts(kind: type) -> dict[str, str]:
    """The text below each field, which Python itself forgets."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
