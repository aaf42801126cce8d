"""What can be chosen about EpTO, and what follows from the number of processes."""

from dataclasses import dataclass
from enum import Enum
from math import ceil, e, inf, isfinite, log, log2

from cubecast.errors import BadInput


class Clock(Enum):
    """What stamps an event."""

    GLOBAL = "global"  # the time itself: right only where all processes read the same clock
    LOGICAL = "logical"  # Lamport's
    HYBRID = "hybrid"  # the process's own clock, pushed forward by what it hears


class Expired(Enum):
    """What becomes of a copy that has made all its hops."""

    ORDER = "order"  # not relayed any more, but ordered and delivered
    DROP = "drop"  # as printed: ignored


class Rule(Enum):
    CORRECTED = "corrected"
    PRINTED = "printed"


@dataclass(frozen=True)
class EptoParameters:
    """0 where a number follows from the others: from the number of processes, or from the clock."""

    period: float = 125.0
    """δ, time between two rounds of a process."""
    drift: float = 0.0
    """A round lasts period · (1 ± drift), drawn anew each time."""
    clock: Clock = Clock.HYBRID
    fanout: int = 0
    """K, peers a ball goes to."""
    ttl: int = 0
    """TTL, hops of a copy."""
    threshold: int = 0
    """An event older than this is stable."""
    relays: int = 2
    """Rounds in which a process sends one event; 0: as often as it comes in, as printed."""
    expired: Expired = Expired.ORDER
    idle: int = 50
    """Periods without a publication after which a publisher says how far it got; 0: never."""
    markers: int = 3
    """How often it says so before it rests."""
    patience: int = 8
    """Periods a newcomer waits for somebody to tell it the time."""
    acceptance: Rule = Rule.CORRECTED
    ties: Rule = Rule.CORRECTED
    identity: Rule = Rule.CORRECTED
    newcomer: Rule = Rule.CORRECTED

    def __post_init__(self) -> None:
        if not (isfinite(self.period) and self.period > 0):
            raise BadInput(f"the period must be positive, not {self.period}")
        if not 0 <= self.drift <= 2:
            raise BadInput(f"the drift must be between 0 and 2, not {self.drift}")
        for name in ("fanout", "ttl", "threshold", "relays", "idle", "markers", "patience"):
            if not 0 <= getattr(self, name) < 1 << 16:
                raise BadInput(f"{name} must be between 0 and {(1 << 16) - 1}, not {getattr(self, name)}")

    def fanout_of(self, processes: int) -> int:
        """⌈2e · ln n / ln ln n⌉, and not more than there are others."""
        if self.fanout:
            return min(self.fanout, processes - 1)
        return (
            processes - 1 if processes < 3 else min(processes - 1, ceil(2 * e * log(processes) / log(log(processes))))
        )

    def ttl_of(self, processes: int) -> int:
        """⌈lg n⌉, and at least one hop."""
        return self.ttl or max(1, ceil(log2(processes)))

    def threshold_of(self, processes: int) -> int:
        """TTL with a global clock, one more as a margin with a hybrid one, 2 · TTL with a logical one."""
        ttl = self.ttl_of(processes)
        return self.threshold or {Clock.GLOBAL: ttl, Clock.HYBRID: ttl + 1, Clock.LOGICAL: 2 * ttl}[self.clock]

    @property
    def tick(self) -> float:
        """The least a clock moves with a publication: small against a round, so that it hardly runs ahead."""
        return 1.0 if self.clock is Clock.LOGICAL else self.period / 1024

    @property
    def latest(self) -> float:
        """No honest timestamp is above; beyond it, a tick would be lost in rounding."""
        return float(1 << 52) if self.clock is Clock.LOGICAL else self.period * (1 << 42)

    @property
    def most_relays(self) -> float:
        return self.relays or inf


PUBLISHED = EptoParameters(
    clock=Clock.GLOBAL,
    relays=0,
    expired=Expired.DROP,
    idle=0,
    ties=Rule.PRINTED,
    identity=Rule.PRINTED,
    newcomer=Rule.PRINTED,
)
"""As printed, but for the sense of the comparison in algorithm 5, line 9, with which nothing is ever delivered."""
