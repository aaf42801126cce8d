"""A world driven by hand, one command at a time: nothing moves unless a script says so. tests/scripts/README.md lists
the commands. Every packet goes through the wire codec; every step checks invariants and writes trace rows."""

from collections.abc import Sequence
from typing import Any

from cubecast.check import Report, check_trace
from cubecast.errors import CubecastError
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.contract import (
    Acknowledged,
    Cut,
    Deliver,
    Effects,
    Observe,
    Published,
    Send,
    Subscribed,
    Unsubscribed,
)
from cubecast.protocol.vcube.packets import Entry, OperationAck, Pub, PubAck, Sub, Uns
from cubecast.protocol.vcube.subscribers import Roster
from cubecast.protocol.vcube.topology import ids_of, mask_of
from cubecast.sim.protocols import Setup, find, settings_of
from cubecast.sim.randomness import stream
from cubecast.sim.recorder import Recorder
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind
from cubecast.wire.codec import decode, encode


def name(message: MessageId) -> str:
    """1.2 is the second publication of node 1; 1+.2 that of its second incarnation."""
    return f"{message.source}{'+' * message.incarnation}.{message.counter}"


def names(messages: Sequence[MessageId]) -> str:
    return "{" + " ".join(map(name, sorted(messages))) + "}"


def describe(packet: Any) -> str:
    match packet:
        case Pub():
            return f"PUB {name(packet.message)}"
        case PubAck():
            return f"ACK of PUB {name(packet.message)}"
        case Sub():
            return f"SUB of {packet.source}"
        case Uns():
            return f"UNS of {packet.source}"
        case OperationAck():
            return f"ACK of {packet.operation.value} of {packet.source}{_members(packet.members)}"
    raise AssertionError(packet)


def _members(members: Sequence[Entry]) -> str:
    return " with " + " ".join(str(entry.node) for entry in sorted(members)) if members else ""


