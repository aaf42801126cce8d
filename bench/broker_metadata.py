"""Bytes that order costs per copy, in trees of brokers of several sizes: what LoCaMu puts in front of an event.

Binary trees of N brokers, 6 publishers, 12 subscribers, 60 events, published one after the other with the copies under
way meanwhile. A header is counted as the codec writes it.
"""

import argparse
from collections import deque
from random import Random
from statistics import mean
from typing import Any

import msgspec

from cubecast.protocol.brokers.machine import BrokerParameters, LoCaPS
from cubecast.protocol.brokers.packets import EventCopy
from cubecast.protocol.brokers.tree import binary
from cubecast.protocol.effects import CancelTimer, Effects, Send, SetTimer

EVENTS, PUBLISHERS, SUBSCRIBERS = 60, 6, 12
_encode = msgspec.msgpack.Encoder().encode


class Network:
    """Copies arrive in the order they were sent in, a hop per round."""

    def __init__(self, depth: int, faults: int) -> None:
        parameters = BrokerParameters(binary(depth), faults, ack_delay=2.0, patience=1e6)
        self.machines = {node: LoCaPS(node, parameters) for node in parameters.tree.neighbours}
        self.now = 0.0
        self.sizes: list[int] = []
        self._under_way: deque[tuple[int, int, Any]] = deque()
        self._timers: dict[tuple[int, Any], float] = {}

    def do(self, node: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                if isinstance(effect.packet, EventCopy):
                    self.sizes.append(len(_encode(effect.packet.header)))
                self._under_way.extend((node, peer, effect.packet) for peer in effect.peers)
            elif isinstance(effect, SetTimer):
                self._timers[node, effect.timer] = effect.at
            elif isinstance(effect, CancelTimer):
                self._timers.pop((node, effect.timer), None)

    def round(self) -> bool:
        """One hop of everything under way; False: nothing is."""
        self.now += 1.0
        for (node, timer), at in list(self._timers.items()):
            if at <= self.now and timer == "processed":
                del self._timers[node, timer]
                self.do(node, self.machines[node].on_timer(self.now, timer))
        arriving, self._under_way = self._under_way, deque()
        for sender, node, packet in arriving:
            self.do(node, self.machines[node].on_packet(self.now, sender, packet))
        return bool(self._under_way or any(timer == "processed" for _, timer in self._timers))

    def rest(self) -> None:
        while self.round():
            pass


def measure(depth: int, faults: int) -> list[int]:
    rng, network = Random(f"{depth} {faults}"), Network(depth, faults)
    nodes = list(network.machines)
    publishers = rng.sample(nodes, min(PUBLISHERS, len(nodes)))
    for node in publishers:
        network.do(node, network.machines[node].advertise(network.now, "t"))
    network.rest()
    for node in rng.sample(nodes, SUBSCRIBERS):
        network.do(node, network.machines[node].subscribe(network.now, "t"))
    network.rest()
    for _ in range(EVENTS):
        node = rng.choice(publishers)
        network.do(node, network.machines[node].publish(network.now, "t", [b"x"]))
        network.round()
    network.rest()
    return network.sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="*", default=[3, 5, 7, 9])
    parser.add_argument("--faults", type=int, nargs="*", default=[0, 1, 2, 3])
    given = parser.parse_args()
    for faults in given.faults:
        for depth in given.depths:
            sizes = measure(depth, faults)
            print(
                f"f = {faults}, N = {(1 << depth + 1) - 1:5}: {mean(sizes):7.1f} bytes a copy, at most {max(sizes):5} "
                f"({len(sizes)} copies)",
                flush=True,
            )


if __name__ == "__main__":
    main()
