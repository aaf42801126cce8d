"""Values of settings: from TOML or from text to what the dataclasses hold, and back for people to read."""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.net.settings.fields import NO_LIMITS, Limits, without_none

UNITS: dict[str, dict[str, float]] = {
    "bytes": {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
    "seconds": {"": 1, "ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400},
}
EXAMPLES = {"bytes": '"64 MiB"', "seconds": '"2 min"'}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_TRUTHS = {"true": True, "false": False}


class Unfit(ValueError):  # noqa: N818 - the value's state, turned into a BadInput that says where it stands
    """A value that is not what a setting takes; the text says what it takes."""


def parse(kind: Any, raw: Any, limits: Limits = NO_LIMITS, *, text: bool = False, base: Path | None = None) -> Any:
    """What `raw` means as a `kind`; `text` when it comes from where all is text. Paths are relative to `base`."""
    kind = without_none(kind)
    value = _parse(kind, raw, limits, text, base)
    return value if get_origin(kind) in (tuple, dict) else check_range(kind, value, limits, raw)


def check_range(kind: Any, value: Any, limits: Limits, raw: Any = MISSING) -> Any:
    """The value itself, when it lies within the limits."""
    if value is None and without_none(kind) is not kind:
        return value
    if limits.least is not None or limits.most is not None:
        shown = value if raw is MISSING else raw
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Unfit(f"must be {expected(kind, limits)}, not {shown!r}")
        if (limits.least is not None and value < limits.least) or (limits.most is not None and value > limits.most):
            raise Unfit(f"must be {expected(kind, limits)}, not {shown!r}")
    return value


def _parse(kind: Any, raw: Any, limits: Limits, text: bool, base: Path | None) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    problem = Unfit(f"must be {expected(kind, limits)}, not {raw!r}")
    if origin is tuple:
        many = [one.strip() for one in raw.split(",") if one.strip()] if text else raw
        if isinstance(many, str | bytes | Mapping) or not isinstance(many, Iterable):
            raise problem
        return tuple(parse(arguments[0], one, limits, text=text, base=base) for one in many)
    if origin is dict:
        pairs = _pairs(raw) if text else raw
        if not isinstance(pairs, Mapping):
            raise problem
        return {
            parse(arguments[0], key, text=True): parse(arguments[1], one, limits, text=text, base=base)
            for key, one in pairs.items()
        }
    if is_dataclass(kind):
        return raw if type(raw) is kind else _parse_table(kind, raw, base)
    if origin is Literal:
        if raw in arguments:
            return raw
        raise problem
    try:
        return _parse_single(kind, raw, limits, text, base)
    except BadInput as error:
        raise Unfit(str(error)) from None
    except (ValueError, TypeError, KeyError):
        raise problem from None


def _pairs(raw: str) -> dict[str, str]:
    pairs = [one.partition("=") for one in raw.split(",") if one.strip()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _parse_single(kind: Any, raw: Any, limits: Limits, text: bool, base: Path | None) -> Any:
    """ValueError, TypeError or KeyError when it is none."""
    if kind is bool:
        return _TRUTHS[raw] if text else _exactly(bool, raw)
    if kind in (int, float):
        return _number(kind, raw, limits.unit, text)
    if kind is Address:
        return raw if isinstance(raw, Address) else Address.parse(_exactly(str, raw))
    if kind is Path:
        path = Path(_exactly(str, os.fspath(raw))).expanduser()
        return path if base is None else base / path
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(raw)
    return _exactly(kind, raw)


def _exactly(kind: type, raw: Any) -> Any:
    if not isinstance(raw, kind) or (isinstance(raw, str) and not raw):
        raise TypeError
    return raw


def _number(kind: type, raw: Any, unit: str, text: bool) -> Any:
    if isinstance(raw, str):
        if unit:
            match = _QUANTITY.fullmatch(raw.strip())
            if match is None:
                raise ValueError
            amount = float(match[1]) * UNITS[unit][match[2]]
            return round(amount) if kind is int else amount
        if not text:
            raise TypeError
        return kind(raw)
    if isinstance(raw, bool) or not isinstance(raw, int if kind is int else int | float):
        raise TypeError
    return kind(raw)


def _parse_table(kind: Any, raw: Any, base: Path | None) -> Any:
    """One table of a list of tables, or of named ones."""
    if not isinstance(raw, Mapping):
        raise Unfit(f"must be {expected(kind)}, not {raw!r}")
    known = {one.name: one for one in fields(kind)}
    hints = get_type_hints(kind)
    unknown = next((name for name in raw if name not in known), None)
    if unknown is not None:
        raise Unfit(f"has no {unknown!r}; known are {', '.join(known)}")
    values = {}
    for name, one in raw.items():
        limits = known[name].metadata.get("limits", NO_LIMITS)
        try:
            values[name] = parse(hints[name], one, limits, base=base)
        except Unfit as error:
            raise Unfit(f"has a {name} that {error}") from None
    for name, one in known.items():
        if name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise Unfit(f"has no {name}, which must be {expected(hints[name])}")
    try:
        return kind(**values)
    except BadInput as error:
        raise Unfit(f"cannot be: {error}") from None


def expected(kind: Any, limits: Limits = NO_LIMITS) -> str:
    """What people may write, in words."""
    kind = without_none(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return f"a list, each of them {expected(arguments[0], limits)}"
    if origin is dict:
        names = "ids" if arguments[0] is int else "names"
        return f"a table of {names}, each of them {expected(arguments[1], limits)}"
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f'"{one.value}"' for one in kind)
    if is_dataclass(kind):
        return f"a table of {', '.join(one.name for one in fields(kind))}"
    if kind in (int, float):
        return _expected_number(kind, limits)
    words = {bool: "true or false", str: "a text", Path: "a path", Address: "an address HOST:PORT"}
    return words.get(kind, str(kind))


def _expected_number(kind: Any, limits: Limits) -> str:
    noun = f"a number of {limits.unit}" if limits.unit else "a whole number" if kind is int else "a number"
    example = f" (or {EXAMPLES[limits.unit]} and the like)" if limits.unit else ""
    match limits.least, limits.most:
        case None, None:
            return noun + example
        case least, None:
            return f"{noun}, at least {_plain(least)}{example}"
        case None, most:
            return f"{noun}, at most {_plain(most)}{example}"
        case least, most:
            return f"{noun} from {_plain(least)} to {_plain(most)}{example}"


def _plain(number: float | None) -> str:
    return f"{number:d}" if isinstance(number, int) else f"{number:g}"


def as_toml(value: Any) -> str:
    """As one would write it into the file."""
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Address | Path):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, Enum):
        return as_toml(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        inside = {one.name: getattr(value, one.name) for one in fields(value)}
        return as_toml({name: one for name, one in inside.items() if one is not None})
    if isinstance(value, Mapping):
        inside_ = ", ".join(f"{_as_key(key)} = {as_toml(one)}" for key, one in value.items())
        return f"{{ {inside_} }}" if inside_ else "{}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(as_toml(one) for one in value)}]"
    return str(value)


def _as_key(key: Any) -> str:
    return str(key) if re.fullmatch(r"[A-Za-z0-9_-]+", str(key)) else json.dumps(str(key), ensure_ascii=False)
