"""One configuration out of several sources: options win over the environment, this over the file, it over defaults. New
settings for a living node: all of a good file that may change, nothing of a broken one.
"""

import logging
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from cubecast.errors import BadInput
from cubecast.net.settings.fields import Leaf, leaves, table_of, tables, value_of
from cubecast.net.settings.sources import (
    Given,
    Unfit,
    Unknown,
    as_toml,
    expected,
    from_arguments,
    from_environment,
    from_file,
    from_options,
    parse,
)

DEFAULT = "default"

Config = TypeVar("Config")


@dataclass(frozen=True)
class Sources:
    """Everything a configuration is made from, so that it can be made again."""

    file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    """By key: what the option is called, and what was given."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """By key: what a program gave, as text or in Python's own types."""


@dataclass(frozen=True)
class Resolved(Generic[Config]):
    config: Config
    places: dict[str, str]
    """Where each setting that is not its default comes from."""
    file: Path | None = None

    def place(self, key: str) -> str:
        return self.places.get(key, DEFAULT)


class BadSettings(BadInput):
    """All that is wrong, a line each; the text is the first, and how many more there are."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        more = f" (and {len(problems) - 1} more; `cubecast config check` names them)" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)


def resolve(kind: type[Config], sources: Sources) -> Resolved[Config]:
    """BadSettings names the place, the key and what is expected there."""
    written: list[Given | Unknown] = []
    if sources.file is not None:
        written += from_file(kind, sources.file)
    written += from_environment(kind, sources.environment)
    written += from_options(kind, sources.options)
    written += from_arguments(kind, sources.arguments)
    values, problems = _understood(kind, written)
    config = None if problems else _build(kind, "", values, sources.file, problems)
    if config is None or problems:
        raise BadSettings(problems)
    return Resolved(config, {key: place for key, (_, place) in values.items()}, sources.file)


def _understood(kind: type, written: Iterable[Given | Unknown]) -> tuple[dict[str, tuple[Any, str]], list[str]]:
    """Value and place by key, the last one counting; every one is checked, even those that are overridden."""
    known = leaves(kind)
    values: dict[str, tuple[Any, str]] = {}
    problems: list[str] = []
    for one in written:
        if isinstance(one, Unknown):
            problems.append(one.problem)
            continue
        leaf = known[one.key]
        try:
            value = parse(leaf.kind, one.raw, leaf.limits, text=one.text, base=one.base)
            values[one.key] = (value, one.place)
        except Unfit as error:
            secret = f"must be {expected(leaf.kind, leaf.limits)}"
            problems.append(f"{one.place}: {one.key} {secret if leaf.limits.secret else error}")
    return values, problems


def _build(
    kind: Any, prefix: str, values: Mapping[str, tuple[Any, str]], file: Path | None, problems: list[str]
) -> Any:
    hints, arguments = get_type_hints(kind), {}
    where = f"{file}: " if file is not None else ""
    for one in fields(kind):
        key, below = prefix + one.name, table_of(hints[one.name])
        if key in values:
            arguments[one.name] = values[key][0]
        elif below is not None and (one.default is not None or any(name.startswith(key + ".") for name in values)):
            arguments[one.name] = _build(below, key + ".", values, file, problems)
        elif one.default is MISSING and one.default_factory is MISSING:
            problems.append(f"{where}{key} is missing; it must be {expected(hints[one.name])}")
    if problems:
        return None
    try:
        return kind(**arguments)
    except BadInput as error:
        table = f"[{prefix[:-1]}] " if prefix else ""
        problems.append(f"{where}{table}{error}")
        return None


def missing_files(kind: type, resolved: Resolved[Any]) -> list[str]:
    """Files that are named and not there, a line each."""
    found = []
    for key, leaf in leaves(kind).items():
        path = value_of(resolved.config, key)
        if leaf.limits.file and isinstance(path, Path):
            try:
                path.open("rb").close()
            except OSError as error:
                found.append(f"{resolved.place(key)}: {key} names {path}, which cannot be read: {error.strerror}")
    return found


def check_file(kind: type, sources: Sources, probe: Callable[[Any], object] = lambda config: None) -> list[str]:
    """A line per problem. A cluster file leaves open which of its nodes reads it: it must be right for each of them.

    `probe` tries what the settings name, as far as that is possible without starting anything, and raises BadInput.
    """
    problems: list[str] = []
    file = sources.file
    assert file is not None, "a file is checked"
    try:
        for options in _readers(kind, file, sources):
            resolved: Resolved[Any] = resolve(kind, replace(sources, options=options))
            missing = missing_files(kind, resolved)
            problems += [one for one in missing if one not in problems]
            if not missing:
                probe(resolved.config)
    except BadSettings as error:
        problems += error.problems
    except BadInput as error:
        text = str(error)
        problems.append(text if str(file) in text else f"{file}: {text}")
    return problems


def _readers(kind: type, file: Path, sources: Sources) -> list[Mapping[str, tuple[str, Any]]]:
    """The options of each node that may read the file."""
    given = {one.key: one.raw for one in from_file(kind, file) if isinstance(one, Given)}
    peers = given.get("peers")
    is_known = "node" in given or "node" in sources.options or "CUBECAST_NODE" in sources.environment
    if not isinstance(peers, dict) or not peers or is_known:
        return [sources.options]
    return [{**sources.options, "node": ("[peers]", node)} for node in peers]


# Settings for people to read: their values and where they come from, an example file, a table for the docs.

EXAMPLE_HEADING = """A node's configuration: cubecast node --config FILE.
Every key is here, at its default; delete what you do not change.

