"""The delay model: one output queue per node, served one packet at a time, then propagation (Kurose and Ross); what
`--propagation` may name, and how a packet's delay is drawn.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.contract import messages_in
from cubecast.sim.scheduler import Event, Scheduler

Delay: TypeAlias = Callable[[NodeId, NodeId], float]

FORMS = "constant:100, normal:100:25, uniform:10:20, quantiles:0=5,0.5=125,1=600, matrix:FILE.csv or planetlab"

# EpTO's PlanetLab latency is published as mean 157, deviation 119 and the percentiles 5/50/95 = 15/125/366 ticks. Three
# points are ours: the ends, and 75 %, chosen so that linear interpolation has mean 156.95 and deviation 118.98 as well.
PLANETLAB = ((0.0, 4.0), (0.05, 15.0), (0.5, 125.0), (0.75, 220.0), (0.95, 366.0), (1.0, 564.0))


def parse_delay(text: str, rng: Random, size: int) -> Delay:
    """The delay function a specification names, drawing from `rng`; for `size` nodes."""
    name, _, rest = text.partition(":")
    try:
        if name == "planetlab" and not rest:
            return quantiles(PLANETLAB, rng)
        if name == "quantiles":
            pairs = [point.split("=") for point in rest.split(",")]
            return quantiles([(float(share), float(value)) for share, value in pairs], rng)
        if name == "matrix":
            return matrix(_read_matrix(Path(rest)), size)
        numbers = [float(part) for part in rest.split(":")]
        make = {"constant": constant, "normal": normal, "uniform": uniform}[name]
        return make(*numbers, rng)  # type: ignore[operator,no-any-return]
    except (KeyError, ValueError, TypeError):
        raise BadInput(f"propagation {text!r} is not understood; write one of {FORMS}") from None


@dataclass(frozen=True)
class Constant:
    value: float

    def __call__(self, source: NodeId, destination: NodeId) -> float:
        return self.value


def constant(value: float, rng: Random) -> Constant:
    _positive("constant", value)
    return Constant(value)


def normal(mean: float, deviation: float, rng: Random) -> Delay:
    """Normal, drawn again until it is positive."""
    _positive("normal", mean)
    if not 0 <= deviation < inf:
        raise BadInput(f"a normal propagation delay needs a deviation of at least 0, not {deviation}")
    gauss = rng.gauss

    def draw(source: NodeId, destination: NodeId) -> float:
        while (value := gauss(mean, deviation)) <= 0:
            pass
        return value

    return draw


def uniform(low: float, high: float, rng: Random) -> Delay:
    _positive("uniform", low)
    if not low <= high < inf:
        raise BadInput(f"a uniform propagation delay goes from low to high, not from {low} to {high}")
    draw = rng.uniform
    return lambda source, destination: draw(low, high)


def quantiles(points: Sequence[tuple[float, float]], rng: Random) -> Delay:
    """Empirical: monotone linear interpolation between (share, value) points from share 0 to share 1."""
    shares, values = [share for share, _ in points], [value for _, value in points]
    if (
        len(points) < 2
        or shares[0] != 0
        or shares[-1] != 1
        or shares != sorted(set(shares))
        or values != sorted(values)
        or not values[-1] < inf
    ):
        raise BadInput(
            "quantiles go from share 0 to share 1 with growing values, for example quantiles:0=5,0.5=125,1=600"
        )
    _positive("quantiles", values[0])
    random = rng.random

    def draw(source: NodeId, destination: NodeId) -> float:
        share = random()
        k = min(bisect_right(shares, share), len(shares) - 1)
        fraction = (share - shares[k - 1]) / (shares[k] - shares[k - 1])
        return values[k - 1] + fraction * (values[k] - values[k - 1])

    return draw


def matrix(rows: Sequence[Sequence[float]], size: int) -> Delay:
    """One fixed delay per ordered pair of nodes."""
    if len(rows) < size or any(len(row) < size for row in rows):
        raise BadInput(
            f"the latency matrix is {len(rows)} × {min(map(len, rows), default=0)}; {size} nodes need {size} × {size}"
        )
    if any(value <= 0 for i, row in enumerate(rows) for j, value in enumerate(row) if i != j):
        raise BadInput("the latency matrix holds a delay that is not positive")
    return lambda source, destination: rows[source][destination]


def _read_matrix(path: Path) -> list[list[float]]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise BadInput(f"the latency matrix {path} cannot be read: {error.strerror}") from None
    return [[float(cell) for cell in line.split(",")] for line in lines if line.strip()]


def _positive(name: str, value: float) -> None:
    if not 0 < value < inf:
        raise BadInput(f"a {name} propagation delay must be positive and finite, not {value}")


# The output queue.

ARRIVAL = -2
"""In place of a node: a packet is there and waits until its receiver has dealt with those before it."""

Fate = Callable[[float, NodeId, NodeId, Any], Sequence[float]]
"""(now, source, destination, packet) → extra delay of each copy that arrives; no entry means the packet is lost."""


@dataclass
class Network:
    size: int
    propagation: Delay
    processing: float = 1.0
    transmission: float = 1.0
    fifo_links: bool = False
    queued_control: bool = True
    """Whether control packets wait too, for the output queue and their receiver; the papers' printed queue lengths
    suggest they did not."""
    scheduler: Scheduler = field(default_factory=Scheduler)
    reception: float = 0.0
    """What a node takes per packet it receives, one at a time; 0: it takes them as they come."""

    def __post_init__(self) -> None:
        self.free_at = [0.0] * self.size
        self.queued = [0] * self.size  # packets that went through a node's output queue
        self.waited = [0.0] * self.size  # in the output queue, by all packets of a node together
        self.ready_at = [0.0] * self.size  # when a node is done with the packets that reached it
        self.unqueued = 0  # packets that went past the queues
        self.messages = 0  # publications inside packets, a copy each time
        self.bytes = 0
        self.fate: Fate | None = None
        self.constant = self.propagation.value if isinstance(self.propagation, Constant) else 0.0  # saves a call
        self._last_arrival: dict[tuple[NodeId, NodeId], float] = {}

    @property
    def plain(self) -> bool:
        """Whether `carry` is enough: packets neither get lost nor keep an order nor pass each other nor wait."""
        return self.fate is None and not self.fifo_links and self.queued_control and not self.reception

    @property
    def lookahead(self) -> float:
        """How long after an event its packets arrive at the earliest; 0 when nothing can be said."""
        known = self.plain and self.constant
        return self.processing + self.transmission + self.constant if known else 0.0

    def carry(self, now: float, source: NodeId, destinations: tuple[NodeId, ...], packet: Any) -> None:
        """A copy of the encoded packet to each destination, in this order. The hot path: only for a plain network."""
        transmission, propagation, scheduler = self.transmission, self.propagation, self.scheduler
        buckets, tie, constant = scheduler.buckets, scheduler.tie, self.constant
        ready = now + self.processing
        free = self.free_at[source]
        if free < ready:
            free = ready
        waited = self.waited[source]
        for destination in destinations:
            waited += free - ready
            free += transmission
            time = free + (constant or propagation(source, destination))
            tie += 1
            bucket = buckets.get(int(time))
            if bucket is not None:
                bucket.append((time, tie, destination, source, packet))
            else:
                scheduler.push((time, tie, destination, source, packet))
        scheduler.tie = tie
        self.free_at[source] = free
        self.waited[source] = waited
        count = len(destinations)
        self.queued[source] += count
        self.bytes += len(packet.frame) * count
        if packet.publication:
            self.messages += (messages_in(packet) if packet.bundle else len(packet.payloads)) * count

    def carry_one(self, now: float, source: NodeId, destination: NodeId, packet: Any) -> list[int]:
        """The same under everything that can be different; the numbers of the copies that will arrive."""
        time = self._departure(now, source, packet) + (self.constant or self.propagation(source, destination))
        self.bytes += len(packet.frame)
        if packet.publication:
            self.messages += messages_in(packet)
        extras = self.fate(now, source, destination, packet) if self.fate is not None else (0.0,)
        copies, scheduler = [], self.scheduler
        for extra in extras:
            arrival = self._in_order(source, destination, time + extra) if self.fifo_links else time + extra
            scheduler.tie = tie = scheduler.tie + 1
            copies.append(tie)
            if self.reception and (packet.publication or self.queued_control):
                scheduler.push((arrival, tie, ARRIVAL, source, (destination, packet)))
            else:
                scheduler.push((arrival, tie, destination, source, packet))
        return copies

    def take(self, now: float, tie: int, source: NodeId, waiting: tuple[NodeId, Any]) -> None:
        """A packet arrived: its receiver deals with it when it is done with those before it."""
        destination, packet = waiting
        self.ready_at[destination] = done = max(now, self.ready_at[destination]) + self.reception
        self.scheduler.push((done, tie, destination, source, packet))

    def lose(self, node: NodeId, peer: NodeId) -> None:
        """What is under way between these two, in either direction, does not arrive."""
        ends = ((node, peer), (peer, node))

        def is_lost(event: Event) -> bool:
            destination = event[4][0] if event[2] == ARRIVAL else event[2]
            return (event[3], destination) in ends

        self.scheduler.drop(is_lost)

    def _departure(self, now: float, source: NodeId, packet: Any) -> float:
        ready = now + self.processing
        if not packet.publication and not self.queued_control:
            self.unqueued += 1
            return ready + self.transmission
        start = self.free_at[source]
        if start < ready:
            start = ready
        self.waited[source] += start - ready
        self.queued[source] += 1
        self.free_at[source] = left = start + self.transmission
        return left

    @property
    def packets(self) -> int:
        """How many were sent."""
        return sum(self.queued) + self.unqueued

    def mean_queue_lengths(self) -> list[float]:
        """Per node, the length of its output queue as a packet joins it, that packet included, on average."""
        service = self.transmission or 1.0
        return [
            time / service / count + 1 if count else 0.0 for time, count in zip(self.waited, self.queued, strict=True)
        ]

    def _in_order(self, source: NodeId, destination: NodeId, arrival: float) -> float:
        """With FIFO links, not before what was sent earlier on that link."""
        link = (source, destination)
        arrival = max(arrival, self._last_arrival.get(link, 0.0))
        self._last_arrival[link] = arrival
        return arrival
