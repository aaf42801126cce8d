"""Where settings are written down: a file, the environment, the command line. Each gives single settings by key; their
values go from TOML or from text to what the dataclasses hold, and back for people to read.
"""

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.net.settings.fields import NO_LIMITS, Limits, leaves, tables, without_none

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


# Where settings are written down: a file, the environment, the command line. Each gives single settings by key.


def read_toml(path: Path) -> dict[str, Any]:
    """BadInput when it cannot be read or is no TOML."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None


PREFIX = "CUBECAST_"
NOT_SETTINGS = ("CUBECAST_CONFIG", "CUBECAST_TOKEN", "CUBECAST_TOKEN_FILE")
"""Variables of ours that mean something else: where the file is, and what a client says of itself."""


@dataclass(frozen=True)
class Given:
    """A value as it was written, before it is understood."""

    key: str
    raw: Any
    place: str
    """The file, variable or option."""
    text: bool
    base: Path | None = None
    """What relative paths are relative to; None: where the process was started."""


@dataclass(frozen=True)
class Unknown:
    """An unknown key."""

    problem: str


def from_file(kind: type, path: Path) -> Iterator[Given | Unknown]:
    """BadInput when it cannot be read at all."""
    return _walk(kind, "", read_toml(path), path)


def _walk(kind: type, prefix: str, raw: Mapping[str, Any], path: Path) -> Iterator[Given | Unknown]:
    known, below = leaves(kind), tables(kind)
    for name, value in raw.items():
        key = prefix + name
        if key in known:
            yield Given(key, value, str(path), text=False, base=path.parent)
        elif key in below and isinstance(value, dict):
            yield from _walk(kind, key + ".", value, path)
        elif key in below:
            yield Unknown(f"{path}: {key} must be a table [{key}] with {', '.join(_inside(kind, key))}, not {value!r}")
        else:
            yield Unknown(f"{path}: unknown key {key}{suggestion(kind, key)}")


def from_environment(kind: type, environment: Mapping[str, str]) -> Iterator[Given | Unknown]:
    """`CUBECAST_` and the key in capitals, two underlines for the dot; an empty variable says nothing."""
    known = {leaf.variable: key for key, leaf in leaves(kind).items()}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or not text:
            continue
        if variable in known:
            yield Given(known[variable], text, f"environment variable {variable}", text=True)
        else:
            yield Unknown(f"unknown environment variable {variable}{_closest(variable, list(known))}")


def from_options(kind: type, options: Mapping[str, tuple[str, Any]]) -> Iterator[Given | Unknown]:
    """By key: what the option is called, and its text or its list of texts. `parameters.period` is one of several."""
    known, several = leaves(kind), dict[str, dict[str, str]]()
    for key, (option, text) in options.items():
        table, _, name = key.partition(".")
        if key in known:
            given = ",".join(text) if isinstance(text, tuple | list) else str(text)
            yield Given(key, given, option, text=True)
        elif name and table in known and get_origin(known[table].kind) is dict:
            several.setdefault(table, {})[name] = str(text)
            yield Given(table, several[table], option, text=False)
        else:
            yield Unknown(f"{option}: unknown key {key}{suggestion(kind, key)}")


def from_arguments(kind: type, arguments: Mapping[str, Any], prefix: str = "") -> Iterator[Given | Unknown]:
    """What a program gives: as in the file, in Python's own types, or many things in one text as in the environment."""
    known, below = leaves(kind), tables(kind)
    for name, value in arguments.items():
        key = f"{prefix}{name}"
        if value is None:
            continue
        if key in known:
            many = get_origin(known[key].kind) in (tuple, dict)
            yield Given(key, value, "Node", text=many and isinstance(value, str))
        elif key in below and is_dataclass(value):
            inside = {one.name: getattr(value, one.name) for one in fields(value)}
            yield from from_arguments(kind, inside, key + ".")
        elif key in below and isinstance(value, Mapping):
            yield from from_arguments(kind, value, key + ".")
        elif key in below:
            yield Unknown(f"Node: {key} must be a table of {', '.join(_inside(kind, key))}, not {value!r}")
        else:
            yield Unknown(f"Node: unknown setting {key}{suggestion(kind, key)}")


OPTIONS = {"id": "node", "trace": "journal"}
"""Options of the command line whose settings have other names."""


def suggestion(kind: type, key: str) -> str:
    """What was meant: something in the same table, the same name in another one; or what there is."""
    table, _, name = key.rpartition(".")
    beside, prefix = _inside(kind, table), f"{table}." if table else ""
    if OPTIONS.get(key) in beside:
        return f"; did you mean {OPTIONS[key]}?"
    elsewhere = [one for one in leaves(kind) if one.rpartition(".")[2] == name]
    if found := _closest(name, beside, prefix):
        return found
    if elsewhere:
        return f"; did you mean {elsewhere[0]}?"
    return f"; known {'in [' + table + ']' if table else 'here'} are {', '.join(beside)}"


def _inside(kind: type, table: str) -> list[str]:
    prefix = f"{table}." if table else ""
    names = [key.removeprefix(prefix) for key in (*leaves(kind), *tables(kind)) if key.startswith(prefix)]
    return [name for name in names if "." not in name]


def _closest(word: str, words: list[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {prefix}{close[0]}?" if close else ""
