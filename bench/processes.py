"""What this process and everything it started take of the machine: core seconds, resident memory (Linux)."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Places in /proc/PID/stat behind the name of the program, which may hold spaces.
_PARENT, _CORE_TIME, _RESIDENT = 1, slice(11, 15), 21


def machine_seconds() -> float:
    """Core seconds that anything on this machine has been busy since it started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / _TICKS


def own_seconds() -> float:
    """Core seconds of this process and its descendants, ended ones included where somebody waited for them."""
    return sum(sum(map(int, fields[_CORE_TIME])) for _, fields in _family()) / _TICKS


def seconds_by_program() -> dict[str, float]:
    """Core seconds of this process (`here`) and its descendants by what they are: java, node, python."""
    found: dict[str, float] = {}
    for process, fields in _family():
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        python = "node" if b"node" in words else "python"
        name = "here" if process == os.getpid() else "java" if words[0].endswith(b"java") else python
        found[name] = found.get(name, 0.0) + sum(map(int, fields[_CORE_TIME])) / _TICKS
    return found


def resident_sizes() -> dict[int, int]:
    """Bytes resident of this process and all its descendants."""
    return {process: int(fields[_RESIDENT]) * _PAGE for process, fields in _family()}


def _family() -> Iterator[tuple[int, list[str]]]:
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found[int(entry.name)] = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
    ours = {os.getpid()}
    while grown := {process for process, fields in found.items() if int(fields[_PARENT]) in ours} - ours:
        ours |= grown
    return ((process, found[process]) for process in ours)


class PeakMemory:
    """The highest resident size of this process and, apart, of the processes below it, while it watches."""

    def __init__(self) -> None:
        self.here = self.below = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            sizes = resident_sizes()
            self.here = max(self.here, sizes.pop(os.getpid(), 0))
            self.below = max(self.below, sum(sizes.values()))

    def __str__(self) -> str:
        return f"{self.here / 2**30:.1f} + {self.below / 2**30:.1f} GiB"
