"""Where settings are written down: a file, the environment, the command line. Each gives single settings by key."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin

from cubecast.errors import BadInput
from cubecast.net.settings.fields import leaves, tables


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
