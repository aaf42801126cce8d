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

    def __post_init__(self) -> None:
        self.free_at = [0.0] * self.size
        self.packets_sent = [0] * self.size
        self.backlog_seen = [0.0] * self.size
        """Per node, the sum over its packets of how many stood before it in the output queue."""
        self.fate: Fate | None = None
        self._last_arrival: dict[tuple[NodeId, NodeId], float] = {}

    def arrival(self, now: float, source: NodeId, destination: NodeId) -> float:
        """Queue a packet; when it arrives if nothing goes wrong."""
        ready = now + self.processing
        free = self.free_at[source]
        if free > ready:
            self.backlog_seen[source] += (free - ready) / self.transmission if self.transmission else 0.0
            ready = free
        self.packets_sent[source] += 1
        departure = self.free_at[source] = ready + self.transmission
        arrival = departure + self.propagation(source, destination)
        return self._in_order(source, destination, arrival) if self.fifo_links else arrival

    def arrivals(self, now: float, source: NodeId, destination: NodeId) -> list[float]:
        """Queue a packet under the faults in force; when each of its copies arrives."""
        first = self.arrival(now, source, destination)
        if self.fate is None:
            return [first]
        late = [first + extra for extra in self.fate(now, source, destination)]
        return [self._in_order(source, destination, time) for time in late] if self.fifo_links else late

    def mean_backlog(self) -> list[float]:
        """Per node, how many packets a packet found before it in the output queue, on average."""
        return [seen / sent if sent else 0.0 for seen, sent in zip(self.backlog_seen, self.packets_sent, strict=True)]

    def _in_order(self, source: NodeId, destination: NodeId, arrival: float) -> float:
        link = (source, destination)
        arrival = max(arrival, self._last_arrival.get(link, 0.0))
        self._last_arrival[link] = arrival
        return arrival