class ScriptWorld:
    def __init__(self) -> None:
        self.members: dict[str, list[NodeId]] = {}
        self.size = 0
        self.protocol: list[str] = ["vcube-ps"]
        self.machines: dict[NodeId, Any] = {}
        self.incarnations: dict[NodeId, int] = {}
        self.flying: list[tuple[NodeId, NodeId, bytes]] = []
        self.trace: list[Event] = []
        self.recorder = Recorder(self.trace, packets=False)
        self.steps = 0
        self.lines: list[str] = []

    def execute(self, line: str) -> list[str]:
        """Run one command; what there is to see."""
        self.lines = []
        self.steps += 1
        command, *words = line.split()
        try:
            getattr(self, f"do_{command}")(*words)
        except CubecastError as error:
            self._say(f"{type(error).__name__}: {error}")
        return self.lines

    # Setting the scene

    def do_cube(self, size: str, *protocol: str) -> None:
        """cube SIZE [PROTOCOL [SETTING=VALUE ...]]"""
        self.size = int(size)
        self.protocol = list(protocol) or self.protocol

    def do_members(self, topic: str, *nodes: str) -> None:
        """members TOPIC NODE ...: a settled group, everybody knows everybody"""
        self.members[topic] = [int(node) for node in nodes]

    def _build(self) -> None:
        if self.machines:
            return
        entry = find(self.protocol[0])
        given = dict(setting.split("=") for setting in self.protocol[1:])
        rosters = {topic: Roster(nodes) for topic, nodes in self.members.items()}
        present = mask_of(range(self.size))
        setup = Setup(self.size, present, rosters, stream(1, "protocol"), settings_of(entry, given))
        self._make = entry.build(setup)
        for node in range(self.size):
            self._start(node, 0)
            for topic in sorted(topic for topic, nodes in self.members.items() if node in nodes):
                self._row(node, Kind.SUBSCRIBE, topic=topic)
                self._row(node, Kind.SUBSCRIBED, topic=topic, cut=())

    def _start(self, node: NodeId, incarnation: int) -> None:
        self.incarnations[node] = incarnation
        self.machines[node] = self._make(node, incarnation)
        self._row(node, Kind.START)

    # The application

    def do_publish(self, node: str, topic: str) -> None:
        """publish NODE TOPIC"""
        self._build()
        self._apply(int(node), self.machines[int(node)].publish(self.steps, topic, [b"payload"]))

    def do_subscribe(self, node: str, topic: str) -> None:
        """subscribe NODE TOPIC"""
        self._build()
        effects = self.machines[int(node)].subscribe(self.steps, topic)
        self._row(int(node), Kind.SUBSCRIBE, topic=topic)
        self._apply(int(node), effects)

    def do_unsubscribe(self, node: str, topic: str) -> None:
        """unsubscribe NODE TOPIC"""
        self._build()
        effects = self.machines[int(node)].unsubscribe(self.steps, topic)
        self._row(int(node), Kind.UNSUBSCRIBE, topic=topic)
        self._apply(int(node), effects)

    # The network

    def do_deliver(self, *links: str) -> None:
        """deliver [FROM>TO[#K] ...]: the oldest packet, or the K-th (first) oldest of each of these links"""
        for link in links or (None,):
            self._arrive(self._take(link))

    def do_drain(self) -> None:
        """drain: deliver oldest first until nothing is under way"""
        while self.flying:
            self._arrive(self.flying.pop(0))

    def do_drop(self, link: str) -> None:
        """drop FROM>TO: the oldest packet of that link is lost"""
        source, destination, frame = self._take(link)
        self._say(f"{source}>{destination} {describe(decode(frame))} is lost")

    def do_flying(self) -> None:
        """flying: what is under way, oldest first"""
        for source, destination, frame in self.flying:
            self._say(f"{source}>{destination} {describe(decode(frame))}")

    def _take(self, link: str | None) -> tuple[NodeId, NodeId, bytes]:
        wanted, _, rank = (link or "").partition("#")
        on_link = [k for k, (source, to, _) in enumerate(self.flying) if link is None or f"{source}>{to}" == wanted]
        assert len(on_link) >= int(rank or 1), f"nothing is under way on {link or 'any link'}"
        return self.flying.pop(on_link[int(rank or 1) - 1])

    def _arrive(self, flight: tuple[NodeId, NodeId, bytes]) -> None:
        source, destination, frame = flight
        packet = decode(frame)
        self._say(f"{source}>{destination} {describe(packet)}")
        if destination in self.machines:
            incarnation = self.incarnations[destination]
            self.recorder.packet(destination, incarnation, self.steps, Kind.RECEIVE, source, packet)
            self._apply(destination, self.machines[destination].on_packet(self.steps, source, packet))
        else:
            self._say(f"  {destination} is down")

    # Faults and looking inside

    def do_crash(self, node: str) -> None:
        """crash NODE"""
        self._build()
        self._row(int(node), Kind.CRASH)
        del self.machines[int(node)]

    def do_restart(self, node: str) -> None:
        """restart NODE: it remembers nothing"""
        self._start(int(node), self.incarnations[int(node)] + 1)

    def do_view(self, topic: str, *nodes: str) -> None:
        """view TOPIC NODE ...: whom these nodes hold for subscribers"""
        self._build()
        for node in nodes:
            mask = self.machines[int(node)].topics[topic].view.mask
            self._say(f"{node} knows {' '.join(map(str, ids_of(mask)))}")

    def do_waiting(self) -> None:
        """waiting: what anybody waits for"""
        for machine in self.machines.values():
            self.lines += machine.waiting()

    def do_check(self, *promises: str) -> None:
        """check PROMISE ...: the reference checker's verdict on the run so far, taken as finished"""
        report = self.report(promises)
        for promise in promises:
            self._say(f"{promise} {report.verdicts[promise]}")
            found = [violation for violation in report.violations if violation.promise == promise]
            for violation in found[:1]:
                about = f", message {name(violation.message)}" if violation.message else ""
                other = f", against {name(violation.other)}" if violation.other else ""
                self._say(f"  at node {violation.node}{about}{other}")

    def report(self, promises: Sequence[str]) -> Report:
        info = RunInfo("script", self.protocol[0], (), nodes=self.size)
        return check_trace(Trace(info, [*self.trace, *map(self._end, self.machines)]), promises)

    def _end(self, node: NodeId) -> Event:
        incarnation = self.incarnations[node]
        rows = sum(1 for event in self.trace if (event.node, event.incarnation) == (node, incarnation))
        return Event(node, incarnation, rows, self.steps, Kind.QUIESCENT)

    # Effects

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _row(self, node: NodeId, kind: Kind, **columns: Any) -> None:
        self.recorder.row(node, self.incarnations[node], self.steps, kind, **columns)

    def _apply(self, node: NodeId, effects: Effects) -> None:
        incarnation, time, recorder = self.incarnations[node], self.steps, self.recorder
        for effect in effects:
            match effect:
                case Send(peers, packet):
                    self._say(f"  {node} sends {describe(packet)} to {' '.join(map(str, peers))}")
                    self.flying += [(node, peer, encode(packet)) for peer in peers]
                case Published(topic, counter, _, dependencies):
                    message = MessageId(node, incarnation, counter)
                    self._say(f"  {node} publishes {name(message)} on {topic} after {names(dependencies)}")
                    recorder.published(node, incarnation, time, effect)
                case Deliver(topic, message, _):
                    self._say(f"  {node} delivers {name(message)}")
                    recorder.delivered(node, incarnation, time, effect)
                case Acknowledged(topic, counter):
                    message = MessageId(node, incarnation, counter)
                    self._say(f"  {node}: {name(message)} is acknowledged")
                    recorder.about(node, incarnation, time, Kind.ACKNOWLEDGED, topic, message)
                case Cut(topic, last):
                    self._say(f"  {node} takes it that nothing up to {name(last)} is for it")
                    self._row(node, Kind.CUT, topic=topic, cut=(last,))
                case Subscribed(topic) | Unsubscribed(topic):
                    kind = Kind.SUBSCRIBED if isinstance(effect, Subscribed) else Kind.UNSUBSCRIBED
                    self._say(f"  {node} is {kind} {'to' if kind is Kind.SUBSCRIBED else 'from'} {topic}")
                    self._row(node, kind, topic=topic)
                case Observe():
                    self._say(f"  {node} {effect.kind}s: {effect.detail}")
                case _:
                    raise AssertionError(effect)
        self.machines[node].invariants()
