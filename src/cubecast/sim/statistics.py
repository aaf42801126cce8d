"""What a run counts while it runs, so that a table needs no trace. Nothing here influences the run."""

from array import array
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecast.ids import MessageId, NodeId
from cubecast.sim.network import Network

FOLD_AT = 1 << 16  # entries of the log before they go into the digest


class Statistics:
    def __init__(self) -> None:
        self.published = 0
        self.deliveries = 0
        self.duplicates = 0
        self.false_positives = 0
        self.refused = 0
        self.reception = array("d")
        self.holding: dict[int, float] = {}  # number of the reception → how long it was held; most are not
        self.held: dict[tuple[NodeId, str, MessageId], tuple[int, float]] = {}  # number and time of the reception
        self.births: dict[tuple[str, MessageId], float] = {}  # of messages; packets know that of their first
        self.barrier = array("i")
        self._met: set[tuple[NodeId, str, MessageId]] = set()  # in bundles: gossip brings everything many times
        self.log = array("d")  # of every arrival and delivery, hashed a chunk at a time
        self._hash = blake2b(digest_size=16)

    def count_unusual(self, node: NodeId, packet: Any, now: float, subscriptions: set[str]) -> None:
        """An own message come back, one nobody here subscribed to, or a bundle of several.

        Each batch in a bundle counts when it comes for the first time, and as held until its delivery, if only for no
        time.
        """
        if not packet.bundle:
            self.false_positives += packet.message.source != node
            return
        for topic, message, *_ in packet.carried():
            key = (node, topic, message)
            if topic not in subscriptions:
                self.false_positives += 1
            elif message.source != node and key not in self._met:
                self._met.add(key)
                self.reception.append(now - self.births.get((topic, message), now))
                self.held[key] = (len(self.reception) - 1, now)

    def hold(self, node: NodeId, topic: str, message: MessageId, now: float) -> None:
        """What was received last was not delivered at once."""
        self.held.setdefault((node, topic, message), (len(self.reception) - 1, now))

    def release(self, node: NodeId, topic: str, message: MessageId, now: float) -> None:
        """It is delivered now, if it was held."""
        held = self.held.pop((node, topic, message), None)
        if held is not None:
            self.holding[held[0]] = now - held[1]

    def fold_when_long(self) -> None:
        if len(self.log) > FOLD_AT:
            self.fold()

    def fold(self) -> None:
        """Move the log into the digest."""
        self._hash.update(self.log)
        del self.log[:]

    def absorb(self, log: NDArray[np.float64]) -> None:
        """What another party logged goes into the digest."""
        self.fold()
        self._hash.update(log.data)

    def digest(self) -> str:
        """Equal for equal histories: every arrival's time and place, every delivery's place and message, in order."""
        self.fold()
        return self._hash.hexdigest()


def summary(values: Iterable[float]) -> dict[str, float]:
    data = np.sort(np.asarray(values, dtype=float))  # so that rounding depends on the values and not on their order
    if not data.size:
        return {"mean": 0.0, "p50": 0.0, "p99": 0.0, "max": 0.0}
    p50, p99 = np.percentile(data, [50, 99])
    return {"mean": float(data.mean()), "p50": float(p50), "p99": float(p99), "max": float(data.max())}


def report(statistics: Statistics, network: Network) -> dict[str, Any]:
    """The figures `cubecast sim --json` prints about a run. Held messages that were never delivered do not count."""
    reception = np.asarray(statistics.reception)
    holding = np.zeros(len(reception))
    holding[list(statistics.holding)] = list(statistics.holding.values())
    counted = (*("published", "deliveries", "duplicates", "false_positives", "refused"),)
    return {
        "packets": network.packets,
        "messages_sent": network.messages,
        "bytes": network.bytes,
        **{name: getattr(statistics, name) for name in counted},
        "reception_latency": summary(reception),
        "delivery_latency": summary(reception + holding),
        "holding_time": summary(holding),
        "barrier_size": summary(statistics.barrier),
        "queue_length": summary(network.mean_queue_lengths()),
    }
