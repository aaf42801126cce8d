"""Who may import whom. A room that is not listed here fails: decide its place before writing it."""

import ast
import re
import sys

import pytest

from cubecast.protocol.families import DEFAULT_PROTOCOL, FAMILIES
from support.sources import Module, each_module, foreign_imports, modules, own_imports

NOTHING: tuple[str, ...] = ()
BASE = ("ids", "errors")
TEXTS = ("addresses", "checksums", "escaping", "headers", "patterns")
"""What topics, places and bytes of others look like: plain functions."""
LABORATORY = (
    *BASE,
    *TEXTS,
    "protocol",
    "wire",
    "trace",
    "check",
    "sim",
    "log",
    "net",
    "api",
    "pipeline",
    "experiments",
    "report",
)

# room → prefixes of our own modules it may import, besides itself
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "": (*LABORATORY, "sync"),
    "ids": NOTHING,
    "errors": NOTHING,
    "addresses": BASE,
    "checksums": NOTHING,
    "escaping": NOTHING,
    "headers": (*BASE, "protocol.filters.values"),
    "patterns": BASE,
    "protocol": BASE,
    "wire": (*BASE, "protocol"),
    "trace": (*BASE, "protocol.contract", "protocol.effects", "protocol.inputs"),  # what is recorded, and no family
    "check": (*BASE, "trace"),
    "sim": (*BASE, "protocol", "wire", "trace"),
    "log": (*BASE, "checksums", "headers", "patterns"),
    "net": (*BASE, *TEXTS, "protocol", "wire", "trace", "log"),
    "api": (*BASE, *TEXTS, "net", "log"),
    "pipeline": ("errors", "trace.schema"),
    "experiments": LABORATORY,
    "report": LABORATORY,
    "cli": LABORATORY,
    "__main__": ("cli",),
    "sync": ("api",),
    "spark": (
        *BASE,
        *TEXTS,
        "api",
        "log",
        "net",
        "pipeline",
        "trace.schema",
    ),  # what notebooks import
}
ANYBODY = ("__version__",)
ON_THEIR_OWN = {
    "experiments.live_faults.recorded": "what bench.attack judges by",
    "trace.shiviz": "an export for people, called from Python",
}

# room → packages from outside the standard library
MAY_USE: dict[str, tuple[str, ...]] = {
    "wire": ("msgspec",),
    "trace": ("pyarrow",),
    "check": ("msgspec", "numpy"),
    "sim": ("numpy", "numba", "pyarrow"),
    "net": ("aiohttp", "cryptography", "msgspec", "prometheus_client", "pyarrow", "uvloop", "xxhash"),
    "api": ("msgspec", "pyarrow"),
    "log": ("msgspec", "xxhash"),
    "checksums": ("xxhash",),
    "headers": ("msgspec",),
    "pipeline": ("pyspark", "pyarrow", "numpy", "pandas"),
    "spark": ("pyspark", "pyarrow"),
    "experiments": ("numpy", "pyarrow", "pandas", "pyspark", "matplotlib"),
    "report": ("rich", "numpy", "pyarrow", "pandas", "matplotlib", "jinja2", "pyspark"),
    "cli": ("click", "rich"),
}
PROTOCOL_FAMILIES = ("cubecast", "hypercube", "brokers", "epidemic")
SHARED_BY_FAMILIES = ("protocol.hypercube.topology",)
"""Plain arithmetic of the cube: what the published systems and the users' protocol have in common."""
ALL = each_module(modules())


def _within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@ALL
def test_own_imports_follow_the_rules(found: list[Module]):
    for module in found:
        assert module.room in MAY_IMPORT, f"{module.path}: room {module.room!r} has no import rule"
        allowed = (*MAY_IMPORT[module.room], *ANYBODY, module.room or "cubecast")
        wrong = [f"line {line}: {name}" for name, line in own_imports(module) if not _within(name, allowed)]
        assert not wrong, f"{module.path} may only import {allowed}: {wrong}"


@ALL
def test_nothing_imports_the_command_line(found: list[Module]):
    for module in found:
        if module.room not in ("cli", "__main__"):
            assert not [name for name, _ in own_imports(module) if _within(name, ("cli",))], module.path


