"""A cluster file: everybody knows everybody's address, nobody has to be first."""

import json
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import pytest

from support.commands import DEADLINE, RunningNode, complaint, cubecast, running, running_node
from support.ports import free_addresses

SETTINGS = """
cluster = "static"
dimension = 2
round_length = 0.2
retry = 0.2
patience = 3.0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    peers = [f'{node} = "{address}"' for node, address in enumerate(free_addresses(3))]
    path = tmp_path / "cluster.toml"
    path.write_text("\n".join([SETTINGS, "[peers]", *peers, ""]))
    return path


def started(stack: ExitStack, file: Path, *nodes: int) -> list[RunningNode]:
    """At once: all processes run before the first line of any of them is waited for."""
    commands = [stack.enter_context(running("node", "--json", "--config", file, "--id", node)) for node in nodes]
    return [RunningNode(one.process, **json.loads(one.line())) for one in commands]


def members(node: RunningNode) -> dict[int, bool]:
    status = cubecast("status", "--node", node.address, "--cluster", "static", "--json")
    return {one["node"]: one["alive"] for one in json.loads(status.stdout)["members"]}


def settled(node: RunningNode, *living: int) -> bool:
    """They live together in the end: who took part before it heard of the others begins anew with them."""
    expected, deadline = {number: number in living for number in range(3)}, monotonic() + DEADLINE
    while (seen := members(node)) != expected and monotonic() < deadline:
        pass
    return seen == expected


def test_three_start_at_once_and_one_comes_back(file: Path):
    with ExitStack() as stack:
        nodes = started(stack, file, 0, 1, 2)
        assert all(settled(node, 0, 1, 2) for node in nodes)
        nodes[1].kill()
        (again,) = started(stack, file, 1)
        assert again.incarnation > nodes[1].incarnation
        with running("sub", "news", "--node", nodes[2].address, "--cluster", "static", errors_too=True) as reader:
            reader.line()
            cubecast("pub", "news", "back", "--node", again.address, "--cluster", "static")
            assert reader.line() == "back"
        assert settled(nodes[0], 0, 1, 2)


def test_a_rolling_restart_costs_a_reader_on_another_node_nothing(file: Path):
    with ExitStack() as stack:
        nodes = started(stack, file, 0, 1, 2)
        where = ("--cluster", "static", "--node")
        reader = stack.enter_context(running("sub", "news", *where, nodes[0].address, errors_too=True))
        assert reader.line() == "subscribed to news"
        for number in (1, 2):
            assert nodes[number].stop() == 0
            cubecast("pub", "news", f"without {number}", *where, nodes[3 - number].address)
            (nodes[number],) = started(stack, file, number)
            cubecast("pub", "news", f"with {number}", *where, nodes[number].address)
        assert [reader.line() for _ in range(4)] == ["without 1", "with 1", "without 2", "with 2"]
        assert settled(nodes[0], 0, 1, 2)


def test_mistakes_in_the_file(tmp_path: Path, file: Path):
    assert "this node's id 3 is not among them" in complaint("node", "--config", file, "--id", 3)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("dimension = 'two'\n")
    assert "dimension must be a whole number from 1 to 13" in complaint("node", "--config", wrong)
    wrong.write_text("colour = 1\n")
    assert "unknown key colour" in complaint("node", "--config", wrong)
    wrong.write_text("= 1\n")
    assert "is not valid TOML" in complaint("node", "--config", wrong)


def test_another_cluster_beside_it_is_not_disturbed(file: Path):
    with ExitStack() as stack:
        nodes = started(stack, file, 0, 1)
        other = stack.enter_context(running_node("--cluster", "other"))
        assert "does not belong to cluster 'other'" in complaint(
            "node", "--join", nodes[0].address, "--cluster", "other"
        )
        assert settled(nodes[0], 0, 1)
        status = json.loads(cubecast("status", "--node", other.address, "--cluster", "other", "--json").stdout)
        assert [one["address"] for one in status["members"]] == [other.address]
