"""Starting member processes, giving orders, adding up what they saw."""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from cubecast.errors import BadInput, CubecastError
from cubecast.experiments.live_load.load import Load
from cubecast.experiments.live_load.member import member

DEADLINE = 60.0
LOOK = 0.05
"""Seconds between two looks at how far everybody is."""
STILL = 60
"""So many looks without progress, and what is missing counts as lost."""


@dataclass(frozen=True)
class Measured:
    """One run of a load."""

    load: Load
    seconds: float
    deliveries: int
    """In the measured window, over all members."""
    published: int
    """In the whole run."""
    lost: int
    violations: int
    latencies: list[float]
    cpu_of_members: list[float]
    """Seconds, in the measured window."""

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu_of_members)

    @property
    def rate(self) -> float:
        return self.deliveries / self.seconds

    def percentile(self, percent: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else float("nan")


class Cluster:
    """Members in processes of their own, joined one after the other."""

    def __init__(self, load: Load, body: Callable[..., None] = member) -> None:
        if load.data is not None and load.data.exists() and any(load.data.iterdir()):
            raise BadInput(f"{load.data} is not empty; the members' logs need a directory of their own")
        context = multiprocessing.get_context("spawn")
        self._load = load
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self.addresses: list[str] = []
        join: str | None = None
        for number in range(load.members):
            ours, theirs = context.Pipe()
            process = context.Process(target=body, args=(load, number, theirs, join), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
            self.addresses.append(self._hear(ours))
            join = self.addresses[0]

    def tell(self, order: Any) -> list[Any]:
        """All at once; their answers in their order."""
        for pipe in self._pipes:
            pipe.send(order)
        return [self._hear(pipe) for pipe in self._pipes]

    def _hear(self, pipe: Connection) -> Any:
        if not pipe.poll(DEADLINE):
            raise CubecastError(f"a member of the benchmark did not answer for {DEADLINE:.0f} s")
        try:
            return pipe.recv()
        except EOFError:
            raise CubecastError("a member of the benchmark ended before its time") from None

    def close(self) -> None:
        for process in self._processes:
            process.join(DEADLINE / 10)
            process.kill()


def measure(load: Load, seconds: float, warm_up: float = 1.0, body: Callable[..., None] = member) -> Measured:
    """Let it run, look at a window of it, stop, wait until everything arrived."""
    cluster = Cluster(load, body)
    try:
        cluster.tell(cluster.addresses)
        cluster.tell("publish")
        time.sleep(warm_up)
        first = cluster.tell("sample" if load.rate else "look")
        time.sleep(seconds)
        last = cluster.tell("look")
        cluster.tell("pause")
        lost = _drain(cluster, load)
        return _measured(load, first, last, lost, cluster.tell("end"))
    finally:
        cluster.close()


def measure_messages(load: Load) -> Measured:
    """Let every member publish its number of messages, from the first one until the last is delivered everywhere."""
    cluster = Cluster(load)
    try:
        cluster.tell(cluster.addresses)
        first = cluster.tell("publish")
        lost = _drain(cluster, load)
        last = cluster.tell("pause")
        return _measured(load, first, last, lost, cluster.tell("end"))
    finally:
        cluster.close()


def _measured(load: Load, first: list[Any], last: list[Any], lost: int, end: list[Any]) -> Measured:
    pairs = list(zip(first, last, strict=True))
    return Measured(
        load,
        sum(b["time"] - a["time"] for a, b in pairs) / load.members,
        sum(b["delivered"] - a["delivered"] for a, b in pairs),
        sum(one["published"] for one in end),
        lost,
        sum(one["violations"] for one in end),
        [value for one in end for value in one["latencies"]],
        [b["cpu"] - a["cpu"] for a, b in pairs],
    )


def _drain(cluster: Cluster, load: Load) -> int:
    """How many deliveries are missing once nothing arrives any more."""
    still, missing, before = 0, 0, -1
    while still < STILL:
        time.sleep(LOOK)
        seen = cluster.tell("look")
        published = load.members * (load.messages or 0) or sum(one["published"] for one in seen)
        missing = load.members * published - sum(one["delivered"] for one in seen)
        if not missing:
            return 0
        still = still + 1 if missing == before else 0
        before = missing
    return missing
