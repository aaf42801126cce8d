"""A schedule as a scenario script: what every machine was told, in order, as commands one can read, cut and replay.

The commands are those of `tests/scripts/README.md`. A script depends on neither delays nor seeds: packets move when it
says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from cubecast.ids import NodeId
from cubecast.protocol.effects import Effects, Send
from cubecast.protocol.families import find
from cubecast.protocol.inputs import (
    Advertise,
    Crosspost,
    Expelled,
    Follow,
    Input,
    Leave,
    LinkFull,
    PeerDown,
    PeerUp,
    Publish,
    Reader,
    Start,
    Subscribe,
    Timer,
    Unadvertise,
    Unsubscribe,
)
from cubecast.sim.lives import MachineFactory
from cubecast.sim.schedule import SEVERAL, Schedule
from cubecast.sim.swarm_run import HINTS, LOOK_EVERY, Outcome, Wrap, run

RULE = "----"


@dataclass
class _Input:
    """One call of one machine."""

    now: float
    node: NodeId
    life: int
    """Which machine of the node, counted from 0: a restart makes a new one."""
    words: tuple[Any, ...]
    flight: int = -1
    """The packet that arrived, as a place in the link's list of everything ever sent on it."""


class _Log:
    """Everything machines were told, and everything they sent."""

    def __init__(self) -> None:
        self.inputs: list[_Input] = []
        self.sent: dict[tuple[NodeId, NodeId], list[Any]] = {}
        self.lives: dict[NodeId, int] = {}

    def told(self, now: float, node: NodeId, life: int, *words: Any) -> _Input:
        self.inputs.append(_Input(now, node, life, words))
        return self.inputs[-1]

    def sends(self, node: NodeId, effects: Effects) -> Effects:
        for effect in effects:
            if isinstance(effect, Send):
                for peer in effect.peers:
                    self.sent.setdefault((node, peer), []).append(effect.packet)
        return effects

    def place(self, link: tuple[NodeId, NodeId], packet: Any) -> int:
        """Which packet of the link this is; one that was changed on the way is the one it was made of."""
        for place, sent in enumerate(self.sent[link]):
            if sent is packet or (packet.frame is not None and sent.frame == packet.frame):
                return place
        return next(k for k, sent in enumerate(self.sent[link]) if _part_of(packet, sent))


def _part_of(part: Any, whole: Any) -> bool:
    return (
        type(part) is type(whole) and part.topic == whole.topic and part.entries == whole.entries[: len(part.entries)]
    )


class CallRecorder:
    """Stands before a machine and writes down what it is told."""

    def __init__(self, machine: Any, node: NodeId, log: _Log) -> None:
        self._machine = machine
        self._node = node
        self._log = log
        self._life = log.lives[node] = log.lives.get(node, -1) + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def on_packet(self, now: float, sender: NodeId, packet: Any) -> Effects:
        told = self._told(now, "learn" if packet.frame is None else "deliver", f"{sender}>{self._node}")
        told.flight = self._log.place((sender, self._node), packet)
        return self._sends(self._machine.on_packet(now, sender, packet))

    def handle(self, now: float, given: Input) -> Effects:
        self._told(now, *self._words(given))
        return self._sends(self._machine.handle(now, given))

    def _words(self, given: Input) -> tuple[Any, ...]:
        """The command of a script that tells a node the same."""
        match given:
            case Start():
                return "restart", self._node
            case Timer(timer):
                return "timer", self._node, str(timer).replace(" ", "")
            case PeerDown(peer):
                return "suspect", self._node, peer
            case PeerUp(peer):
                return "trust", self._node, peer
            case Publish(topic, payloads):
                return "publish", self._node, topic, *([len(payloads)] if len(payloads) > 1 else [])
            case Crosspost(topics, payloads):
                return "crosspost", self._node, SEVERAL.join(topics), *([len(payloads)] if len(payloads) > 1 else [])
            case Follow(None):
                return "unfollow", self._node
            case Follow(interest):
                return "follow", self._node, f"{getattr(interest, 'begin', '')}*"
            case Subscribe(topic) | Unsubscribe(topic) | Advertise(topic) | Unadvertise(topic):
                return type(given).__name__.lower(), self._node, topic
            case LinkFull(peer, full):
                return "full" if full else "room", self._node, peer
            case Reader(topic, reads):
                return "reads" if reads else "waits", self._node, topic
            case Leave() | Expelled():
                return type(given).__name__.lower(), self._node
            case _:
                assert_never(given)

    def _told(self, now: float, *words: Any) -> _Input:
        return self._log.told(now, self._node, self._life, *words)

    def _sends(self, effects: Effects) -> Effects:
        return self._log.sends(self._node, effects)


