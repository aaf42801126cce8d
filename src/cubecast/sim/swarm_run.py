"""Run one fault schedule: a phase of faults, then everything heals, then the world must come to rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from cubecast.errors import RemoteProtocolError
from cubecast.ids import NodeId, Topic
from cubecast.protocol.effects import Deliver
from cubecast.protocol.families import find
from cubecast.protocol.family import Family
from cubecast.sim import fault_injection
from cubecast.sim.delays import parse_delay
from cubecast.sim.lives import MachineFactory
from cubecast.sim.network import Network
from cubecast.sim.randomness import stream
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.schedule import Action, Schedule
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.wire.codec import codec_of

MOST_EVENTS = 50_000
HINTS = 3
"""How often, after healing, every node is told that it may talk to the others again."""
CALM = 3
"""A world with perpetual timers is at rest when nobody waits for anything this many looks in a row."""
LOOK_EVERY = 2000.0
CONTACTS = 3

Wrap = Callable[[MachineFactory], MachineFactory]
"""Tests plant bugs by wrapping the factory of machines."""


@dataclass(frozen=True)
class Beginning:
    """An interest in all topics that begin alike."""

    begin: str

    def __call__(self, topic: Topic) -> bool:
        return topic.startswith(self.begin)


@dataclass
class Outcome:
    info: RunInfo
    events: list[Event]
    stuck: list[str]
    """Why the world did not come to rest, a line per thing some node waits for; empty when it did."""
    crash: str = ""
    """An assertion of a machine that did not hold."""
    interests_known: dict[NodeId, float] = field(default_factory=dict)
    """Nodes whose interest is known at the end, and since when."""


def run(
    schedule: Schedule, wrap: Wrap | None = None, *, careful: bool = True, promises: tuple[str, ...] | None = None
) -> Outcome:
    """Run it; `promises` in place of the protocol's own let one see what it does not promise."""
    family = find(schedule.protocol)
    make = machines(
        family,
        schedule.seed,
        schedule.size,
        schedule.nodes,
        schedule.members,
        schedule.settings,
        contacts=_contacts(schedule, family),
    )
    promises = family.promises if promises is None else promises
    delay = parse_delay(schedule.propagation, stream(schedule.seed, "network"), schedule.size)
    network = Network(schedule.size, delay, fifo_links=schedule.fifo_links or family.fifo)
    events: list[Event] = []
    world = World(
        schedule.nodes,
        wrap(make) if wrap is not None else make,
        network,
        codec_of(family),
        recorder=Recorder(events, receptions_only=True),
        coded=schedule.coded,
        careful=careful,
    )
    info = RunInfo(
        f"swarm-{schedule.seed}",
        schedule.protocol,
        promises,
        nodes=len(schedule.nodes),
        seed=schedule.seed,
        measured=family.measured,
    )
    _install(schedule, world)
    try:
        world.start()
        stuck = _to_rest(schedule, world, patient="P12" not in promises)
    except (AssertionError, RemoteProtocolError, LookupError) as error:
        return Outcome(info, events, [], f"{type(error).__name__} at {world.now:g}: {error}")
    world.finish()
    return Outcome(info, events, stuck, interests_known=world.interests_known)


def _contacts(schedule: Schedule, family: Family) -> dict[NodeId, tuple[NodeId, ...]]:
    """Whom each node may turn to first, in a family whose nodes nobody announces."""
    if family.population.announced:
        return {}
    rng = stream(schedule.seed, "contacts")
    others = {node: [one for one in schedule.nodes if one != node] for node in schedule.nodes}
    return {node: tuple(rng.sample(some, min(CONTACTS, len(some)))) for node, some in others.items()}


def _install(schedule: Schedule, world: World) -> None:
    begin_subscribed(world, find(schedule.protocol), schedule.members)
    for action in schedule.actions:
        world.at(action.at, _act, world, action)
    for at, node, peer in schedule.suspicions:
        world.at(at, world.suspect, node, peer)
    rng = stream(schedule.seed, "faults")
    fault_injection.install(schedule.faults, world, rng, detection_delay=schedule.detection_delay)
    for k in range(HINTS if find(schedule.protocol).population.announced else 0):
        world.at(schedule.heal_at + k * LOOK_EVERY, _heal, world)
    if schedule.reactions:
        _react(schedule, world, stream(schedule.seed, "reactions"))


def _act(world: World, action: Action) -> None:
    if action.node in world.paused:
        return
    match action.kind:
        case "publish":
            world.publish(action.node, action.topic, [b"%d" % k for k in range(action.messages)])
        case "subscribe":
            world.subscribe(action.node, action.topic)
        case "follow":
            world.follow(action.node, Beginning(action.topic.removesuffix("*")))
        case "unfollow":
            world.follow(action.node, None)
        case _:
            world.unsubscribe(action.node, action.topic)


def _react(schedule: Schedule, world: World, rng: Random) -> None:
    left = schedule.reactions

    def answer(now: float, node: NodeId, effect: Deliver) -> None:
        nonlocal left
        if left and effect.message.source != node and rng.random() < 0.3:
            left -= 1
            world.at(now + rng.choice((0.0, rng.uniform(0, 200))), world.publish, node, effect.topic, (b"0",))

    world.on_deliver = answer


def _heal(world: World) -> None:
    """Detectors are right again: the crashed are reported to everybody, and everybody may talk to everybody."""
    for node in world.nodes:
        for peer in world.nodes:
            if peer != node:
                (world.suspect if peer in world.crashed else world.unsuspect)(node, peer)


def _to_rest(schedule: Schedule, world: World, *, patient: bool) -> list[str]:
    """Run until nothing happens any more, or, with perpetual timers, until nobody waits for anything.

    A protocol that does not promise to hold nothing for ever is at rest with messages held: `patient`.
    """
    until, calm = schedule.heal_at + HINTS * LOOK_EVERY, 0
    while world.events < MOST_EVENTS:
        if world.run(until, MOST_EVENTS) and (patient or not _waiting(world)):
            return []
        calm = calm + 1 if not _waiting(world) else 0
        if calm == CALM:
            return []
        if until > schedule.heal_at + 40 * LOOK_EVERY:
            break
        until += LOOK_EVERY
    return _waiting(world) or ["packets do not cease"]


def _waiting(world: World) -> list[str]:
    return [
        f"node {node}: {line}"
        for node in world.nodes
        if node not in world.crashed
        for line in world.machines[node].waiting()
    ]
