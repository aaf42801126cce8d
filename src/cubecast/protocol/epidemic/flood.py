"""HyParView alone, and messages flooded over its links: what Brisa's trees are grown from and held against."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cubecast.errors import RemoteProtocolError
from cubecast.ids import Incarnation, NodeId, Topic
from cubecast.protocol.contract import Packet
from cubecast.protocol.effects import Effects, Send
from cubecast.protocol.epidemic.brisa_packets import check_packet
from cubecast.protocol.epidemic.dissemination import Disseminator, Message
from cubecast.protocol.epidemic.hyparview import MEMBERSHIP_PACKETS, HyParView
from cubecast.protocol.epidemic.membership import Membership
from cubecast.protocol.parameters import check_parameters, parameter


@dataclass(frozen=True)
class HyParViewParameters:
    view: int = parameter(4, "links a process keeps", least=1, most=64)
    expansion: float = parameter(2.0, "times that it may come to have", least=1, most=8)
    tick: float = parameter(1000.0, "between two keep-alives", live=1.0, above=0, unit="time")

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(slots=True)
class Alive(Packet):
    """To neighbours; who is none of the receiver's learns it by the answer."""


class Flood(Disseminator):
    """A process that gets a message for the first time sends it to all other neighbours."""

    def __init__(
        self,
        node: NodeId,
        parameters: HyParViewParameters,
        rng: Random,
        *,
        incarnation: Incarnation = 0,
        contacts: Sequence[NodeId] = (),
        subscribed: Iterable[Topic] = (),
    ) -> None:
        super().__init__(node, incarnation, subscribed)
        most = max(parameters.view, int(parameters.view * parameters.expansion))
        self.overlay = HyParView(node, tuple(contacts), rng, target=parameters.view, most=most)
        self._membership = Membership(self.overlay, rng, parameters.tick, dict)
        self._tick = parameters.tick

    def on_start(self, now: float) -> Effects:
        self._membership.start()
        self._set_timer("tick", now + self._membership.first_tick())
        return self._take()

    def on_timer(self, now: float, timer: Hashable) -> Effects:
        self._membership.tick()
        self._send(self.overlay.active, Alive())
        self._set_timer("tick", now + self._tick)
        return self._take()

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        match packet:
            case Message():
                self._accept(sender, packet)
            case Alive():
                if sender not in self.overlay.active:
                    self._membership.refuse(sender)
            case _:
                check_packet(packet)
                if not self._membership.receive(sender, packet):
                    raise RemoteProtocolError(f"HyParView knows no {type(packet).__name__}")
        return self._take()

    def on_peer_down(self, now: float, peer: NodeId) -> Effects:
        self.overlay.on_broken(peer)
        return self._take()

    def leave(self, now: float) -> Effects:
        self.overlay.leave()
        return self._take()

    def _spread(self, sender: NodeId, packet: Message) -> None:
        others = tuple(peer for peer in self.overlay.active if peer != sender)
        if others:
            self.overlay.effects.append(Send(others, packet))

    def _take(self) -> Effects:
        effects, self.overlay.effects = self._effects + self.overlay.effects, []
        self._effects = []
        return effects

    def invariants(self) -> None:
        super().invariants()
        self.overlay.invariants()


class Overlay(Flood):
    """Membership and nothing else: applications look at its neighbours, and ask nothing."""

    publish = subscribe = unsubscribe = None  # type: ignore[assignment]


FLOOD_PACKETS: tuple[type[Any], ...] = (*MEMBERSHIP_PACKETS, Alive, Message)