def scenario(schedule: Schedule, kind: str, wrap: Wrap | None = None) -> str:
    """The script of a schedule that fails in this way: a promise, `stuck`, or something else."""
    log = _Log()

    def witnessed(make: MachineFactory) -> MachineFactory:
        inner: Callable[[NodeId, int], Any] = wrap(make) if wrap is not None else make
        return lambda node, incarnation: CallRecorder(inner(node, incarnation), node, log)

    outcome = run(schedule, witnessed, careful=False)
    last = schedule.heal_at + HINTS * LOOK_EVERY if outcome.stuck else float("inf")
    inputs = [one for one in log.inputs if one.now <= last]
    return "\n".join([*_scene(schedule, kind), *_commands(schedule, inputs, outcome), "", *_verdict(kind), RULE, ""])


def _scene(schedule: Schedule, kind: str) -> list[str]:
    settings = " ".join(f"{name}={value}" for name, value in schedule.settings.items())
    faults = ", ".join(map(str, schedule.faults)) or "none"
    return [
        f"# {schedule.protocol}, seed {schedule.seed}: {kind}. Faults: {faults}.",
        "",
        f"cube {schedule.size} {schedule.protocol} {settings}".rstrip(),
        f"ids {' '.join(map(str, schedule.nodes))}",
        *(f"members {topic} {' '.join(map(str, nodes))}" for topic, nodes in schedule.members.items()),
        RULE,
        "",
    ]


def _verdict(kind: str) -> list[str]:
    return [f"check {kind}"] if kind[0] in "KP" and kind[1:].isdigit() else ["waiting"]


def _commands(schedule: Schedule, inputs: list[_Input], outcome: Outcome) -> Iterator[str]:
    """Arrivals name packets by their place among those under way; one that arrives again later stays under way."""
    timed = schedule.settings.get("detection") == "diagnosis" or not find(schedule.protocol).nemesis.full
    crashed = {event.node for event in outcome.events if event.kind == "crash"}
    ends = {(one.node, one.life): place for place, one in enumerate(inputs)}
    arrivals = {(one.words[1], one.flight): place for place, one in enumerate(inputs) if one.flight >= 0}
    gone: dict[str, list[int]] = {}
    last_life = {one.node: one.life for one in inputs}
    clock = -1.0
    for place, one in enumerate(inputs):
        if timed and one.now != clock:
            clock = one.now
            yield f"clock {clock:.3f}"
        if one.flight >= 0:
            yield _arrival(one, arrivals[one.words[1], one.flight] == place, gone.setdefault(one.words[1], []))
        elif one.words[0] != "restart" or one.life:
            yield " ".join(map(str, one.words))
        if ends[one.node, one.life] == place and (one.life < last_life[one.node] or one.node in crashed):
            yield from _end_of(one, last_life[one.node], outcome)
    yield RULE


def _arrival(one: _Input, for_the_last_time: bool, gone: list[int]) -> str:
    command, link = one.words
    rank = one.flight + 1 - sum(place < one.flight for place in gone)
    if command == "deliver" and not for_the_last_time:
        command = "copy"
    elif command == "deliver":
        gone.append(one.flight)
    return f"{command} {link}" + (f"#{rank}" if rank > 1 else "")


def _end_of(one: _Input, last_life: int, outcome: Outcome) -> Iterator[str]:
    """A machine is told nothing more because its node crashed; the last one only if it did not stay."""
    lives_on = any(event.node == one.node and event.kind == "quiescent" for event in outcome.events)
    if one.life < last_life or not lives_on:
        yield f"crash {one.node}"
