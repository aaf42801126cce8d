"""A node's configuration from a TOML file."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from cubecast.errors import BadInput
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.origins import check_origin

_PATHS = ("journal", "inputs", "data")
_ADDRESSES = ("listen", "advertise", "http")


def load(path: Path) -> dict[str, Any]:
    """The settings in a file, ready for `NodeConfig`; BadInput names the file and what is wrong with it."""
    try:
        raw = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None
    known = {field.name: field.type for field in fields(NodeConfig)}
    unknown = sorted(set(raw) - set(known))
    if unknown:
        raise BadInput(f"{path}: unknown settings {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    try:
        return {name: _value(name, value) for name, value in raw.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{path}: {error}") from None


def _value(name: str, value: Any) -> Any:
    if name in _ADDRESSES:
        return Address.parse(value)
    if name == "join":
        return tuple(Address.parse(one) for one in value)
    if name == "ws_origins":
        return tuple(map(check_origin, value))
    if name in ("peers", "dial_through"):
        return {int(node): Address.parse(address) for node, address in value.items()}
    if name in _PATHS:
        return Path(value)
    expected = type(getattr(NodeConfig, name, None)) if name != "node" else int
    if expected is float and isinstance(value, int):
        return float(value)
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise ValueError(f"{name} must be a {expected.__name__}, not {value!r}")
    return value
