"""What can be chosen about EpTO, what follows from the number of processes, and what processes send each other."""

from dataclasses import dataclass
from enum import Enum
from math import ceil, e, inf, log, log2
from typing import ClassVar, NamedTuple

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Carried, Packet
from cubecast.protocol.parameters import check_parameters, parameter


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


_MANY = (1 << 16) - 1
_RULE = "corrected or as printed: "


@dataclass(frozen=True)
class EptoParameters:
    """0 where a number follows from the others: from the number of processes, or from the clock."""

    period: float = parameter(125.0, "δ, between two rounds of a process", live=0.005, above=0, unit="time")
    drift: float = parameter(0.0, "a round lasts period · (1 ± drift), drawn anew each time", least=0, most=2)
    clock: Clock = parameter(Clock.HYBRID, "what stamps an event: global, logical or hybrid", agree=True)
    fanout: int = parameter(0, "K, peers a ball goes to; 0: as the number of processes wants", least=0, most=_MANY)
    ttl: int = parameter(0, "TTL, hops of a copy; 0: as the number of processes wants", least=0, most=64)
    threshold: int = parameter(
        0, "an event older than this is stable; 0: TTL, TTL + 1 or 2 · TTL, as the clock wants", least=0, most=_MANY
    )
    relays: int = parameter(
        2, "rounds in which a process sends one event; 0: as often as it comes in, as printed", least=0, most=_MANY
    )
    expired: Expired = parameter(Expired.ORDER, "a copy that made all its hops: order, or drop, as printed")
    idle: int = parameter(
        50, "periods without a publication after which a publisher says how far it got; 0: never", least=0, most=_MANY
    )
    markers: int = parameter(3, "how often it says so before it rests", least=0, most=_MANY)
    patience: int = parameter(8, "periods a newcomer waits for somebody to tell it the time", least=0, most=_MANY)
    acceptance: Rule = parameter(Rule.CORRECTED, _RULE + "which events are accepted (algorithm 5, line 9)")
    ties: Rule = parameter(Rule.CORRECTED, _RULE + "equal timestamps (algorithm 5, line 23)")
    identity: Rule = parameter(Rule.CORRECTED, _RULE + "what names an event after a restart (algorithm 4, line 10)")
    newcomer: Rule = parameter(Rule.CORRECTED, _RULE + "the clock a process begins with (figure 5.5(b))")

    def __post_init__(self) -> None:
        check_parameters(self)

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


@dataclass(frozen=True)
class PublishedParameters(EptoParameters):
    """As printed, but for the sense of the comparison in algorithm 5, line 9, with which nothing is ever delivered."""

    clock: Clock = parameter(Clock.GLOBAL, "what stamps an event: global, logical or hybrid", agree=True)
    relays: int = parameter(
        0, "rounds in which a process sends one event; 0: as often as it comes in", least=0, most=_MANY
    )
    expired: Expired = parameter(Expired.DROP, "a copy that made all its hops: order, or drop")
    idle: int = parameter(
        0, "periods of silence after which a publisher says how far it got; 0: never", least=0, most=_MANY
    )
    ties: Rule = parameter(Rule.PRINTED, _RULE + "equal timestamps (algorithm 5, line 23)")
    identity: Rule = parameter(Rule.PRINTED, _RULE + "what names an event after a restart (algorithm 4, line 10)")
    newcomer: Rule = parameter(Rule.PRINTED, _RULE + "the clock a process begins with (figure 5.5(b))")


# What EpTO sends: balls of events, and what newcomers ask and are told.


class Entry(NamedTuple):
    """A copy of an event: a value, never shared between processes."""

    message: MessageId
    ts: float
    ttl: int
    payload: bytes | None
    """None: a marker, which says that its source has published up to its counter and nothing since."""


@dataclass(slots=True)
class Ball(Packet):
    """The events a process relays in one round, topic by topic."""

    parts: tuple[tuple[Topic, tuple[Entry, ...]], ...]
    publication: ClassVar[bool] = True
    bundle: ClassVar[bool] = True

    def carried(self) -> list[Carried]:
        return [
            Carried(topic, entry.message, 1)
            for topic, entries in self.parts
            for entry in entries
            if entry.payload is not None
        ]


@dataclass(slots=True)
class Hello(Packet):
    """A newcomer asks what the time is: an event stamped by a fresh logical clock would come too late everywhere."""

    incarnation: int


@dataclass(slots=True)
class Welcome(Packet):
    """The time, and, for who is new here, whom else one may talk to."""

    clock: float
    peers: tuple[NodeId, ...]

    def mentions(self) -> tuple[NodeId, ...]:
        return self.peers


PACKETS: tuple[type[Packet], ...] = (Ball, Hello, Welcome)