Each key can also be given as an environment variable, CUBECAST_ and its name in capitals, with two underlines for the
dot of a table (CUBECAST_WINDOW, CUBECAST_LOGGING__LEVEL), and as an option (--set KEY=VALUE). Options win over the
environment, the environment over this file. Relative paths are relative to this file's directory.
`cubecast config check FILE` says what is wrong with it, `cubecast config show` what counts and why. SIGHUP makes a
running node read it again."""
HIDDEN = "(hidden)"
WIDTH = 100


def shown(kind: type, resolved: Resolved[Any]) -> list[tuple[str, str | None, str]]:
    """Key, value as in the file (None when there is none) and where it comes from; secrets stay hidden."""
    rows = []
    for key, leaf in leaves(kind).items():
        value = value_of(resolved.config, key)
        text = None if value is None else HIDDEN if leaf.limits.secret else as_toml(value)
        rows.append((key, text, resolved.place(key)))
    return rows


def example(kind: type, heading: str) -> str:
    """A file with every setting at its default, each explained; those without a default are commented out."""
    lines = [f"# {line}" if line else "#" for line in heading.splitlines()]
    below = tables(kind)
    known = leaves(kind)
    for table in ["", *below]:
        inside = [leaf for key, leaf in known.items() if key.rpartition(".")[0] == table]
        if table and inside:
            lines += ["", *_comment(_first_line(below[table])), f"[{table}]"]
        for leaf in inside:
            lines += ["", *_comment(_explained(leaf)), _line(leaf)]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 2)]


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _explained(leaf: Leaf) -> str:
    reload = " May change in a running node." if leaf.limits.reload else ""
    return f"{leaf.text} Here goes {expected(leaf.kind, leaf.limits)}.{reload}".strip()


def _line(leaf: Leaf) -> str:
    name = leaf.key.rpartition(".")[2]
    if leaf.default in (None, MISSING):
        return f"# {name} ="
    return f"{name} = {as_toml(leaf.default)}"


def reference(kind: type) -> str:
    """A table in Markdown of everything that can be set."""
    rows = ["| key | takes | default | reload | what it is |", "| --- | --- | --- | --- | --- |"]
    for key, leaf in leaves(kind).items():
        default = "" if leaf.default in (None, MISSING) else f"`{as_toml(leaf.default)}`"
        takes = expected(leaf.kind, leaf.limits).replace("|", "\\|")
        reload = "yes" if leaf.limits.reload else ""
        rows.append(f"| `{key}` | {takes} | {default} | {reload} | {leaf.text} |")
    return "\n".join(rows) + "\n"


# New settings for a living node: all of a good file that may change, nothing of a broken one.

log = logging.getLogger(__name__)

Prepare = Callable[[Any], Callable[[], None]]
"""Looks at a new configuration, raises BadInput when it cannot work, and returns what makes it take effect."""


@dataclass(frozen=True)
class Reloaded:
    changed: list[str]
    left: list[str]
    """Keys that are different now and stay as they were until the node is started again."""


class Reloader(Generic[Config]):
    """`prepare` is asked every time, even when no setting changed: the files that settings name may have."""

    def __init__(
        self, kind: type[Config], current: Config, read: Callable[[], Resolved[Config]], prepare: list[Prepare]
    ) -> None:
        self._kind: type = kind
        self.current = current
        self._read = read
        self._prepare = prepare

    def reload(self) -> Reloaded | None:
        """What became of it, said in the log; None when something is wrong and nothing was changed."""
        take_effect = self.prepare()
        return None if take_effect is None else take_effect()

    def prepare(self) -> Callable[[], Reloaded] | None:
        """Read everything, which takes a while and may be done in a thread; what makes it count is returned."""
        try:
            wanted = self._read().config
            different = [
                leaf for key, leaf in leaves(self._kind).items() if value_of(wanted, key) != value_of(self.current, key)
            ]
            changed = [leaf.key for leaf in different if leaf.limits.reload]
            left = [leaf.key for leaf in different if not leaf.limits.reload]
            new = taking(self.current, wanted, changed)
            ready = [prepare(new) for prepare in self._prepare]
        except BadInput as error:
            log.error("the settings were not reloaded, and nothing changed: %s", error)
            return None

        def take_effect() -> Reloaded:
            for one in ready:
                one()
            self.current = new
            if left:
                log.warning("only a restart takes over %s; everything else is as the settings say", ", ".join(left))
            log.info("the settings were reloaded; changed: %s", ", ".join(changed) or "nothing")
            return Reloaded(changed, left)

        return take_effect


def taking(current: Config, wanted: Config, keys: list[str]) -> Config:
    """The current configuration with some keys as in the wanted one."""
    changes: dict[str, Any] = {}
    for name in dict.fromkeys(key.partition(".")[0] for key in keys):
        ours, theirs = getattr(current, name), getattr(wanted, name)
        inside = [key.partition(".")[2] for key in keys if key.startswith(f"{name}.")]
        both = is_dataclass(ours) and is_dataclass(theirs)
        changes[name] = taking(ours, theirs, inside) if inside and both else theirs
    return replace(current, **changes) if changes else current  # type: ignore[type-var]
