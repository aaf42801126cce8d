"""Let the faults of a schedule happen in a world."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.effects import Effect, Effects, Send, SetTimer
from cubecast.protocol.inputs import Input, Timer
from cubecast.protocol.masks import ids_of, mask_of
from cubecast.sim.faults import (
    Break,
    ClockJump,
    Crash,
    Cutoff,
    Detour,
    Fault,
    Flicker,
    Half,
    Hold,
    Inside,
    LateTimers,
    LinkTrouble,
    OnLinks,
    Partition,
    Pause,
    Restart,
    Slow,
    Suspect,
    TimersTwice,
    Trouble,
    TwoSteps,
    nodes_of,
)
from cubecast.sim.world import World

MUCH_LATER = 2000.0
STEP_APART = 300.0
"""Between the two steps in which a node learns what others know, at most."""


def install(faults: Sequence[Fault], world: World, rng: Random, *, detection_delay: float | None = None) -> None:
    """Schedule the faults. With a detection delay, crashes and returns are reported to everybody, up to that late."""
    for fault in faults:
        strangers = nodes_of(fault) & ~mask_of(world.nodes)
        if strangers:
            raise BadInput(f"fault {fault} names node {next(ids_of(strangers))}, which does not exist")
    _install_links(faults, world, rng, detection_delay)
    for fault in faults:
        match fault:
            case Crash(node, at):
                world.at(at, world.crash, node)
            case Restart(node, at):
                world.at(at, world.restart, node)
            case Pause(node, at, until):
                world.at(at, world.pause, node)
                world.at(until, world.resume, node)
            case Suspect(node, at, until):
                _report(world, node, at, rng, 1.0, down=True)
                _report(world, node, until, rng, 1.0, down=False)
            case Flicker(node, peer, at):
                world.at(at, world.suspect, node, peer)
                world.at(at, world.unsuspect, node, peer)
            case Break(node, peer, at):
                world.at(at, world.break_link, node, peer)
        if detection_delay is not None and isinstance(fault, Crash | Restart):
            _report(world, fault.node, fault.at, rng, detection_delay, down=isinstance(fault, Crash))
    _install_inside([fault for fault in faults if isinstance(fault, Inside)], world, rng, detection_delay)


def _install_links(faults: Sequence[Fault], world: World, rng: Random, detection_delay: float | None) -> None:
    links = [fault for fault in faults if isinstance(fault, OnLinks | TwoSteps)]
    cutoffs = [fault for fault in faults if isinstance(fault, Cutoff)]
    if not links and not cutoffs:
        return
    dying = _Dying(cutoffs, world, rng, detection_delay)

    def fate(now: float, source: NodeId, destination: NodeId, packet: Any) -> list[float]:
        return _fate(links, rng, now, source, destination, packet) if dying.gets_out(now, source) else []

    world.network.fate = fate


def _install_inside(faults: Sequence[Inside], world: World, rng: Random, detection_delay: float | None) -> None:
    def die(node: NodeId) -> None:
        world.at(world.now, world.crash, node)
        if detection_delay is not None:
            _report(world, node, world.now, rng, detection_delay, down=True)

    for node in sorted({fault.node for fault in faults}):
        mine = [fault for fault in faults if fault.node == node]
        half = next((fault for fault in mine if isinstance(fault, Half)), None)
        tamper(world, node, mine, half, die)


class _Dying:
    """Nodes that crash in the middle of sending."""

    def __init__(self, cutoffs: Sequence[Cutoff], world: World, rng: Random, detection_delay: float | None) -> None:
        self._left = {fault.node: (fault.at, fault.packets) for fault in cutoffs}
        self._world = world
        self._rng = rng
        self._detection_delay = detection_delay

    def gets_out(self, now: float, source: NodeId) -> bool:
        """Does a packet sent now leave its node? The first that does not is the node's end."""
        at, left = self._left.get(source, (float("inf"), 0))
        if now < at:
            return True
        if left < 0 and now > at:  # it came back
            del self._left[source]
            return True
        if left == 0:
            self._left[source] = (now, -1)
            self._world.at(now, self._world.crash, source)
            if self._detection_delay is not None:
                _report(self._world, source, now, self._rng, self._detection_delay, down=True)
        elif left > 0:
            self._left[source] = (at, left - 1)
        return left > 0


def _report(world: World, node: NodeId, at: float, rng: Random, within: float, *, down: bool) -> None:
    tell = world.suspect if down else world.unsuspect
    for other in world.nodes:
        if other != node:
            world.at(at + rng.uniform(0, within), tell, other, node)


def _fate(
    links: Sequence[OnLinks | TwoSteps], rng: Random, now: float, source: NodeId, destination: NodeId, packet: Any
) -> list[float]:
    """Extra delay of every copy that arrives."""
    copies = [0.0]
    for fault in links:
        if not fault.at <= now < fault.until:
            continue
        match fault:
            case Partition(left, right, one_way):
                if _crosses(left, right, source, destination, one_way=one_way):
                    return []
            case Detour(left, right, extra):
                if _crosses(left, right, source, destination):
                    copies = [delay + extra for delay in copies]
            case Slow(node, extra):
                copies = [delay + extra for delay in copies] if node == source else copies
            case LinkTrouble(Trouble.LOSS, share):
                copies = [delay for delay in copies if rng.random() >= share]
            case LinkTrouble(Trouble.DUPLICATE, share):
                copies += [delay + rng.uniform(0, 50) for delay in copies if rng.random() < share]
            case LinkTrouble(Trouble.RESEND, share):
                copies += [delay + rng.uniform(0, MUCH_LATER) for delay in copies if rng.random() < share]
            case Hold(kind, extra):
                copies = [delay + extra for delay in copies] if type(packet).__name__ == kind else copies
            case TwoSteps(node):
                if node == destination and hasattr(packet, "entries"):
                    copies += [delay + rng.uniform(0, STEP_APART) for delay in copies]
            case LinkTrouble(Trouble.DELAY, extra):
                copies = [delay + extra for delay in copies]
            case LinkTrouble(Trouble.REORDER, most):
                copies = [delay + rng.uniform(0, most) for delay in copies]
    return copies


def _crosses(left: int, right: int, source: NodeId, destination: NodeId, *, one_way: bool = False) -> bool:
    forth = left >> source & right >> destination & 1
    back = right >> source & left >> destination & 1
    return bool(forth or (back and not one_way))


# Faults inside a node: a machine between the world and the real one changes what comes in and what goes out.


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
