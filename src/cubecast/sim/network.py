"""The delay model: one output queue per node, served one packet at a time, then propagation (Kurose and Ross).

A packet handed over at time t is processed for `processing`, waits until the queue is free, is transmitted for
`transmission` and arrives after a drawn propagation delay. The queue is never simulated packet by packet: when it will
be free is all there is to know. Faults decide, per packet, how many copies arrive and how late.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cubecast.ids import NodeId
from cubecast.sim.delays import Delay

Fate = Callable[[float, NodeId, NodeId], Sequence[float]]
"""(now, source, destination) → extra delay of each copy that arrives; no entry means the packet is lost."""


@dataclass
class Network:
    size: int
    propagation: Delay
    processing: float = 1.0
    transmission: float = 1.0
    fifo_links: bool = False
    queued_control: bool = True
    """Whether control packets wait in the output queue too; the papers' printed queue lengths suggest they did not."""

    def __post_init__(self) -> None:
        self.free_at = [0.0] * self.size
        self.queued = [0] * self.size  # packets that went through a node's output queue
        self.waited = [0.0] * self.size  # in the output queue, by all packets of a node together
        self.fate: Fate | None = None
        self._last_arrival: dict[tuple[NodeId, NodeId], float] = {}

    def arrivals(self, now: float, source: NodeId, destinations: Sequence[NodeId]) -> list[float]:
        """Queue a packet for each destination, in this order; when each arrives if nothing goes wrong."""
        transmission, propagation = self.transmission, self.propagation
        ready = now + self.processing
        free = max(self.free_at[source], ready)
        waited = 0.0
        arrivals = []
        for destination in destinations:
            waited += free - ready
            free += transmission
            arrivals.append(free + propagation(source, destination))
        self.free_at[source] = free
        self.queued[source] += len(destinations)
        self.waited[source] += waited
        if self.fifo_links:
            return [self.in_order(source, d, time) for d, time in zip(destinations, arrivals, strict=True)]
        return arrivals

    def arrivals_past_the_queue(self, now: float, source: NodeId, destinations: Sequence[NodeId]) -> list[float]:
        """The same for packets that do not wait for others."""
        departure = now + self.processing + self.transmission
        arrivals = [departure + self.propagation(source, destination) for destination in destinations]
        return [self.in_order(source, d, time) for d, time in zip(destinations, arrivals, strict=True)]

    def mean_queue_lengths(self) -> list[float]:
        """Per node, the length of its output queue as a packet joins it, that packet included, on average."""
        service = self.transmission or 1.0
        return [
            time / service / count + 1 if count else 0.0 for time, count in zip(self.waited, self.queued, strict=True)
        ]

    def in_order(self, source: NodeId, destination: NodeId, arrival: float) -> float:
        """With FIFO links, not before what was sent earlier on that link."""
        if not self.fifo_links:
            return arrival
        link = (source, destination)
        arrival = max(arrival, self._last_arrival.get(link, 0.0))
        self._last_arrival[link] = arrival
        return arrival
