"""Faults planted in the program, one at a time: who finds each? A survivor fails, unless it is proven to be no fault.

    python scripts/mutants.py [--count 100] [--seed 1] [--room protocol] [--schedules 2000] [--seconds 600]

Faults are drawn, not chosen by whoever wrote the tests: a condition is negated, a comparison moved by one, a call left
out, `and` becomes `or`, a number grows by one. Each is named by module, function, operator and place, so that the same
seed plants the same faults in the same tree. The swarm looks first at what it can see, then the tests of the room,
those first that name the module. Whatever is not decided in the given time is said to be open, and fails as well.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src") / "cubecast"
SECONDS = 600
"""For the swarm, and again for the tests of a room."""
OPEN = "nobody found it in the given time"


@dataclass(frozen=True)
class Room:
    """Where faults are planted, their share of all, and who looks for them."""

    places: tuple[str, ...]
    """Folders and files."""
    share: int
    tests: tuple[str, ...]
    swarm: bool = False


ROOMS = {
    "protocol": Room(("protocol/cubecast",), 40, ("tests/protocol/cubecast", "tests/sim", "tests/scripts"), True),
    "order": Room(("protocol/order.py",), 5, ("tests/protocol", "tests/sim"), True),
    "net": Room(("net",), 15, ("tests/net", "tests/api")),
    "log": Room(("log", "net/node/durable"), 10, ("tests/log", "tests/net/node/durable", "tests/api")),
    "check": Room(("check",), 12, ("tests/check",)),
    "pipeline": Room(("pipeline",), 12, ("tests/pipeline",)),
    "experiments": Room(("experiments",), 6, ("tests/experiments", "tests/sim", "tests/papers")),
}
EQUIVALENT: dict[str, str] = {
    "protocol/cubecast/dissemination.py:_begin:boundary:0": "plans are a cache, emptied sooner or later",
}
"""Faults that are none, by name, with the proof."""
_LEFT_ALONE = {"invariants", "waiting", "describe", "__repr__", "__str__"}
"""For people, or checks themselves."""


class _Sites(ast.NodeVisitor):
    """Everything in a module that could be wrong, in the order of the text."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, ast.AST]] = []
        self._function = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in _LEFT_ALONE:
            outer, self._function = self._function, node.name
            self.generic_visit(node)
            self._function = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def generic_visit(self, node: ast.AST) -> None:
        if self._function:
            match node:
                case ast.If() | ast.While():
                    self._add("negate", node)
                case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                    self._add("boundary", node)
                case ast.BoolOp():
                    self._add("junction", node)
                case ast.Expr(value=ast.Call()):
                    self._add("omit", node)
                case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=int())):
                    self._add("grow", node)
        super().generic_visit(node)

    def _add(self, operator: str, node: ast.AST) -> None:
        self.found.append((self._function, operator, node))


_BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


def _spoil(node: ast.AST) -> None:
    """Change the node in place."""
    match node:
        case ast.If() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Compare():
            node.ops = [_BOUNDARIES[type(node.ops[0])]()]
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.Expr():
            node.value = ast.Constant(None)
        case ast.BinOp(right=ast.Constant(value=value)):
            node.right = ast.Constant(value + 1)


def sites(source: str) -> list[str]:
    """Of a module's text: the name of every fault that can be planted, by place."""
    found = _Sites()
    found.visit(ast.parse(source))
    seen: dict[tuple[str, str], int] = {}
    names = []
    for function, operator, _ in found.found:
        ordinal = seen[function, operator] = seen.get((function, operator), -1) + 1
        names.append(f"{function}:{operator}:{ordinal}")
    return names


def spoilt(source: str, place: int) -> str:
    """The text with the fault of this place."""
    tree, found = ast.parse(source), _Sites()
    found.visit(tree)
    _spoil(found.found[place][2])
    return ast.unparse(ast.fix_missing_locations(tree))


def planted(room: Room, count: int, rng: Random) -> list[tuple[str, str]]:
    """Names and texts of so many faults of a room, spread over its modules; the name begins with the module's path."""
    tops = [ROOT / PACKAGE / place for place in room.places]
    paths = sorted(path for top in tops for path in ([top] if top.is_file() else top.rglob("*.py")))
    found = [
        (path, place, f"{path.relative_to(ROOT / PACKAGE).as_posix()}:{name}")
        for path in paths
        for place, name in enumerate(sites(path.read_text()))
    ]
    return [(name, spoilt(path.read_text(), place)) for path, place, name in rng.sample(found, min(count, len(found)))]


def nearest(tests: Sequence[str], module: str) -> list[str]:
    """The test files of these folders; first those that say the name of the module, of them the shortest first."""
    dotted = "cubecast." + module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    files = sorted({path for folder in tests for path in (ROOT / folder).rglob("test_*.py")})
    texts = {path: path.read_text() for path in files}
    ordered = sorted(files, key=lambda path: (dotted not in texts[path], len(texts[path])))
    return [path.relative_to(ROOT).as_posix() for path in ordered]


def finder(name: str, text: str, room: Room, schedules: int, seconds: float) -> str | None:
    """Who finds the fault: the swarm at a seed, or a test; `OPEN` when the time was too short, None when none does."""
    module = name.partition(":")[0]
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(ROOT / "src", Path(place) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        (Path(place) / PACKAGE / module).write_text(text)
        environment = os.environ | {"PYTHONPATH": str(Path(place) / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _SWARM.format(schedules)]
        sought = _run(command, environment, seconds) if room.swarm else ""
        if sought and sought != OPEN:
            return f"swarm: {sought}"
        only = "not slow and not spark and not browser and not interpreted"
        tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", only]
        found = _run([*tests, *nearest(room.tests, module)], environment, seconds)
        if found and found != OPEN:
            return f"test: {found}"
        return OPEN if OPEN in (sought, found) else None


_SWARM = """
from cubecast.experiments.swarm import sweep
tally = sweep("cubecast", 1, {0})
failure = tally.failure
if failure is not None:
    raise SystemExit(f"seed {{failure.schedule.seed}}, {{failure.kind}}")
"""


def _run(command: Sequence[str], environment: dict[str, str], seconds: float) -> str:
    """What the command says at its end when it fails, else nothing."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return OPEN
    if not done.returncode:
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (failed or lines or ["it fails"])[-1].strip()[:110]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="faults in all, shared among the rooms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", choices=ROOMS, help="only this room gets all of them")
    parser.add_argument("--schedules", type=int, default=2000, help="of the swarm, for each fault it could see")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the swarm, and for the tests, per fault")
    chosen = parser.parse_args()
    rooms = {chosen.room: ROOMS[chosen.room]} if chosen.room else ROOMS
    whole = sum(room.share for room in rooms.values())
    survivors: list[str] = []
    undecided: list[str] = []
    for name, room in rooms.items():
        rng = Random(f"{chosen.seed} {name}")
        for fault, text in planted(room, -(-chosen.count * room.share // whole), rng):
            found = f"no fault: {EQUIVALENT[fault]}" if fault in EQUIVALENT else None
            found = found or finder(fault, text, room, chosen.schedules, chosen.seconds)
            sys.stdout.write(f"{fault:75} {found or 'SURVIVES'}\n")
            sys.stdout.flush()
            survivors += [] if found else [fault]
            undecided += [fault] if found == OPEN else []
    sys.stdout.write(f"{len(survivors)} survive, {len(undecided)} are open\n")
    return 1 if survivors or undecided else 0


if __name__ == "__main__":
    sys.exit(main())
