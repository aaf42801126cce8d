"""Every interleaving of a tiny world: whatever can happen next is tried, states that recur are not explored again.

What can happen: any packet under way arrives, the next thing on the script happens, or a node learns of a crash (which
takes along what the node sent and nobody received). Time stands still and timers rest; when nothing else is left they
are fired until the world is at rest, and the history is judged. The search is stateless: a state is reached by running
the choices that lead to it from the start.
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any

from cubecast.ids import NodeId
from cubecast.protocol.effects import SetTimer
from cubecast.protocol.families import find
from cubecast.protocol.inputs import Timer
from cubecast.sim.network import Network
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import machines
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.wire.codec import codec_of

CLOSING_ROUNDS = 12
MOST_CLOSING_STEPS = 20_000
"""Tiny worlds come to rest after hundreds."""


@dataclass(frozen=True)
class TinyWorld:
    """At most a handful of nodes and a script: ("publish", node), ("subscribe", node), ("crash", node) …"""

    protocol: str
    size: int
    members: tuple[NodeId, ...]
    script: tuple[tuple[str, NodeId], ...]
    settings: dict[str, str] = field(default_factory=dict)
    promises: tuple[str, ...] | None = None
    nodes: tuple[NodeId, ...] = ()
    """Ids that are there; the others are holes. By default all."""


@dataclass
class Exploration:
    states: int = 0
    histories: int = 0
    delivered: int = 0
    """Histories in which a node other than its publisher delivers a message."""
    complete: bool = True
    """Nothing was left out: no limit was reached."""
    failures: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    """(choices that lead there, what is wrong)."""


Judge = Callable[[RunInfo, list[Event]], str | None]
"""What is wrong with a history, if anything."""


class _Chooser:
    """Takes the place of the scheduler: keeps what may happen instead of ordering it by time."""

    def __init__(self) -> None:
        self.tie = 0
        self.possible: list[tuple[Any, ...]] = []
        self._chosen: tuple[Any, ...] | None = None

    def next_tie(self) -> int:
        self.tie += 1
        return self.tie

    def push(self, event: tuple[Any, ...]) -> None:
        self.possible.append((0.0, *event[1:]))

    def pop(self) -> tuple[Any, ...] | None:
        """Only what was chosen is handed to the world, one event at a time."""
        chosen, self._chosen = self._chosen, None
        return chosen

    def choose(self, place: int) -> None:
        self._chosen = self.possible.pop(place)


class _StillWorld(World):
    """A world in which timers wait to be fired by hand."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.timers: dict[tuple[NodeId, str], SetTimer] = {}

    def _set_timer(self, node: NodeId, effect: SetTimer) -> None:
        self.timers[node, str(effect.timer)] = effect

    def fire_all(self) -> None:
        timers, self.timers = self.timers, {}
        for (node, _), effect in sorted(timers.items(), key=lambda item: item[0]):
            if node not in self.crashed:
                self._apply(node, self.machines[node].handle(0.0, Timer(effect.timer)))


class _Run:
    """One execution of a tiny world along given choices."""

    def __init__(self, tiny: TinyWorld) -> None:
        family = find(tiny.protocol)
        nodes = tiny.nodes or tuple(range(tiny.size))
        make = machines(family, 1, tiny.size, nodes, {"t": tiny.members}, tiny.settings)
        self.chooser = _Chooser()
        network = Network(tiny.size, lambda source, destination: 0.0)
        network.scheduler = self.chooser  # type: ignore[assignment]
        self.events: list[Event] = []
        recorder = Recorder(self.events)
        self.world = _StillWorld(nodes, make, network, codec_of(family), recorder=recorder, careful=True)
        promises = tiny.promises or family.promised(static=all("subscribe" not in kind for kind, _ in tiny.script))
        self.info = RunInfo("tiny", tiny.protocol, promises, nodes=len(nodes))
        self._script = list(tiny.script)
        for node in tiny.members:
            self.world.subscriptions[node].add("t")
        self.world.start()

    def choices(self) -> list[int]:
        """Places of what can happen next, equals counted once; −1 is the script's next line."""
        possible = self.chooser.possible
        possible[:] = [event for event in possible if event[2] not in self.world.crashed]
        seen: dict[Any, int] = {}
        for place, (_, _, node, sender, packet) in enumerate(possible):
            seen.setdefault((node, sender, packet.frame) if node >= 0 else place, place)
        return ([-1] if self._script else []) + list(seen.values())

    def step(self, choice: int) -> None:
        if choice >= 0:
            self.chooser.choose(choice)
            self.world.run()
            return
        kind, node = self._script.pop(0)
        match kind:
            case "publish":
                self.world.publish(node, "t", (b"x",))
            case "subscribe":
                self.world.subscribe(node, "t")
            case "unsubscribe":
                self.world.unsubscribe(node, "t")
            case _:
                self.world.crash(node)
                possible = self.chooser.possible
                possible[:] = [event for event in possible if event[2] < 0 or event[3] != node]
                for other in self.world.nodes:
                    if other != node:
                        self.world.at(0.0, partial(self.world.suspect, other, node))

    def key(self) -> bytes:
        """The same for two executions only if nothing that follows can differ."""
        digest = blake2b(digest_size=16)
        for node in self.world.nodes:
            digest.update(pickle.dumps(self.world.machines[node]))
        for event in sorted(_wire(event) for event in self.chooser.possible):
            digest.update(repr(event).encode())
        rows = sorted((row.node, row.incarnation, row.seq, row.kind, row[5:9]) for row in self.events if _tells(row))
        digest.update(repr((rows, len(self._script))).encode())
        return digest.digest()

    def close(self) -> list[str]:
        """Let timers fire until nobody waits; what is still waited for."""
        steps = 0
        for _ in range(CLOSING_ROUNDS):
            self.world.fire_all()
            while self.choices():
                self.step(0)
                steps += 1
                if steps == MOST_CLOSING_STEPS:
                    return ["every packet is answered by another one, without end"]
        self.world.finish()
        return [
            f"node {node}: {line}"
            for node in self.world.nodes
            if node not in self.world.crashed
            for line in self.world.machines[node].waiting()
        ]


def _tells(row: Event) -> bool:
    return row.kind not in ("send", "receive")


def _wire(event: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, node, sender, packet = event
    return (node, sender, packet.frame) if node >= 0 else (node, -1, repr(sender.args).encode())


def explore(tiny: TinyWorld, judge: Judge, *, most_states: int = 100_000, stop_at_first: bool = True) -> Exploration:
    """Depth first over all choices."""
    result, seen = Exploration(), set[bytes]()
    worklist: list[tuple[int, ...]] = [()]
    while worklist:
        path = worklist.pop()
        execution = _Run(tiny)
        for choice in path:
            execution.step(choice)
        key = execution.key()
        if key in seen:
            continue
        seen.add(key)
        result.states += 1
        choices = execution.choices()
        worklist += [(*path, choice) for choice in reversed(choices)]
        if not choices:
            result.histories += 1
            stuck = execution.close()
            result.delivered += any(row.kind == "deliver" and row.source != row.node for row in execution.events)
            wrong = f"stuck: {stuck[0]}" if stuck else judge(execution.info, execution.events)
            if wrong is not None:
                result.failures.append((path, wrong))
        if (result.failures and stop_at_first) or result.states == most_states:
            result.complete = not worklist
            break
    return result


def replay(tiny: TinyWorld, path: Sequence[int]) -> list[Event]:
    """The history those choices lead to."""
    execution = _Run(tiny)
    for choice in path:
        execution.step(choice)
    execution.close()
    return execution.events
