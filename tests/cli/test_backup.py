"""What the operations guide says about keeping a log: exported beside the running node, copied when it is stopped."""

import json
import shutil
from pathlib import Path

from support.commands import cubecast, running_node

LINES = "".join(f"order {number}\n" for number in range(100))


def orders(directory: Path) -> list[str]:
    exported = cubecast("log", "export", directory)
    assert exported.returncode == 0, exported
    return [json.loads(line)["data"] for line in exported.stdout.splitlines()]


def test_a_log_is_exported_while_the_node_runs_and_copied_when_it_is_stopped(tmp_path: Path):
    data, copy = tmp_path / "data", tmp_path / "copy"
    with running_node("--data", data, "--log", ">") as node:
        assert cubecast("pub", "orders", "--node", node.address, text=LINES).returncode == 0
        while_it_runs = orders(data)
        assert node.stop() == 0
    shutil.copytree(data, copy)
    shutil.rmtree(data)
    assert cubecast("log", "check", copy).returncode == 0
    assert LINES.splitlines()[: len(while_it_runs)] == while_it_runs
    assert orders(copy) == LINES.splitlines()
    shutil.copytree(copy, data)
    with running_node("--data", data, "--log", ">") as node:
        again = cubecast("sub", "orders", "--since", "beginning", "--count", 100, "--node", node.address)
        assert again.stdout == LINES
        assert node.incarnation == 1, "it remembers that it lived before"
