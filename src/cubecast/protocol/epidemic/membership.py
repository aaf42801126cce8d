"""HyParView's periodic side: when it shuffles, and how islands find each other."""

from collections.abc import Callable
from random import Random
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import Send
from cubecast.protocol.epidemic.hyparview import (
    Accept,
    Disconnect,
    ForwardJoin,
    HyParView,
    Join,
    Neighbour,
    Probe,
    Refuse,
    Shuffle,
    ShuffleReply,
)

SHUFFLE_TICKS = 10
PROBE_TICKS = 30


class Membership:
    def __init__(self, overlay: HyParView, rng: Random, tick: float, have: Callable[[], dict[str, int]]) -> None:
        self._overlay = overlay
        self._rng = rng
        self._tick = tick
        self._have = have
        """What each flow here has."""
        self._ticks = 0
        self._history: list[dict[str, int]] = [{}, {}]

    def start(self) -> None:
        self._overlay.join()

    def first_tick(self) -> float:
        return self._rng.uniform(0, self._tick)

    def tick(self) -> None:
        self._ticks += 1
        self._overlay.tick()
        if self._ticks % SHUFFLE_TICKS == 0:
            self._overlay.shuffle()
        if self._ticks % PROBE_TICKS == 0 and self._overlay.contacts:
            contact = self._rng.choice(self._overlay.contacts)
            if contact != self._overlay.me and contact not in self._overlay.active:
                self._send(contact, Probe((), self._have(), self._history[0], answer=False))
        self._history = [self._history[1], self._have()]

    def receive(self, sender: NodeId, packet: Any) -> bool:
        """Whether it is one of HyParView's."""
        overlay = self._overlay
        match packet:
            case Join() | Neighbour() | Probe() if overlay.is_too_much(sender):
                pass
            case Join():
                overlay.on_join(sender)
            case Accept():
                overlay.on_accept(sender)
            case Neighbour():
                overlay.on_neighbour(sender, packet)
            case Refuse():
                overlay.on_refuse(sender, packet)
            case Disconnect():
                overlay.on_disconnect(sender, packet)
            case ForwardJoin():
                overlay.on_forward_join(sender, packet)
            case Shuffle():
                overlay.on_shuffle(sender, packet)
            case ShuffleReply():
                overlay.on_shuffle_reply(packet)
            case Probe():
                self._on_probe(sender, packet)
            case _:
                return False
        return True

    def refuse(self, sender: NodeId) -> None:
        """It takes this process for a neighbour, which it is not."""
        self._send(sender, Disconnect(()))

    def _on_probe(self, sender: NodeId, packet: Probe) -> None:
        mine, before = self._have(), self._history[0]
        if not packet.answer:
            self._send(sender, Probe((), mine, before, answer=True))
        if self._stands_still(mine, before, packet.before):
            self._overlay.link_to(sender)

    @staticmethod
    def _stands_still(mine: dict[str, int], before: dict[str, int], theirs_before: dict[str, int]) -> bool:
        """Had the other, two ticks ago, what is missing here, where nothing has moved since?"""
        return any(
            mine.get(flow, 0) < have and mine.get(flow, 0) == before.get(flow, 0)
            for flow, have in theirs_before.items()
        )

    def _send(self, peer: NodeId, packet: Any) -> None:
        self._overlay.effects.append(Send((peer,), packet))
