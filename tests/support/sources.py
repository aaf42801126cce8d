"""The package as syntax trees: what the tidy tests look at."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "cubecast"
Item = TypeVar("Item")


class Module(NamedTuple):
    name: str
    """Dotted, without `cubecast.`; the package itself is the empty string."""
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]


@cache
def modules() -> tuple[Module, ...]:
    return tuple(
        Module(_dotted(path), path, ast.parse(path.read_text(), str(path))) for path in sorted(PACKAGE.rglob("*.py"))
    )


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """(imported module or name in full, line). `from a import b` gives a.b, which may be a name inside module a."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.path}:{node.lineno}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def own_imports(module: Module) -> Iterator[tuple[str, int]]:
    """Imports from this package, dotted without `cubecast.`."""
    for name, line in imports(module):
        if name == "cubecast" or name.startswith("cubecast."):
            yield name.removeprefix("cubecast").removeprefix("."), line


def foreign_imports(module: Module) -> Iterator[tuple[str, int]]:
    """Top-level packages imported from outside."""
    for name, line in imports(module):
        top = name.partition(".")[0]
        if top != "cubecast":
            yield top, line


def text_files() -> list[Path]:
    """Every file of the tree that people write: sources, tests, benchmarks, scripts, documents."""
    suffixes = {".py", ".md", ".toml", ".txt", ".json", ".html", ".css", ".js", ".csv", ".yml", ".yaml", ".service", ""}
    tops = ("src", "tests", "bench", "docs", "scripts", "examples", "deploy")
    found = [path for top in tops for path in sorted((ROOT / top).rglob("*"))] + sorted(ROOT.glob("*"))
    return [
        path
        for path in found
        if path.is_file()
        and path.suffix in suffixes
        and not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts)
    ]


def folder(path: Path) -> str:
    """Where a file is, from the root of the tree."""
    return str(path.parent.relative_to(ROOT))


def each(name: str, items: Iterable[Item], place: Callable[[Item], str]) -> pytest.MarkDecorator:
    """A test for every folder instead of one for every file, of which there are hundreds; what fails names its file."""
    grouped = [(where, list(found)) for where, found in groupby(sorted(items, key=place), place)]
    return pytest.mark.parametrize(name, [found for _, found in grouped], ids=[where for where, _ in grouped])


def each_module(found: Iterable[Module]) -> pytest.MarkDecorator:
    return each("found", found, lambda module: folder(module.path))
