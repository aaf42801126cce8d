"""The delay model: one output queue per node, served one packet at a time, then propagation (Kurose and Ross).

A packet handed over at time t is processed for `processing`, waits until the queue is free, is transmitted for
`transmission` and arrives after a drawn propagation delay. The queue is never simulated packet by packet: when it will
be free is all there is to know. Faults decide, per packet, how many copies arrive and how late. Where receiving costs
time too (`reception`), a node takes the packets that arrived one after another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.contract import messages_in
from cubecast.sim.delays import Constant, Delay
from cubecast.sim.scheduler import Event, Scheduler

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
