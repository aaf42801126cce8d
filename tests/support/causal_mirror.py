"""Runs the machine in the simulator with the kernel's draws, and tells what both did in the same words."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from cubecast.ids import MessageId
from cubecast.protocol.effects import Deliver, Send
from cubecast.protocol.hypercube.causal_aggregation import Aggregation, CausalBroadcast, CausalParameters
from cubecast.protocol.hypercube.topology import dimension_of
from cubecast.sim.kernels.causal_broadcast import CausalKernel, CausalRun, Queue
from cubecast.sim.network import Network
from cubecast.sim.world import World
from cubecast.wire.codec import codec_named


@dataclass
class History:
    """Packets as (arrival, receiver, sender, messages, bytes), deliveries as (time, node, message)."""

    packets: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)


class Draws:
    """Propagation by (last message of the packet, receiver). Machines announce their packets just before the world
    asks for their delays, one by one in the same order."""

    def __init__(self, delays):
        self.delays = delays
        self.announced = deque()

    def __call__(self, source, destination):
        message, peer = self.announced.popleft()
        assert peer == destination
        return self.delays[message, peer]


class Watched(CausalBroadcast):
    def __init__(self, node, kernel, per_node, draws, history):
        mode = Aggregation.ON if kernel.aggregate else Aggregation.OFF
        parameters = CausalParameters(mode, kernel.tree, kernel.order, kernel.mtu)
        super().__init__(node, dimension_of(kernel.nodes), parameters)
        self.per_node, self.draws, self.history = per_node, draws, history

    def number(self, message: MessageId) -> int:
        return message.source * self.per_node + message.counter - 1

    def note(self, now, effects):
        for effect in effects:
            if isinstance(effect, Send):
                last = self.number(effect.packet.messages[-1].message)
                self.draws.announced.extend((last, peer) for peer in effect.peers)
            elif isinstance(effect, Deliver):
                self.history.deliveries.append((now, self.node, self.number(effect.message)))
        return effects

    def publish(self, now, topic, payloads):
        return self.note(now, super().publish(now, topic, payloads))

    def on_packet(self, now, sender, packet):
        messages = tuple(self.number(each.message) for each in packet.messages)
        self.history.packets.append((now, self.node, sender, messages, packet.size))
        return self.note(now, super().on_packet(now, sender, packet))


class LinkQueues(Network):
    """An output queue per link instead of one per node."""

    def carry(self, now, source, destinations, packet):
        for destination in destinations:
            self.carry_one(now, source, destination, packet)

    def carry_one(self, now, source, destination, packet):
        free = self.__dict__.setdefault("free_link", {})
        self.free_at[source] = free.get((source, destination), 0.0)
        copies = super().carry_one(now, source, destination, packet)
        free[source, destination] = self.free_at[source]
        return copies


def run_machine(kernel: CausalKernel, times, delays) -> History:
    history, draws = History(), Draws(delays)
    per_node = len(times) // kernel.nodes
    network_class = LinkQueues if kernel.queue is Queue.LINK else Network
    processing, transmission = kernel.processing, kernel.transmission
    if kernel.queue is Queue.NONE:  # nobody waits when transmission takes no time; it only has to be spent elsewhere
        processing, transmission = processing + transmission, 0.0
    network = network_class(kernel.nodes, draws, processing, transmission, reception=kernel.reception)
    nodes = range(kernel.nodes)
    world = World(
        nodes,
        lambda node, _: Watched(node, kernel, per_node, draws, history),
        network,
        codec_named("causal-broadcast"),
        careful=kernel.nodes <= 16,
    )
    for m, time in enumerate(times):
        world.at(time, world.publish, m // per_node, "t", (bytes(kernel.payload_bytes),))
    world.start()
    assert world.run()
    assert not draws.announced
    assert all(not world.machines[node].waiting() for node in nodes)
    return history


def history_of(run: CausalRun, times) -> History:
    order = np.lexsort((np.arange(run.packets), run.arrivals))
    packets = [
        (
            run.arrivals[p],
            run.receivers[p],
            run.senders[p],
            tuple(int(m) for m in run.messages_in(p)),
            run.bytes_per_packet[p],
        )
        for p in order
    ]
    delivered = run.delivery_times
    deliveries = [(time, node, m) for (node, m), time in np.ndenumerate(delivered)]
    return History(packets, deliveries)
