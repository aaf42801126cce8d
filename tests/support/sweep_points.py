"""Kinds of points for tests of sweeps: they leave a mark per execution, fail, die, or wait."""

import os
import signal
import threading
import time
from pathlib import Path
from uuid import uuid4

from cubecast.experiments.sweep.grid import Parameters
from cubecast.experiments.sweep.kinds import Figures, PointKind

_executed_here: list[int] = []
"""Of this process: lives as long as what a Python worker has imported and compiled."""


def _mark(parameters: Parameters) -> None:
    """One file per execution, whoever executes it."""
    Path(str(parameters["marks"]), f"{parameters['x']}-{parameters['seed']}-{uuid4()}").touch()


def executions(marks: Path) -> list[str]:
    """Which (x, seed) were executed, one entry per execution."""
    return sorted(path.name[:-37] for path in marks.iterdir())


def counted(parameters: Parameters) -> Figures:
    _mark(parameters)
    _executed_here.append(int(parameters["x"]))
    return {
        "square": int(parameters["x"]) ** 2,
        "executed_here": len(_executed_here),
        "nested": {"seed": parameters["seed"]},
    }


def failing(parameters: Parameters) -> Figures:
    if int(parameters["x"]) % 2:
        raise ValueError(f"{parameters['x']} is odd\nand this line is too much")
    return counted(parameters)


def dying(parameters: Parameters) -> Figures:
    """The first execution of x = 2 kills the Python worker it runs in."""
    marks = Path(str(parameters["marks"]))
    first = not any(name.startswith("2-") for name in executions(marks))
    figures = counted(parameters)
    if parameters["x"] == 2 and first:
        os.kill(os.getpid(), signal.SIGKILL)
    return figures


def always_dying(parameters: Parameters) -> Figures:
    _mark(parameters)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def seen_mark(marks: Path) -> Path:
    return marks.parent / "seen"


def watched(parameters: Parameters) -> Figures:
    """Runs until somebody has seen it running, or for half a minute."""
    seen, deadline = seen_mark(Path(str(parameters["marks"]))), time.monotonic() + 30
    while not seen.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    return counted(parameters)


def a_few_first(parameters: Parameters) -> Figures:
    """Some finish at once; the others run until that was seen."""
    is_one_of_few = len(executions(Path(str(parameters["marks"])))) < 3
    return counted(parameters) if is_one_of_few else watched(parameters)


def broken_disk(parameters: Parameters) -> Figures:
    raise OSError(f"no space left for {parameters['x']}")


IN_BATCHES = PointKind(dying, cost=lambda parameters: 0.0)
"""All points of a sweep in few tasks."""
NOT_A_POINT = 7
