"""Causal broadcast at paper scale: what to run, and what came of it, around the compiled kernel."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.causal_aggregation import PacketOrder, Tree
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.kernels import causal_tables as tables
from cubecast.sim.kernels.causal_kernel import run
from cubecast.sim.kernels.causal_tables import Bits, CausalScenario, CausalTables, Floats, Ints, make_tables

_ORDERS = {
    PacketOrder.ARRIVAL: tables.ARRIVAL,
    PacketOrder.CAUSAL: tables.CAUSAL,
    PacketOrder.WHOLE: tables.WHOLE,
}


class Queue(Enum):
    """What a packet waits for before it is transmitted."""

    NODE = "node"  # all that its sender queued before it
    LINK = "link"  # what its sender queued for the same peer
    NONE = "none"


_QUEUES = {Queue.NODE: tables.NODE_QUEUE, Queue.LINK: tables.LINK_QUEUE, Queue.NONE: tables.NO_QUEUE}


@dataclass(frozen=True)
class CausalKernel:
    """The protocol and its network. The draws are arguments of `simulate`, so that modes can share them."""

    nodes: int
    aggregate: bool = True
    tree: Tree = Tree.SOURCE
    order: PacketOrder = PacketOrder.ARRIVAL
    queue: Queue = Queue.NODE
    processing: float = 1.0
    transmission: float = 1.0
    reception: float = 0.0
    payload_bytes: int = 50
    mtu: int = 1500

    def simulate(self, times: Floats, delays: Floats) -> "CausalRun":
        """`times[m]`: when message m is published, by source and counter; infinite for never. `delays[m, k]`:
        propagation of a packet whose last message is m on its way to node k."""
        per_node, rest = divmod(len(times), self.nodes)
        if rest or not per_node or delays.shape != (len(times), self.nodes):
            raise BadInput("the kernel needs equally many messages of every node and a delay per message and node")
        if not (times >= 0).all() or not (delays > 0).all():
            raise BadInput("times must not be negative and delays must be positive")
        if self.reception and self.aggregate:
            raise BadInput("the kernel lets packets wait for their receiver only without aggregation")
        scenario = CausalScenario(
            dimension=dimension_of(self.nodes),
            per_node=per_node,
            times=np.ascontiguousarray(times, np.float64),
            delays=np.ascontiguousarray(delays, np.float64),
            aggregate=self.aggregate,
            single=self.tree is Tree.SINGLE,
            order=_ORDERS[self.order],
            queue=_QUEUES[self.queue],
            processing=self.processing,
            transmission=self.transmission,
            reception=self.reception,
            payload=self.payload_bytes,
            mtu=self.mtu,
        )
        state = make_tables(scenario)
        run(scenario, state)
        return CausalRun(scenario, state)


class CausalRun:
    """A finished run, as arrays."""

    def __init__(self, scenario: CausalScenario, state: CausalTables) -> None:
        self._scenario = scenario
        self._state = state
        self.packets = int(state.used[tables.EVENTS]) - len(scenario.times)
        sent = state.packets[: self.packets]
        self.arrivals: Floats = sent["time"]
        self.receivers: Ints = sent["receiver"]
        self.senders: Ints = sent["sender"]
        self.messages_per_packet: Ints = sent["count"]
        self.bytes_per_packet: Ints = sent["size"]
        self._first: Ints = sent["first"]

    @property
    def published(self) -> NDArray[np.bool_]:
        """Per message, whether it ever was."""
        return np.isfinite(self._scenario.times)

    @property
    def entries(self) -> Ints:
        """Per message, the entries of its compressed vector clock, its own included."""
        return self._state.entries

    @property
    def has_past(self) -> NDArray[np.bool_]:
        """Per message: whether it depends on any."""
        dependent: NDArray[np.bool_] = self._state.depth > 0
        return dependent

    @cached_property
    def past(self) -> NDArray[np.bool_]:
        """Per message and message: whether the second is in the past of the first."""
        bits = np.unpackbits(self._state.past.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : len(self._scenario.times)].astype(bool)

    @property
    def most_pending(self) -> Ints:
        """Per node, the most messages it held back at a time."""
        most: Ints = self._state.nodes["most_pending"]
        return most

    @property
    def mean_wait(self) -> float:
        """In an output queue, per packet."""
        return float(self._state.nodes["waited"].sum()) / self.packets

    @property
    def delivery_times(self) -> Floats:
        """Per node and message."""
        times: Floats = self._state.times["delivery"]
        return times

    @cached_property
    def reception_latency(self) -> Floats:
        """Per node and message; NaN where a node is the publisher, or nothing was published."""
        return self._latency("reception")

    @cached_property
    def delivery_latency(self) -> Floats:
        return self._latency("delivery")

    def _latency(self, field: str) -> Floats:
        latency: Floats = self._state.times[field] - self._scenario.times
        m = np.arange(latency.shape[1])
        latency[m // self._scenario.per_node, m] = np.nan
        latency[:, ~self.published] = np.nan
        return latency

    def messages_in(self, packet: int) -> NDArray[np.int32]:
        first = self._first[packet]
        return self._state.pool[first : first + self.messages_per_packet[packet]]

    def carried_in_packets_of(self, count: int) -> tuple[Ints, Ints]:
        """(receivers, messages) of all messages that travelled in packets of so many."""
        chosen = self.messages_per_packet == count
        places = self._first[chosen, None] + np.arange(count)
        return np.repeat(self.receivers[chosen], count), self._state.pool[places.ravel()]

    def most_aggregated(self) -> Ints:
        """Per node, the most messages in one packet it sent."""
        most = np.zeros(len(self._state.nodes), np.int32)
        np.maximum.at(most, self.senders, self.messages_per_packet)
        return most

    def complete(self) -> bool:
        """Whether every node received and delivered every message."""
        messages = self.published.sum()
        return bool((np.bitwise_count(self._state.here[:, : tables.AWAITED]).sum(axis=2) == messages).all())

    def direct_dependencies(self) -> NDArray[np.int64]:
        """Per message, the size of a causal barrier: messages of its past that are in the past of no other of them."""
        rows: Bits = self._state.past
        return np.array(
            [
                np.bitwise_count(row & ~np.bitwise_or.reduce(rows[members], axis=0, initial=0)).sum()
                for row, members in zip(rows, self.past, strict=True)
            ]
        )
