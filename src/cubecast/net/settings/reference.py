"""Settings for people to read: their values and where they come from, an example file, a table for the docs."""

import textwrap
from dataclasses import MISSING
from typing import Any

from cubecast.net.settings.fields import Leaf, leaves, tables, value_of
from cubecast.net.settings.resolve import Resolved
from cubecast.net.settings.values import as_toml, expected

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
