"""VCube's diagnosis: who is correct, found out by tests that double as the spreading of news (thesis 2019, §2.4).

Theory of operation. Every node keeps one event counter per id: even = correct, odd = faulty, larger = newer, −1 =
unknown. Once per testing round it tests, for each of its clusters s, the nodes of c(i, s) in order until one replies,
and takes every newer counter from that reply. A node that does not reply in time gets the next odd counter. So without
faults a node sends log2 N tests per round, and news doubles its audience with every round.

A node that hears it is held faulty is not: it takes the next even counter, which is a new incarnation. The test names
the tester's counter for the tested node, so a wrong suspicion is put right by the first test that reaches it.

| paper                  | here                       |
|------------------------|----------------------------|
| timestamps / events    | `events`, one counter per id |
| c(i, s)                | `topology.cluster_members` |
| a test with a time-out | `_test`, `_testing[s]`     |
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from cubecast.errors import BadInput, LocalProtocolError, RemoteProtocolError
from cubecast.ids import Incarnation, NodeId
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import CancelTimer, Effects, Observe, Send, SetTimer
from cubecast.protocol.hypercube.packets import Test, TestReply
from cubecast.protocol.hypercube.topology import cluster_members

UNKNOWN = -1


@dataclass(frozen=True)
class DiagnosisParameters:
    interval: float = 1000.0
    """Between the starts of two testing rounds of a node."""
    timeout: float = 10.0
    """Without a reply for that long, the tested node is faulty."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout < self.interval:
            raise BadInput(f"0 < timeout < interval is needed, not timeout {self.timeout}, interval {self.interval}")


@dataclass(slots=True)
class RunningTest:
    """The test under way in one cluster: the member with that index is being asked."""

    number: int
    members: list[NodeId]
    index: int = 0

    @property
    def peer(self) -> NodeId:
        return self.members[self.index]


class Diagnosis(Handlers):
    """The machine of one node. `phase` is when its first round starts: rounds of different nodes need no agreement."""

    def __init__(
        self,
        node: NodeId,
        dimension: int,
        parameters: DiagnosisParameters,
        *,
        incarnation: Incarnation = 0,
        phase: float = 0.0,
    ) -> None:
        self.node = node
        self.dimension = dimension
        self.parameters = parameters
        self.phase = phase
        self.events = [UNKNOWN] * (1 << dimension)
        self.events[node] = 2 * incarnation
        self._told: tuple[int, ...] | None = None  # `events` as replies carry them, until they change
        self._tests = 0
        self._testing: dict[int, RunningTest] = {}

    def holds_faulty(self, peer: NodeId) -> bool:
        return self.events[peer] > 0 and self.events[peer] % 2 == 1

    def holds_correct(self, peer: NodeId) -> bool:
        return self.events[peer] % 2 == 0

    # Testing rounds

    def on_start(self, now: float) -> Effects:
        return [SetTimer("round", now + self.phase)]

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        if timer == "round":
            return self.on_round(now)
        if isinstance(timer, tuple) and timer[0] == "test" and timer[1] in self._testing:
            return self.on_test_timeout(now, timer[1])
        raise LocalProtocolError(f"diagnosis did not set the timer {timer!r}")

    def on_round(self, now: float) -> Effects:
        effects: Effects = [SetTimer("round", now + self.parameters.interval)]
        for s in range(1, self.dimension + 1):
            if s not in self._testing:  # a cluster full of faulty nodes may take longer than a round
                self._testing[s] = RunningTest(0, cluster_members(self.node, s))
                self._test(now, s, effects)
        return effects

    def _test(self, now: float, s: int, effects: Effects) -> None:
        running = self._testing[s]
        self._tests += 1
        running.number = self._tests
        effects.append(Send((running.peer,), Test(running.number, self.events[running.peer])))
        effects.append(SetTimer(("test", s), now + self.parameters.timeout))

    def on_test_timeout(self, now: float, s: int) -> Effects:
        running = self._testing[s]
        effects: Effects = []
        if not self.holds_faulty(running.peer):
            self._learn(
                running.peer, self.events[running.peer] + (1 if self.holds_correct(running.peer) else 2), effects
            )
        running.index += 1
        if running.index < len(running.members):
            self._test(now, s, effects)
        else:
            del self._testing[s]
        return effects

    # Packets

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if type(packet) is Test:
            return self.on_test(sender, packet)
        if type(packet) is TestReply and len(packet.events) == len(self.events):
            return self.on_test_reply(sender, packet)
        raise RemoteProtocolError(f"node {sender} sent a {type(packet).__name__} that diagnosis cannot use")

    def on_test(self, sender: NodeId, packet: Test) -> Effects:
        effects: Effects = []
        # DEVIATION vcube §2.4: a test tells the tested node how it is held; so a wrong suspicion ends soon.
        self._learn(self.node, packet.event, effects)
        effects.append(Send((sender,), TestReply(packet.number, self._tell())))
        return effects

    def _tell(self) -> tuple[int, ...]:
        if self._told is None:
            self._told = tuple(self.events)
        return self._told

    def on_test_reply(self, sender: NodeId, packet: TestReply) -> Effects:
        """News is news, even in a reply that comes too late to end its test."""
        effects: Effects = []
        s = (self.node ^ sender).bit_length()
        running = self._testing.get(s)
        if running is not None and running.number == packet.number and running.peer == sender:
            del self._testing[s]
            effects.append(CancelTimer(("test", s)))
        if packet.events == self._tell():
            return effects
        for peer, event in enumerate(packet.events):
            if event > self.events[peer]:
                self._learn(peer, event, effects)
        return effects

    def _learn(self, peer: NodeId, event: int, effects: Effects) -> None:
        if event <= self.events[peer]:
            return
        if peer == self.node:
            event += event % 2  # held faulty: the next even counter says otherwise
        before = self.events[peer]
        self.events[peer] = event
        self._told = None
        if peer == self.node:
            effects.append(Observe("view", peer=peer, detail=f"new incarnation, event {event}"))
        elif event % 2:
            effects.append(Observe("suspect", peer=peer, detail=f"event {event}"))
        elif before != UNKNOWN:
            effects.append(Observe("view", peer=peer, detail=f"correct, event {event}"))

    # The rest of the contract

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        return []  # it believes its own tests only

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def publish(self, now: float, topic: str, payloads: Sequence[bytes]) -> Effects:
        raise LocalProtocolError(f"diagnosis carries no messages; nothing was published on {topic!r}")

    def subscribe(self, now: float, topic: str) -> Effects:
        raise LocalProtocolError(f"diagnosis has no topics; nothing was subscribed to for {topic!r}")

    def unsubscribe(self, now: float, topic: str) -> Effects:
        raise LocalProtocolError(f"diagnosis has no topics; nothing was left for {topic!r}")

    def invariants(self) -> None:
        assert self.holds_correct(self.node), "a node that runs is correct"
        assert all(event >= UNKNOWN for event in self.events), "a counter below unknown"
        assert all(0 <= test.index < len(test.members) for test in self._testing.values()), "a test of nobody"
        assert self._told in (None, tuple(self.events)), "replies tell old news"

    def waiting(self) -> list[str]:
        return [
            f"node {self.node}: cluster {s}, waits for the reply of {running.peer}"
            for s, running in self._testing.items()
        ]
