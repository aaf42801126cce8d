"""Protocol machines own no clock, socket, thread, global random or log, and iterate over nothing unordered."""

import ast
from collections.abc import Iterator

from support.sources import Module, each_module, imports, modules

BANNED_MODULES = {
    *("asyncio", "concurrent", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "secrets", "select"),
    *("selectors", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "uuid"),
}
BANNED_CALLS = {"print", "open", "input", "exec", "eval", "hash", "id", "breakpoint"}
PROTOCOL = each_module(module for module in modules() if module.room == "protocol")


@PROTOCOL
def test_no_banned_imports(found: list[Module]):
    for module in found:
        for name, line in imports(module):
            top = name.partition(".")[0]
            assert top not in BANNED_MODULES, f"{module.path}:{line}: protocols may not import {top}"
            assert top != "random" or name == "random.Random", f"{module.path}:{line}: only an injected random.Random"


@PROTOCOL
def test_no_banned_calls(found: list[Module]):
    for module, node in _nodes(found):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in BANNED_CALLS, f"{module.path}:{node.lineno}: calls {node.func.id}"
            assert node.func.id != "Random" or node.args, f"{module.path}:{node.lineno}: a Random seeded by the clock"


def _nodes(found: list[Module]) -> Iterator[tuple[Module, ast.AST]]:
    return ((module, node) for module in found for node in ast.walk(module.tree))


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_set(node.left) or _is_set(node.right)
    call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp) or call


@PROTOCOL
def test_no_iteration_over_sets(found: list[Module]):
    """A set that is visibly one: literals, comprehensions, set(...) and their unions. Sort it first."""
    for module, node in _nodes(found):
        over: list[ast.expr] = []
        if isinstance(node, ast.For):
            over = [node.iter]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            over = [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list"):
            over = list(node.args)
        assert not any(map(_is_set, over)), f"{module.path}:{node.lineno}: iterates over a set"  # type: ignore[attr-defined]


def test_the_set_rule_sees_what_it_must():
    assert _is_set(ast.parse("set(x) - y", mode="eval").body)
    assert _is_set(ast.parse("{1, 2}", mode="eval").body)
    assert not _is_set(ast.parse("sorted(set(x))", mode="eval").body)