@ALL
def test_foreign_imports_follow_the_rules(found: list[Module]):
    for module in found:
        allowed = MAY_USE.get(module.room, ())
        wrong = [
            f"line {line}: {top}"
            for top, line in foreign_imports(module)
            if top not in sys.stdlib_module_names and top not in allowed
        ]
        assert not wrong, f"{module.path} may only use {allowed or 'the standard library'}: {wrong}"


def _family(name: str) -> str | None:
    room, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    return first if room == "protocol" and first in PROTOCOL_FAMILIES else None


@ALL
def test_protocol_families_do_not_know_each_other(found: list[Module]):
    for module in found:
        mine = _family(module.name)
        if mine is not None:
            reached = (name for name, _ in own_imports(module) if not _within(name, SHARED_BY_FAMILIES))
            others = [name for name in reached if _family(name) not in (None, mine)]
            assert not others, f"{module.path} reaches into another family: {others}"


NAMES_A_FAMILY = ("experiments", "protocol")
"""Declarations, and what experiments find out about one; `sim.kernels` are mirrors of one machine each."""
ALSO_WORDS = (DEFAULT_PROTOCOL, "tag", "crosspost")
"""The last is what applications ask, too."""
WORDS = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in FAMILIES if name not in ALSO_WORDS))
"""What no text uses by chance."""


@each_module(
    module for module in modules() if module.room not in NAMES_A_FAMILY and not module.name.startswith("sim.kernels.")
)
def test_what_runs_families_names_none(found: list[Module]):
    """Neither by importing one nor in a text; the default has its name in one place, beside the registry."""
    for module in found:
        named = _named_families(module)
        assert not named, f"{module.path} names a family: {named}"


def _named_families(module: Module) -> list[str]:
    named = [f"line {line}: {name}" for name, line in own_imports(module) if _family(name) is not None]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named += [f"line {node.lineno}: {one!r}" for one in WORDS.findall(node.value)]
        named += [f"chosen: {one!r}" for one in _chooses(node) if one in FAMILIES]
    return named


def _chooses(node: ast.AST) -> list[object]:
    """Constants that say which protocol is meant."""
    match node:
        case ast.Call(func=ast.Name(id="find"), args=[ast.Constant(value=name), *_]):
            return [name]
        case ast.keyword(arg="protocol", value=ast.Constant(value=name)):
            return [name]
        case ast.Compare(left=ast.Attribute(attr="protocol"), comparators=[ast.Constant(value=name)]):
            return [name]
    return []


@pytest.mark.parametrize(
    "code", ["find('cubecast')", "f(protocol='cubecast')", "if a.protocol != 'cubecast': pass", "'runs vcube-ps'"]
)
def test_the_rule_finds_names(code: str):
    tree = list(ast.walk(ast.parse(code)))
    texts = [node.value for node in tree if isinstance(node, ast.Constant)]
    assert any("cubecast" in _chooses(node) for node in tree) or any(WORDS.search(text) for text in texts)


def test_wire_takes_only_message_types_from_the_protocols():
    for module in modules():
        if module.room == "wire":
            for name, line in own_imports(module):
                part_of_protocol = name.startswith("protocol.")
                assert not part_of_protocol or any(word in name for word in ("packets", "contract", "famil")), (
                    f"{module.path}:{line}: {name}"
                )


def test_every_module_is_used():
    """Imported by another module, or named as text by one that loads it late, or an entry point."""
    imported = {name for module in modules() for name, _ in own_imports(module)}
    texts = "\n".join(module.path.read_text() for module in modules())
    dead = []
    for module in modules():
        package = module.path.name == "__init__.py"
        known = any(name == module.name or name.startswith(module.name + ".") for name in imported)
        if not package and not known and f"cubecast.{module.name}" not in texts and not _entry_point(module):
            dead.append(module.name)
    assert not set(dead) - set(ON_THEIR_OWN), f"nothing uses {dead}"


def _entry_point(module: Module) -> bool:
    """Run with `python -m`, or one of the experiments, which are found by their directory."""
    return module.name.endswith("__main__") or '__name__ == "__main__"' in module.path.read_text()
