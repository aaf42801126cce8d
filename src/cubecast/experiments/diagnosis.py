"""How many testing rounds VCube's diagnosis needs, and how many tests a round has (thesis 2019, §2.4).

The paper: every fault-free node knows of an event after at most log2² N rounds, log2 N on average; without faults a
round has at most N · log2 N tests. Here an event's latency is the time from the event to the moment the last fault-free
node knows, in rounds; so the rest of the round in which it happens counts too.

`python -m cubecast.experiments.diagnosis` prints the table of docs/papers/vcube.md.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import Effects, Send
from cubecast.protocol.hypercube.diagnosis import Diagnosis, DiagnosisParameters
from cubecast.protocol.hypercube.packets import Test, TestReply
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.config import stream
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.recorder import Recorder
from cubecast.sim.world import World
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind
from cubecast.wire.codec import Codec

PARAMETERS = DiagnosisParameters(interval=10_000.0, timeout=20.0)
SIZES = (8, 16, 32, 64, 128, 256)


class Start(Enum):
    """When the nodes' rounds begin."""

    SCATTERED = "scattered"  # each at its own time
    TOGETHER = "together"  # all at once, the papers' model: news travels one step per round


class CountedDiagnosis(Diagnosis):
    """Counts the tests it sends into a list shared by all nodes: (time of the send) each."""

    tests: list[float]

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        effects = super().on_timer(now, timer)
        self.tests += [now for effect in effects if type(effect) is Send and type(effect.packet) is Test]
        return effects


@dataclass(frozen=True)
class Latencies:
    """Of one world: rounds until all fault-free nodes knew, per event, and tests of all nodes per round."""

    crashes: tuple[float, ...]
    returns: tuple[float, ...]
    tests_per_round: float
    tests_per_round_with_faults: float


class DiagnosisWorld:
    """N nodes that test each other over fast links."""

    def __init__(self, size: int, seed: int, start: Start = Start.SCATTERED, *, coded: bool = False) -> None:
        self.size = size
        self.interval = PARAMETERS.interval
        self._start = start
        self.trace: list[Event] = []
        self.tests: list[float] = []
        self._phases = stream(seed, "phases")
        network = Network(size, parse_delay("constant:1", stream(seed, "network"), size), 0.0, 0.0)
        recorder = Recorder(self.trace, packets=False)
        codec = Codec((Test, TestReply))
        self.world = World(range(size), self._make, network, codec, recorder=recorder, coded=coded, careful=size <= 32)
        self.world.start()

    def _make(self, node: NodeId, incarnation: int) -> Diagnosis:
        d = dimension_of(self.size)
        phase = self._phases.uniform(0, self.interval) if self._start is Start.SCATTERED else 0.0
        machine = CountedDiagnosis(node, d, PARAMETERS, incarnation=incarnation, phase=phase)
        machine.tests = self.tests
        return machine

    def machine(self, node: NodeId) -> Diagnosis:
        machine: Any = self.world.machines[node]
        assert isinstance(machine, Diagnosis)
        return machine

    def run_rounds(self, rounds: float) -> None:
        self.world.run(until=self.world.now + rounds * self.interval)

    def tests_in_four_rounds(self) -> float:
        """Per round, the mean of the next four."""
        before = len(self.tests)
        self.run_rounds(4)
        return (len(self.tests) - before) / 4

    def knowing(self, peer: NodeId, since: float, kind: Kind) -> dict[NodeId, float]:
        """Who noted a change of that peer, and when first."""
        rows = [e for e in self.trace if e.kind == kind and e.peer == peer and e.time >= since and e.node != peer]
        return {event.node: event.time for event in reversed(rows)}

    def rounds_until_known(
        self, peers: Sequence[NodeId], by: Sequence[NodeId], since: float, kind: Kind
    ) -> tuple[float, ...]:
        """For each peer, the rounds until the last of `by` noted the change; log2² N rounds at most."""
        end = since + dimension_of(self.size) ** 2 * self.interval
        while self.world.now < end:
            self.run_rounds(1)
            known = [self.knowing(peer, since, kind) for peer in peers]
            if all(node in times for times in known for node in by):
                return tuple((max(times[node] for node in by) - since) / self.interval for times in known)
        raise AssertionError(f"after log2² N rounds not all of {len(by)} fault-free nodes know about {list(peers)}")


def measure(size: int, faults: int, seed: int, start: Start = Start.SCATTERED) -> Latencies:
    """Crash `faults` nodes at once, wait, let them return at once."""
    rng = stream(seed, "diagnosis", size, faults)
    lab = DiagnosisWorld(size, seed, start)
    lab.run_rounds(dimension_of(size) + 2)
    fault_free_tests = lab.tests_in_four_rounds()
    victims = rng.sample(range(size), faults)
    survivors = [node for node in range(size) if node not in victims]
    crashed_at = _apply(lab, lab.world.crash, victims, rng.uniform(0, lab.interval))
    crashes = lab.rounds_until_known(victims, survivors, crashed_at, Kind.SUSPECT)
    tests_with_faults = lab.tests_in_four_rounds()
    returned_at = _apply(lab, lab.world.restart, victims, rng.uniform(0, lab.interval))
    returns = lab.rounds_until_known(victims, survivors, returned_at, Kind.VIEW)
    return Latencies(crashes, returns, fault_free_tests, tests_with_faults)


def _apply(lab: DiagnosisWorld, act: Any, victims: Sequence[NodeId], after: float) -> float:
    time = lab.world.now + after
    for victim in victims:
        lab.world.at(time, act, victim)
    return time


def table(sizes: Sequence[int] = SIZES, repeats: int = 5) -> list[str]:
    lines = [
        "| N | faults at once | rounds start | crash: mean (max) rounds | return: mean (max) rounds | log2 N | log2² N "
        "| tests per round | with the faults | N · log2 N |",
        "| --- " * 10 + "|",
    ]
    return lines + [
        _row(size, faults, start, repeats) for size in sizes for faults in (1, size // 4) for start in Start
    ]


def _row(size: int, faults: int, start: Start, repeats: int) -> str:
    d = dimension_of(size)
    runs = [measure(size, faults, seed, start) for seed in range(repeats)]
    cells = [
        *(str(size), str(faults), start.value),
        _mean_max([value for run in runs for value in run.crashes]),
        _mean_max([value for run in runs for value in run.returns]),
        *(str(d), str(d * d)),
        f"{max(run.tests_per_round for run in runs):.0f}",
        f"{max(run.tests_per_round_with_faults for run in runs):.0f}",
        str(size * d),
    ]
    return "| " + " | ".join(cells) + " |"


def _mean_max(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f} ({max(values):.2f})"


if __name__ == "__main__":
    print("\n".join(table()))  # noqa: T201 - this is its output
