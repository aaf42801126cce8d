"""Brisa: streams over HyParView's overlay, each on a tree that grows by itself and heals in a round trip.

A process is a member of one overlay and relays every flow in it; its application is handed those of topics it
subscribes to, each publisher's messages in their order, with a `Gap` where some could not be had any more.
Follows decision 0060.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from cubecast.errors import BadInput, LocalProtocolError, RemoteProtocolError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Handlers
from cubecast.protocol.effects import (
    Cut,
    Deliver,
    Effects,
    Gap,
    Published,
    Released,
    Send,
    SetTimer,
    Subscribed,
    Unsubscribed,
)
from cubecast.protocol.epidemic.brisa_flow import Flow
from cubecast.protocol.epidemic.brisa_guests import Guests
from cubecast.protocol.epidemic.brisa_host import Rules
from cubecast.protocol.epidemic.brisa_packets import (
    MOST_FLOWS_KNOWN,
    Data,
    Feed,
    Fetch,
    FlowId,
    GuestData,
    GuestFetch,
    GuestsAlive,
    Info,
    KeepAlive,
    KeepAliveEcho,
    Lost,
    Position,
    check_packet,
)
from cubecast.protocol.epidemic.brisa_readers import SlowReaders
from cubecast.protocol.epidemic.hyparview import HyParView
from cubecast.protocol.epidemic.membership import Membership
from cubecast.protocol.parameters import check_parameters, parameter

MOST_FLOWS = 64
"""In one keep-alive."""
LEAST_COST = 1e-3
MORE = "more"
"""The timer after which what had to wait goes on."""


class Strategy(Enum):
    FIRST_COME = "first-come"
    DELAY_AWARE = "delay-aware"
    GERONTOCRATIC = "gerontocratic"
    HETEROGENEITY_AWARE = "heterogeneity-aware"
    LOAD_BALANCING = "load-balancing"


@dataclass(frozen=True)
class BrisaParameters:
    view: int = parameter(4, "links a process keeps", least=1, most=64)
    expansion: float = parameter(2.0, "times that it may come to have", least=1, most=8)
    parents: int = parameter(1, "processes that feed one flow to another", least=1, most=16)
    strategy: Strategy = parameter(Strategy.FIRST_COME, "what makes a parent better than another")
    rules: Rules = parameter(Rules.LABEL, "label: corrected; paper: as printed, with its cycles")
    bandwidth: float = parameter(1.0, "this process's, for the heterogeneity-aware strategy", above=0, most=1e9)
    buffer: int = parameter(256, "messages of a flow kept for others", live=1 << 16, least=1, most=1 << 20)
    buffer_bytes: int = parameter(8 << 20, "bytes of them at most", least=1 << 10, most=1 << 30)
    reuse: int = parameter(
        0, "depth in another's tree up to which own messages go along it; 0: never", least=0, most=64
    )
    tick: float = parameter(1000.0, "between two keep-alives", live=1.0, above=0, unit="time")

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.parents > self.view:
            raise BadInput(f"parents is {self.parents}, and a process keeps only {self.view} links: raise view with it")


class Brisa(Handlers):
    flow_type = Flow

    def __init__(
        self,
        node: NodeId,
        parameters: BrisaParameters,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        contacts: Sequence[NodeId] = (),
        subscribed: Iterable[Topic] = (),
    ) -> None:
        self.me = self.node = node
        self.incarnation = incarnation
        self.parents_wanted = parameters.parents
        self.buffer_messages = parameters.buffer
        self.buffer_bytes = parameters.buffer_bytes
        self.rules = parameters.rules
        self.mutual = parameters.strategy is Strategy.FIRST_COME and parameters.parents == 1
        self._strategy = parameters.strategy
        self._parameters = parameters
        most = max(parameters.view, int(parameters.view * parameters.expansion))
        self.overlay = HyParView(node, tuple(contacts), rng, target=parameters.view, most=most)
        self.overlay.on_up, self.overlay.on_down = self._link_up, self._link_down
        self.overlay.in_use = lambda peer: any(flow.uses(peer) for flow in self.flows.values())
        self._membership = Membership(self.overlay, rng, parameters.tick, self._has)
        self.flows: dict[FlowId, Flow] = {}
        self.guests = Guests(self)
        self._readers = SlowReaders()
        self._full: set[NodeId] = set()
        """Neighbours whose links take nothing more for now."""
        self._unreleased: dict[FlowId, None] = {}
        """Own flows whose publisher waits: no child's link has room."""
        self._topics: dict[Topic, None] = dict.fromkeys(subscribed)
        self._told: set[FlowId] = set()
        """Flows whose beginning the application was told."""
        self._effects: Effects = []
        self._now = 0.0
        self._started = 0.0
        self._round_trips: dict[NodeId, float] = {}

    # -- what the application asks for -------------------------------------------------------------------------------

    def on_start(self, now: float) -> Effects:
        self._now = self._started = now
        self._membership.start()
        self._effects.append(SetTimer("tick", now + self._membership.first_tick()))
        return self._take()

    def publish(self, now: float, topic: Topic, payloads: Sequence[bytes], *, hurry: bool = False) -> Effects:
        """Whether the application waits changes nothing: messages leave at once, and processes do not tell who has
        them."""
        if max(map(len, payloads)) > self.buffer_bytes:
            raise LocalProtocolError(
                f"a message of {max(map(len, payloads))} bytes does not fit a flow's buffer of {self.buffer_bytes}; "
                "raise buffer_bytes. Nothing was published"
            )
        self._now = now
        key = FlowId(topic, self.me, self.incarnation)
        flow = self.flows.get(key)
        guest = self.guests.all.get(key)
        carrier = guest.carrier if guest else self.guests.carrier(self.flows, self._parameters.reuse)
        if flow is None and carrier is not None:
            have = guest.have if guest else 0
            self._effects.append(Published(topic, have + 1, len(payloads), ()))
            self._effects.append(Released(topic, self.guests.publish(key, carrier, tuple(payloads))))
            return self._take()
        if flow is None:
            flow = self.flows[key] = self.flow_type(self, key, 0)
            flow.open()
        self._effects.append(Published(topic, flow.have + 1, len(payloads), (), payloads))
        flow.publish(tuple(payloads))
        self._unreleased[key] = None
        self._release()
        return self._take()

    def _release(self) -> None:
        """What is kept for others is bounded by the flow's buffer: a publisher waits only while no child's link has
        room. One that is slow makes no other wait for it."""
        for key in list(self._unreleased):
            flow = self.flows[key]
            children = flow.children
            if not children or any(peer not in self._full for peer in children):
                del self._unreleased[key]
                self.overlay.effects.append(Released(key.topic, flow.have))

    def subscribe(self, now: float, topic: Topic) -> Effects:
        if topic in self._topics:
            raise LocalProtocolError(f"{topic!r} is subscribed already")
        self._now = now
        self._topics[topic] = None
        for key, flow in self.flows.items():
            if key.topic == topic:
                self._begin(key, flow.have)
        return [*self._take(), Subscribed(topic)]

    def unsubscribe(self, now: float, topic: Topic) -> Effects:
        if topic not in self._topics:
            raise LocalProtocolError(f"{topic!r} is not subscribed here")
        del self._topics[topic]
        self._told = {key for key in self._told if key.topic != topic}
        self._readers.forget(topic)
        return [Unsubscribed(topic)]

    def leave(self, now: float) -> Effects:
        self._now = now
        self.overlay.leave()
        return self._take()

    # -- what happens to it ------------------------------------------------------------------------------------------

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        self._now = now
        handler = _HANDLERS.get(type(packet))
        check_packet(packet)
        if handler is not None:
            if sender in self.overlay.active:  # what others say about flows came too late, or too early: links order it
                handler(self, sender, packet)
            elif type(packet) is KeepAlive:
                self._membership.refuse(sender)
        elif not self._membership.receive(sender, packet):
            raise RemoteProtocolError(f"Brisa knows no {type(packet).__name__}")
        return self._take()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        self._now = now
        if timer == MORE:
            self._go_on()
            return self._take()
        self._membership.tick()
        self.guests.tick()
        self._release()
        for flow in self.flows.values():
            flow.tick()
        states = [(key, flow.standing()) for key, flow in self.flows.items()]
        for first in range(0, max(1, len(states)), MOST_FLOWS):
            peers = tuple(self.overlay.active)
            if peers:
                self._effects.append(Send(peers, KeepAlive(tuple(states[first : first + MOST_FLOWS]), now)))
        self._effects.append(SetTimer("tick", now + self._parameters.tick))
        return self._take()

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self._now = now
        self._full.discard(peer)
        self.overlay.on_broken(peer)
        self._release()
        return self._take()

    def on_peer_up(self, now: float, peer: NodeId) -> Effects:
        return []

    def on_link_full(self, now: float, peer: NodeId, full: bool) -> Effects:
        """Its process reads more slowly than it is sent to, or has caught up."""
        self._now = now
        if full:
            self._full.add(peer)
        else:
            self._full.discard(peer)
            self._go_on()
            self._release()
        return self._take()

    def on_reader(self, now: float, topic: Topic, reads: bool) -> Effects:
        """Subscribers here are full, or read again. Others are fed all the same."""
        self._now = now
        if reads:
            self._readers.let_through(topic)
            self._go_on()
        else:
            self._readers.hold(topic)
        return self._take()

    def _go_on(self) -> None:
        """With whatever had to wait, a piece of each."""
        for flow in self.flows.values():
            if flow.behind:
                flow.catch_up()
        if self._readers.go_on({**self.guests.all, **self.flows}, self._deliver, self._lose):
            self.go_on_soon()

    def _on_data(self, sender: NodeId, packet: Data) -> None:
        if not packet.payloads:
            return
        if packet.route:
            self._pass_back(sender, packet)
            return
        self._flow(packet.flow, packet.first - 1, ask=False).on_data(sender, packet)

    def _pass_back(self, sender: NodeId, packet: Data) -> None:
        """What was fetched through this process. It goes on with this process's place in the tree, whom the receiver
        gets it from; so only if this process has it too."""
        flow = self.flows.get(packet.flow)
        if flow is None:
            return
        if packet.last > flow.have:
            flow.on_data(sender, packet)
        if packet.last <= flow.have and packet.route[-1] in self.overlay.active:
            place = flow.standing().position
            back = Data(packet.flow, packet.first, packet.payloads, place, True, packet.route[:-1])
            self.send(packet.route[-1], back)

    def _on_feed(self, sender: NodeId, packet: Feed) -> None:
        self._flow(packet.flow, packet.standing.have).on_feed(sender, packet)

    def _on_info(self, sender: NodeId, packet: Info) -> None:
        self._flow(packet.flow, packet.standing.have).on_info(sender, packet.standing)

    def _on_fetch(self, sender: NodeId, packet: Fetch) -> None:
        flow = self.flows.get(packet.flow)
        if flow is not None and packet.route:
            flow.on_fetch(sender, packet)

    def _on_lost(self, sender: NodeId, packet: Lost) -> None:
        if packet.route:
            if packet.route[-1] in self.overlay.active:
                self.send(packet.route[-1], Lost(packet.flow, packet.upto, packet.sure, packet.route[:-1]))
            return
        flow = self.flows.get(packet.flow)
        if flow is not None:
            flow.on_lost(sender, packet)

    def _on_keep_alive(self, sender: NodeId, packet: KeepAlive) -> None:
        for key, standing in packet.flows:
            self._flow(key, standing.have).on_keep_alive(sender, standing)
        if self._strategy is Strategy.DELAY_AWARE:
            self.send(sender, KeepAliveEcho(packet.stamp))

    def _on_echo(self, sender: NodeId, packet: KeepAliveEcho) -> None:
        if 0 <= packet.stamp <= self._now:
            self._round_trips[sender] = self._now - packet.stamp

    def _flow(self, key: FlowId, have: Counter, *, ask: bool = True) -> Flow:
        """Known, or heard of for the first time: then it begins behind what the teller has. Links are on from the
        start; `ask`: its messages do not come by themselves, so the neighbours are asked for them."""
        flow = self.flows.get(key)
        if flow is None:
            if len(self.flows) >= MOST_FLOWS_KNOWN:
                raise RemoteProtocolError(f"more than {MOST_FLOWS_KNOWN} flows in one overlay")
            flow = self.flows[key] = self.flow_type(self, key, have)
            self.begin(key, have)
            for peer in self.overlay.active if ask else ():
                flow.link_up(peer)
        return flow

    def _link_up(self, peer: NodeId) -> None:
        for flow in self.flows.values():
            flow.link_up(peer)

    def _link_down(self, peer: NodeId) -> None:
        self._round_trips.pop(peer, None)
        self._full.discard(peer)
        self.guests.link_down(peer)
        for flow in self.flows.values():
            flow.link_down(peer)

    # -- what flows need of it ---------------------------------------------------------------------------------------

    @property
    def neighbours(self) -> Iterable[NodeId]:
        return tuple(self.overlay.active)

    def send(self, peer: NodeId, packet: Any) -> None:
        self.overlay.effects.append(Send((peer,), packet))

    def send_all(self, peers: tuple[NodeId, ...], packet: Any) -> None:
        self.overlay.effects.append(Send(peers, packet))

    def is_full(self, peer: NodeId) -> bool:
        return peer in self._full

    def go_on_soon(self) -> None:
        self.overlay.effects.append(SetTimer(MORE, self._now))

    def begin(self, flow: FlowId, have: Counter) -> None:
        if flow.topic in self._topics:
            self._begin(flow, have)

    def deliver(self, flow: FlowId, first: Counter, payloads: tuple[bytes, ...]) -> None:
        if flow.topic in self._topics and not self._readers.holds(flow, first - 1):
            self._deliver(flow, first, payloads)

    def _deliver(self, flow: FlowId, first: Counter, payloads: tuple[bytes, ...]) -> None:
        if flow.topic in self._topics:
            if flow not in self._told:
                self._begin(flow, first - 1)
            self.overlay.effects.append(Deliver(flow.topic, _message(flow, first), payloads))

    def report_gap(self, flow: FlowId, first: Counter, last: Counter) -> None:
        if not self._readers.holds(flow, first - 1):
            self._lose(flow, first, last)

    def _lose(self, flow: FlowId, first: Counter, last: Counter) -> None:
        if flow.topic in self._topics:
            missing = tuple(_message(flow, counter) for counter in range(first, last + 1))
            self.overlay.effects.append(Gap(flow.topic, missing, "nobody that could be asked has them any more"))

    # DEVIATION brisa §4.2.5: delay-aware sums round trips from the root; the last one alone closes cycles.
    def link_cost(self, peer: NodeId, position: Position) -> float:
        if self._strategy is Strategy.FIRST_COME:
            return 1.0
        if self._strategy is Strategy.DELAY_AWARE:
            return max(LEAST_COST, self._round_trips.get(peer, self._parameters.tick))
        return max(LEAST_COST, position.cost)

    def own_cost(self, children: int) -> float:
        if self._strategy is Strategy.GERONTOCRATIC:
            return 1.0 / (1.0 + (self._now - self._started) / self._parameters.tick)
        if self._strategy is Strategy.HETEROGENEITY_AWARE:
            return 1.0 / self._parameters.bandwidth
        return 1.0 + children if self._strategy is Strategy.LOAD_BALANCING else 1.0

    def _begin(self, flow: FlowId, have: Counter) -> None:
        self._told.add(flow)
        self.overlay.effects.append(Cut(flow.topic, _message(flow, have)))

    def _has(self) -> dict[str, int]:
        return {f"{key.topic}/{key.root}/{key.incarnation}": flow.have for key, flow in self.flows.items()}

    def _take(self) -> Effects:
        effects, self._effects = self._effects + self.overlay.effects, []
        self.overlay.effects = []
        return effects

    # -- for people and tests ----------------------------------------------------------------------------------------

    @property
    def topics(self) -> list[Topic]:
        return list(dict.fromkeys((*self._topics, *(key.topic for key in self.flows))))

    def published(self) -> dict[Topic, Counter]:
        """By this incarnation."""
        everything: list[tuple[FlowId, Any]] = [*self.flows.items(), *self.guests.all.items()]
        return {key.topic: one.have for key, one in everything if key[1:] == (self.me, self.incarnation)}

    def delivered(self) -> dict[Topic, tuple[MessageId, ...]]:
        """By subscribed topic the last one of every publisher."""
        last: dict[Topic, tuple[MessageId, ...]] = dict.fromkeys(self._topics, ())
        for key in self._told:
            flow = self.flows.get(key) or self.guests.all.get(key)
            if flow is not None:
                last[key.topic] = (*last[key.topic], _message(key, self._readers.upto(key, flow.have)))
        return last

    def waiting(self) -> list[str]:
        return [
            f"{key.topic} of {key.root}: {flow.held} messages wait for what is missing after {flow.have}, "
            f"and a neighbour has {flow.lag} more"
            for key, flow in self.flows.items()
            if flow.held or flow.lag
        ]

    def invariants(self) -> None:
        self.overlay.invariants()
        for flow in self.flows.values():
            assert flow.primary is None or flow.primary in flow.parents
            assert flow.parents.keys() <= self.overlay.active.keys(), "a parent that is no neighbour"


def _message(flow: FlowId, counter: Counter) -> MessageId:
    return MessageId(flow.root, flow.incarnation, counter)


_HANDLERS: dict[type, Callable[[Any, NodeId, Any], None]] = {
    Data: Brisa._on_data,
    Feed: Brisa._on_feed,
    Info: Brisa._on_info,
    Fetch: Brisa._on_fetch,
    Lost: Brisa._on_lost,
    KeepAlive: Brisa._on_keep_alive,
    KeepAliveEcho: Brisa._on_echo,
    GuestData: lambda brisa, sender, packet: brisa.guests.on_data(sender, packet),
    GuestFetch: lambda brisa, sender, packet: brisa.guests.on_fetch(sender, packet),
    GuestsAlive: lambda brisa, sender, packet: brisa.guests.on_alive(sender, packet),
}
