"""Half an hour of churn and accidents on eight nodes: what processes take up is flat."""

import subprocess
import sys

import pytest

MINUTES = 30


@pytest.mark.slow
def test_nothing_grows_while_nodes_and_clients_come_and_go():
    command = [sys.executable, "-m", "bench.attack.soak", "--minutes", str(MINUTES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * (2 * MINUTES))
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
