"""The command line in processes of its own, with deadlines: what a user types, what comes out."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Any

PROGRAM = (sys.executable, "-c", "import sys; sys.argv[0] = 'cubecast'; from cubecast.cli import main; main()")
DEADLINE = 120.0
LIFETIME = 1200.0
"""Of what goes on until stopped: several commands may talk to it, each with a deadline of its own."""


def cubecast(*arguments: object, text: str = "", deadline: float = DEADLINE) -> subprocess.CompletedProcess[str]:
    """Run to the end; `text` is its standard input."""
    words = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=deadline, check=False)


def complaint(*arguments: object, text: str = "") -> str:
    """The one line a command that was asked for something impossible leaves; its exit code is 2."""
    ended = cubecast(*arguments, text=text)
    assert ended.returncode == 2, ended
    assert not ended.stdout, "nothing but the complaint"
    (line,) = ended.stderr.splitlines()
    return line.removeprefix("cubecast: ")


@dataclass
class Running:
    """A command that goes on until stopped."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)


@contextmanager
def running(
    *arguments: object, errors_too: bool = False, program: Sequence[str] = PROGRAM, env: Mapping[str, str] = os.environ
) -> Iterator[Running]:
    """Killed when the block ends, and when its lifetime is over, so that nobody waits for its next line for ever."""
    process = subprocess.Popen(
        [*program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors_too else None,
        text=True,
        env={**env, "PYTHONUNBUFFERED": "1"},
    )
    watchdog = Timer(LIFETIME, process.kill)
    watchdog.start()
    try:
        yield Running(process)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait(DEADLINE)
        assert process.stdout is not None
        process.stdout.close()


@dataclass
class RunningNode(Running):
    node: int
    incarnation: int
    address: str
    http: str | None = None


@contextmanager
def running_node(*arguments: object) -> Iterator[RunningNode]:
    """A node that takes part."""
    with running("node", "--json", *arguments) as command:
        about: dict[str, Any] = json.loads(command.line())
        yield RunningNode(command.process, **about)
