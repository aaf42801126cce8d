"""What happens to a live cluster, when, and for how long: data that prints, drawn from a seed."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

from cubecast.ids import NodeId


class Accident(StrEnum):
    KILL = "kill"
    RESTART = "restart"
    """Killed, and started again as a new process without memory."""
    STOP = "stop"
    """The process stands still (SIGSTOP) and goes on."""
    DELAY = "delay"
    STALL = "stall"
    """Nothing passes between two nodes, either way; what was sent arrives afterwards."""
    CUT = "cut"
    """The same in one direction only."""
    DAMAGE = "damage"
    """Bytes between two nodes are changed."""
    RESET = "reset"
    """Their connections break, again and again."""


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    """Seconds after the load began."""
    accident: Accident
    node: NodeId
    peer: NodeId | None = None
    """The other end, for accidents on links."""
    seconds: float = 0.0
    """How long it lasts; a kill is for ever."""
    amount: float = 0.0
    """Seconds of delay, the chance of damage to a piece, or seconds between two resets."""

    def __str__(self) -> str:
        where = f"{self.node}" if self.peer is None else f"{self.node}-{self.peer}"
        lasting = f" for {self.seconds:.2f} s" if self.seconds else ""
        amount = f" ({self.amount:g})" if self.amount else ""
        return f"{self.at:.2f} {self.accident} {where}{lasting}{amount}"

    @property
    def until(self) -> float:
        return self.at + self.seconds


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    seed: int
    members: int
    faults: tuple[Fault, ...]
    rate: float = 100.0
    """Messages per second and member."""
    topics: int = 2

    def __str__(self) -> str:
        faults = ", ".join(map(str, self.faults)) or "nothing"
        return (
            f"seed {self.seed}: {self.members} members, {self.topics} topics, {self.rate:g} messages/s each; {faults}"
        )

    @property
    def killed(self) -> set[NodeId]:
        return {fault.node for fault in self.faults if fault.accident is Accident.KILL}

    @property
    def length(self) -> float:
        return max((fault.until for fault in self.faults), default=0.0)


def draw(seed: int, *, patience: float, members: int | None = None, faults: int | None = None) -> LiveSchedule:
    """One to five accidents within a few seconds; a minority at most is killed for good."""
    random = Random(seed)
    size = members or random.randint(3, 6)
    mortal = random.sample(range(size), (size - 1) // 2)
    chosen = sorted((_draw(random, size, mortal, patience) for _ in range(faults or random.randint(1, 5))), key=_when)
    return LiveSchedule(seed, size, tuple(_once_killed(chosen)), rate=random.choice((20.0, 100.0, 300.0)))


def _when(fault: Fault) -> float:
    return fault.at


def _draw(random: Random, size: int, mortal: list[NodeId], patience: float) -> Fault:
    accident = random.choice([one for one in Accident if one is not Accident.KILL or mortal])
    at, seconds = random.uniform(0.2, 2.0), random.uniform(0.2, 2.0) * patience
    node, peer = random.sample(range(size), 2)
    match accident:
        case Accident.KILL:
            return Fault(at, accident, random.choice(mortal))
        case Accident.RESTART:
            return Fault(at, accident, node, seconds=seconds / 2)
        case Accident.STOP:
            return Fault(at, accident, node, seconds=seconds)
        case Accident.DELAY:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.01, 0.3))
        case Accident.DAMAGE:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.01, 0.3))
        case Accident.RESET:
            return Fault(at, accident, node, peer, seconds, amount=random.uniform(0.02, 0.2))
        case _:
            return Fault(at, accident, node, peer, seconds)


def _once_killed(faults: list[Fault]) -> list[Fault]:
    """One accident per process at a time: those of a node that is killed or restarted begin and end before that."""
    kept: list[Fault] = []
    for fault in faults:
        same = [one for one in kept if one.peer is None and fault.peer is None and one.node == fault.node]
        if all(one.accident is not Accident.KILL and one.until < fault.at for one in same):
            kept.append(fault)
    return kept
