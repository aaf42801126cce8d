"""Faults inside a node: a machine between the world and the real one changes what comes in and what goes out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import Effect, Effects, Send, SetTimer
from cubecast.protocol.inputs import Input, Timer
from cubecast.sim.faults import ClockJump, Half, Inside, LateTimers, TimersTwice, TwoSteps
from cubecast.sim.world import World


def tamper(
    world: World, node: NodeId, faults: Sequence[Inside], half: Half | None, die: Callable[[NodeId], None]
) -> None:
    """Every machine of this node, the first and those after restarts, suffers these faults; it dies by half once."""
    left = [half]

    def between(machine: Any) -> Tampered:
        return Tampered(machine, faults, left, lambda: die(node))

    world.wrap(node, between)


class Tampered:
    """Stands for the machine it wraps; what it does not change goes through."""

    def __init__(
        self, machine: Any, faults: Sequence[Inside], half: list[Half | None], die: Callable[[], None]
    ) -> None:
        self._machine = machine
        self._faults = faults
        self._half = half
        self._die = die
        self._dead = False
        self._halves_seen: set[tuple[NodeId, int]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    # The machine's entry points

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        if self._active(TwoSteps, now):
            packet = self._first_half(sender, packet)
        return self._call(now, self._machine.on_packet, sender, packet)

    def handle(self, now: float, given: Input) -> Effects:
        effects = self._call(now, self._machine.handle, given)
        if type(given) is Timer and self._active(TimersTwice, now):
            effects += self._call(now, self._machine.handle, given)
        return effects

    # What goes wrong

    def _call(self, now: float, entry: Callable[..., Effects], *arguments: Any) -> Effects:
        if self._dead:
            return []
        ahead = sum(fault.ahead for fault in self._faults if isinstance(fault, ClockJump) and fault.at <= now)
        effects = self._cut_in_half(now, entry(now + ahead, *arguments))
        late = sum(fault.extra for fault in self._active(LateTimers, now))
        if ahead or late:
            effects = [_moved(effect, late - ahead) for effect in effects]
        return effects

    def _active(self, kind: type[Any], now: float) -> list[Any]:
        return [fault for fault in self._faults if isinstance(fault, kind) and fault.at <= now < fault.until]

    def _first_half(self, sender: NodeId, packet: Any) -> Any:
        """Of entries about the membership only the first half arrives at first, and does not count as an answer."""
        entries = getattr(packet, "entries", None)
        if entries is None or (sender, packet.number) in self._halves_seen:
            return packet
        self._halves_seen.add((sender, packet.number))
        return replace(packet, entries=entries[: len(entries) // 2], number=0)

    def _cut_in_half(self, now: float, effects: Effects) -> Effects:
        half = self._half[0]
        if half is None or now < half.at:
            return effects
        for place, effect in enumerate(effects):
            if isinstance(effect, Send) and len(effect.peers) > 1:
                self._half[0] = None
                self._dead = True
                self._die()
                return [*effects[:place], Send(effect.peers[: len(effect.peers) // 2], effect.packet)]
        return effects


def _moved(effect: Effect, by: float) -> Effect:
    return SetTimer(effect.timer, effect.at + by) if isinstance(effect, SetTimer) else effect
