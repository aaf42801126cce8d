"""A world driven by hand, one command at a time: nothing moves unless a script says so. tests/scripts/README.md lists
the commands. Every packet goes through the wire codec; every step checks invariants and writes trace rows."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from cubecast.check import Report, check_trace
from cubecast.errors import CubecastError
from cubecast.ids import MessageId, NodeId
from cubecast.protocol.effects import (
    Acknowledged,
    Cut,
    Deliver,
    Effects,
    Gap,
    InterestKnown,
    InterestMatched,
    Observe,
    Published,
    Reincarnated,
    Send,
    SetTimer,
    Subscribed,
    Undelivered,
    Unsubscribed,
)
from cubecast.protocol.families import find
from cubecast.protocol.hypercube.packets import Entry, OperationAck, Pub, PubAck, Sub, Uns
from cubecast.protocol.inputs import (
    Crosspost,
    Follow,
    Input,
    PeerDown,
    PeerUp,
    Publish,
    Start,
    Subscribe,
    Timer,
    Unsubscribe,
)
from cubecast.protocol.masks import ids_of
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import machines
from cubecast.sim.schedule import SEVERAL
from cubecast.sim.swarm_run import Beginning
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace
from cubecast.trace.schema import Kind
from cubecast.wire.codec import codec_of

MOST_PACKETS_OF_A_DRAIN = 100_000
"""Small worlds come to rest after hundreds; one that answers every packet with another never does."""


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
    about = f" {name(packet.carried()[0].first)}" if packet.publication else ""
    return f"{type(packet).__name__}{about}"


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
        self.steps: float = 0
        self.ids: list[NodeId] | None = None
        self.timers: dict[tuple[NodeId, str], Hashable] = {}
        self.pending: dict[tuple[NodeId, str], None] = {}
        """Timers that are set and did not fire."""
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

    def do_ids(self, *nodes: str) -> None:
        """ids NODE ...: the others are holes in the cube"""
        self.ids = [int(node) for node in nodes]

    def do_clock(self, time: str) -> None:
        """clock TIME: what machines are told the time is, one more with every command"""
        self.steps = float(time)

    def do_members(self, topic: str, *nodes: str) -> None:
        """members TOPIC NODE ...: a settled group, everybody knows everybody"""
        self.members[topic] = [int(node) for node in nodes]

    def _build(self) -> None:
        if self.machines:
            return
        family = find(self.protocol[0])
        given = dict(setting.split("=") for setting in self.protocol[1:])
        ids = range(self.size) if self.ids is None else self.ids
        self.codec = codec_of(family)
        self._make = machines(family, 1, self.size, ids, self.members, given)
        for node in ids:
            self._start(node, 0)
            for topic in sorted(topic for topic, nodes in self.members.items() if node in nodes):
                self.recorder.of(node).settled(self.steps, topic)
            self._ask(node, Start())

    def _start(self, node: NodeId, incarnation: int) -> None:
        self.incarnations[node] = incarnation
        self.machines[node] = self._make(node, incarnation)
        self.recorder.of(node).started(self.steps, incarnation)

    def _ask(self, node: NodeId, given: Input) -> None:
        effects = self.machines[node].handle(self.steps, given)
        self.recorder.asked(node, self.steps, given, effects)
        self._apply(node, effects)

    # The application

    def do_publish(self, node: str, topic: str, messages: str = "1") -> None:
        """publish NODE TOPIC [MESSAGES]"""
        self._build()
        payloads = [b"%d" % k for k in range(int(messages))]
        self._ask(int(node), Publish(topic, payloads))

    def do_crosspost(self, node: str, topics: str, messages: str = "1") -> None:
        """crosspost NODE TOPIC+TOPIC... [MESSAGES]"""
        self._build()
        payloads = [b"%d" % k for k in range(int(messages))]
        self._ask(int(node), Crosspost(tuple(topics.split(SEVERAL)), payloads))

    def do_follow(self, node: str, topics: str) -> None:
        """follow NODE BEGIN*: subscribe to all topics that begin alike, present and future"""
        self._build()
        self._ask(int(node), Follow(Beginning(topics.removesuffix("*"))))

    def do_unfollow(self, node: str) -> None:
        """unfollow NODE"""
        self._ask(int(node), Follow(None))

    def do_subscribe(self, node: str, topic: str) -> None:
        """subscribe NODE TOPIC"""
        self._build()
        self._ask(int(node), Subscribe(topic))

    def do_unsubscribe(self, node: str, topic: str) -> None:
        """unsubscribe NODE TOPIC"""
        self._build()
        self._ask(int(node), Unsubscribe(topic))

    # The network

    def do_deliver(self, *links: str) -> None:
        """deliver [FROM>TO[#K] ...]: the oldest packet, or the K-th (first) oldest of each of these links"""
        for link in links or (None,):
            self._arrive(self._take(link))

    def do_copy(self, link: str) -> None:
        """copy FROM>TO[#K]: as deliver, but the packet stays under way and arrives again"""
        self._arrive(self._look(link))

    def do_learn(self, link: str) -> None:
        """learn FROM>TO[#K]: half of what an answer to a wave tells arrives; the packet stays under way"""
        source, node, frame = self._look(link)
        packet = self.codec.decode(frame)
        half = replace(packet, entries=packet.entries[: len(packet.entries) // 2], number=0)
        self._say(f"{source}>{node} half of {describe(packet)}")
        self._apply(node, self.machines[node].on_packet(self.steps, source, half))

    def do_drain(self) -> None:
        """drain: deliver oldest first until nothing is under way"""
        arrived = 0
        while self.flying:
            self._arrive(self.flying.pop(0))
            arrived += 1
            assert arrived < MOST_PACKETS_OF_A_DRAIN, f"the world does not come to rest: {self.lines[-12:]}"

    def do_drop(self, link: str) -> None:
        """drop FROM>TO: the oldest packet of that link is lost"""
        source, destination, frame = self._take(link)
        self._say(f"{source}>{destination} {describe(self.codec.decode(frame))} is lost")

    def do_flying(self) -> None:
        """flying: what is under way, oldest first"""
        for source, destination, frame in self.flying:
            self._say(f"{source}>{destination} {describe(self.codec.decode(frame))}")

    def _take(self, link: str | None) -> tuple[NodeId, NodeId, bytes]:
        return self.flying.pop(self._place(link))

    def _look(self, link: str) -> tuple[NodeId, NodeId, bytes]:
        return self.flying[self._place(link)]

    def _place(self, link: str | None) -> int:
        wanted, _, rank = (link or "").partition("#")
        on_link = [k for k, (source, to, _) in enumerate(self.flying) if link is None or f"{source}>{to}" == wanted]
        assert len(on_link) >= int(rank or 1), f"nothing is under way on {link or 'any link'}"
        return on_link[int(rank or 1) - 1]

    def _arrive(self, flight: tuple[NodeId, NodeId, bytes]) -> None:
        source, destination, frame = flight
        packet = self.codec.decode(frame)
        self._say(f"{source}>{destination} {describe(packet)}")
        if destination in self.machines:
            self.recorder.of(destination).packet(Kind.RECEIVE, self.steps, source, packet)
            self._apply(destination, self.machines[destination].on_packet(self.steps, source, packet))
        else:
            self._say(f"  {destination} is down")

    # Faults and looking inside

    def do_crash(self, node: str) -> None:
        """crash NODE"""
        self._build()
        self.recorder.of(int(node)).ended(self.steps, Kind.CRASH)
        self._forget_timers(int(node))
        del self.machines[int(node)]

    def do_restart(self, node: str) -> None:
        """restart NODE: it remembers nothing"""
        self._start(int(node), self.incarnations[int(node)] + 1)
        self._ask(int(node), Start())

    def do_suspect(self, node: str, peer: str) -> None:
        """suspect NODE PEER: the node's failure detector holds the peer faulty"""
        self._build()
        self.recorder.of(int(node)).suspected(self.steps, int(peer))
        self._ask(int(node), PeerDown(int(peer)))

    def do_trust(self, node: str, peer: str) -> None:
        """trust NODE PEER: the node's failure detector holds the peer correct"""
        self._build()
        self._ask(int(node), PeerUp(int(peer)))

    def do_timer(self, node: str, timer: str) -> None:
        """timer NODE NAME: a timer it set fires"""
        self._build()
        self.pending.pop((int(node), timer), None)
        self._ask(int(node), Timer(self.timers[int(node), timer]))

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
        info = RunInfo("script", self.protocol[0], (), nodes=len(self.incarnations))
        return check_trace(Trace(info, [*self.trace, *map(self._end, self.machines)]), promises)

    def _end(self, node: NodeId) -> Event:
        incarnation = self.incarnations[node]
        rows = sum(1 for event in self.trace if (event.node, event.incarnation) == (node, incarnation))
        return Event(node, incarnation, rows, self.steps, Kind.QUIESCENT)

    def _forget_timers(self, node: NodeId) -> None:
        self.pending = {key: None for key in self.pending if key[0] != node}

    def _reincarnate(self, node: NodeId, effect: Reincarnated) -> int:
        self._say(f"  {node} returns as incarnation {effect.incarnation}")
        self._forget_timers(node)
        self.incarnations[node] = effect.incarnation
        return effect.incarnation

    # Effects

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _apply(self, node: NodeId, effects: Effects) -> None:
        incarnation = self.incarnations[node]
        for effect in effects:
            self.recorder.effect(node, self.steps, effect)
            match effect:
                case Send(peers, packet):
                    self._say(f"  {node} sends {describe(packet)} to {' '.join(map(str, peers))}")
                    self.flying += [(node, peer, self.codec.encode(packet)) for peer in peers]
                case Published(topic, counter, _, dependencies):
                    message = MessageId(node, incarnation, counter)
                    self._say(f"  {node} publishes {name(message)} on {topic} after {names(dependencies)}")
                case Deliver(topic, message, _):
                    self._say(f"  {node} delivers {name(message)}")
                case Acknowledged(topic, counter):
                    message = MessageId(node, incarnation, counter)
                    self._say(f"  {node}: {name(message)} is acknowledged")
                case Cut(topic, last):
                    self._say(f"  {node} takes it that nothing up to {name(last)} is for it")
                case Subscribed(topic) | Unsubscribed(topic):
                    kind = Kind.SUBSCRIBED if isinstance(effect, Subscribed) else Kind.UNSUBSCRIBED
                    self._say(f"  {node} is {kind} {'to' if kind is Kind.SUBSCRIBED else 'from'} {topic}")
                case Observe():
                    self._say(f"  {node} {effect.kind}s: {effect.detail}")
                case Gap(topic, missing, reason):
                    self._say(f"  {node} will never have {names(missing)}: {reason}")
                case Undelivered(topic, missing, peer):
                    self._say(f"  {node} is told that {peer} will never have {names(missing)}")
                case Reincarnated():
                    incarnation = self._reincarnate(node, effect)
                case InterestMatched(topic, on):
                    self._say(f"  {node} {'subscribes to' if on else 'leaves'} {topic} by its interest")
                case InterestKnown():
                    self._say(f"  {node}: its interest is known")
                case SetTimer(timer):
                    key = (node, str(timer).replace(" ", ""))
                    self.timers[key] = timer
                    self.pending[key] = None
                case _:
                    raise AssertionError(effect)
        self.machines[node].invariants()
