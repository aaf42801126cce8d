"""kill −9 of a process that writes its log. The long form is `python -m bench.log_kills`."""

import json
import subprocess
import sys


def kills(*options: str) -> dict:
    # A process of its own, because it forks, which one with threads had better not do.
    done = subprocess.run(
        [sys.executable, "-m", "bench.log_kills", *options], capture_output=True, text=True, timeout=120
    )
    print(done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice():
    found = kills("--cycles", "100", "--seed", "7")
    assert found["kills"] == 100
    assert found["acknowledged"] > 1000
    assert found["replayed"] >= found["acknowledged"]
    assert (found["lost_or_twice"], found["damage"]) == (0, 0), found


def test_one_that_acknowledges_too_early_is_found_out():
    assert kills("--cycles", "10", "--lies")["lost_or_twice"] > 0
