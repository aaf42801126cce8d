"""The rooms of `net` and the log: who asks whom, one way, as ARCHITECTURE.md draws it."""

import ast
import re
from collections.abc import Iterable

import pytest

from support.sources import PACKAGE, ROOT, Module, modules, own_imports

ROOMS = ("log", "settings", "security", "port", "links", "observe", "members", "node", "gateway", "web", "net")
"""From what asks nobody to what asks everybody; the last one is the files of `net` itself, which make a node."""
RANK = {room: rank for rank, room in enumerate(ROOMS)}
LOG_ASKS = ("checksums", "patterns", "headers", "ids", "errors", "log")
DRAWING = re.compile(r"<!-- rooms -->\n```\n(.*?)```", re.DOTALL)


def room_of(name: str) -> str | None:
    """Of a module; a name inside one, as `from a import b` has it, is in the same room."""
    first, *rest = name.split(".")
    if first == "log":
        return "log"
    if first != "net":
        return None
    return rest[0] if rest and (PACKAGE / "net" / rest[0]).is_dir() else "net"


def arrows(sources: Iterable[Module]) -> dict[tuple[str, str], list[str]]:
    """(who asks, whom): where. What only types need counts, too."""
    found: dict[tuple[str, str], list[str]] = {}
    for module in sources:
        here = room_of(module.name)
        for name, line in own_imports(module) if here is not None else ():
            there = room_of(name)
            if there not in (None, here):
                found.setdefault((str(here), str(there)), []).append(f"{module.name}:{line} asks {name}")
    return found


def against(found: dict[tuple[str, str], list[str]]) -> list[str]:
    return [where for (here, there), places in found.items() if RANK[there] >= RANK[here] for where in places]


def drawn(found: Iterable[tuple[str, str]]) -> str:
    """A line per room: whom it asks, nearest first, without what those ask anyway."""
    asks: dict[str, set[str]] = {room: set() for room in ROOMS}
    for here, there in found:
        asks[here].add(there)
    reached: dict[str, set[str]] = {}
    lines = []
    for room in ROOMS:
        beyond = set().union(*(reached[one] for one in asks[room])) if asks[room] else set()
        reached[room] = asks[room] | beyond
        nearest = sorted(asks[room] - beyond, key=lambda one: -RANK[one])
        lines.append(f"{room:9}→ {', '.join(nearest)}" if nearest else room)
    return "\n".join(reversed(lines)) + "\n"


def test_arrows_point_one_way():
    assert not against(arrows(modules()))


def test_every_room_has_its_place():
    assert {room for module in modules() if (room := room_of(module.name)) is not None} == set(ROOMS)


@pytest.mark.parametrize("module", [module for module in modules() if module.room == "log"], ids=lambda one: one.name)
def test_the_logs_engine_asks_nothing_of_a_node(module: Module):
    wrong = [name for name, _ in own_imports(module) if name.partition(".")[0] not in LOG_ASKS]
    assert not wrong, f"{module.path} asks {wrong}"


def test_the_drawing_is_what_the_imports_say():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    found = DRAWING.search(text)
    assert found is not None and found[1] == drawn(arrows(modules())), drawn(arrows(modules()))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("net.links.framing", "from cubecast.net.node.driver import Driver"),
        ("net.security.policy", "def f():\n    from cubecast.net.members import peers"),
        ("net.node.driver", "if TYPE_CHECKING:\n    from cubecast.net.live_node import LiveNode"),
        ("log.store", "import cubecast.net.port.port"),
    ],
)
def test_a_planted_double_arrow_is_found(name: str, code: str):
    planted = Module(name, PACKAGE / "planted.py", ast.parse(code))
    assert against(arrows([*modules(), planted]))
