"""Run one fault schedule: a phase of faults, then everything heals, then the world must come to rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from cubecast.errors import RemoteProtocolError
from cubecast.ids import NodeId, Topic
from cubecast.protocol.effects import Deliver, Effect, Gap, Reincarnated
from cubecast.protocol.families import find
from cubecast.protocol.family import Family
from cubecast.sim import fault_injection
from cubecast.sim.config import stream
from cubecast.sim.lives import MachineFactory
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.recorder import Recorder
from cubecast.sim.scenario import begin_subscribed, machines
from cubecast.sim.schedule import SEVERAL, Action, Schedule
from cubecast.sim.world import World
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.schema import Kind, digest_of
from cubecast.wire.codec import codec_of

EVENTS_PER_NODE = 10_000
"""More, and packets do not cease."""
HINTS = 3
"""How often, after healing, every node is told that it may talk to the others again, where drivers tell anything."""
CALM = 3
"""A world with perpetual timers is at rest when nobody waits for anything this many looks in a row."""
LOOK_EVERY = 2000.0
PATIENCE = 40 * LOOK_EVERY
"""So long nothing was delivered to anybody: what waits then waits for ever."""
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
class Asked:
    """What applications asked for, and what they were told that leaves no row."""

    requests: list[tuple[float, NodeId, Topic, tuple[int, ...]]] = field(default_factory=list)
    """When, of which node, on which topic, and the digests of the payloads: what it took on."""
    wishes: dict[NodeId, set[Topic]] = field(default_factory=dict)
    """At the end, of every node that is there: the topics its application wants to be subscribed to."""
    followers: dict[NodeId, float] = field(default_factory=dict)
    """Nodes that are there at the end and have an interest, and since when."""
    epilogue_at: float = float("inf")
    """From then on everything is healed and settled."""
    unnamed_gaps: list[tuple[NodeId, int, Topic, float]] = field(default_factory=list)
    """Gaps that name no message: (node, incarnation, topic, when)."""
    contradicted: set[tuple[NodeId, int]] = field(default_factory=set)
    """Incarnations that ended while a node that came back did not live with them, or one that had come back was over
    already and may have said so before."""
    deliveries: int = 0
    """How many there were, so far."""


class _Watching(Recorder):
    """Sees the effects that become no rows."""

    world: World

    def __init__(self, sink: list[Event], asked: Asked, family: Family) -> None:
        super().__init__(sink, receptions_only=True)
        self._asked = asked
        self._inspect = family.inspect

    def effect(self, node: NodeId, now: float, effect: Effect) -> None:
        if type(effect) is Reincarnated:
            ended = node, self.of(node).incarnation
            if any(self._may_contradict(peer, *ended) for peer in self.world.nodes if peer != node):
                self._asked.contradicted.add(ended)
        if type(effect) is Gap and not effect.missing:
            self._asked.unnamed_gaps.append((node, self.of(node).incarnation, effect.topic, now))
        self._asked.deliveries += type(effect) is Deliver
        super().effect(node, now, effect)

    def _may_contradict(self, peer: NodeId, node: NodeId, incarnation: int) -> bool:
        """Did that node come back, and begin without this incarnation? Where it came back more than once, or does not
        take part, an earlier life may have said so."""
        world = self.world
        if not world.incarnations[peer]:
            return False
        inspector = self._inspect(world.machines[peer])
        if world.incarnations[peer] > 1 or peer in world.crashed or not inspector.is_active:
            return True
        standing = inspector.standings().get(node)
        return standing is None or standing.incarnation != incarnation or not standing.alive


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
    asked: Asked = field(default_factory=Asked)


def run(
    schedule: Schedule, wrap: Wrap | None = None, *, careful: bool = True, promises: tuple[str, ...] | None = None
) -> Outcome:
    """Run it; `promises` in place of the protocol's own let one see what it does not promise."""
    family = find(schedule.protocol)
    promises = family.promised(static=schedule.is_static) if promises is None else promises
    events: list[Event] = []
    asked = Asked()
    watching = _Watching(events, asked, family)
    world = watching.world = _world(schedule, family, wrap, watching, careful=careful)
    info = RunInfo(
        f"swarm-{schedule.seed}",
        schedule.protocol,
        promises,
        nodes=len(schedule.nodes),
        seed=schedule.seed,
        measured=family.measured,
    )
    applications = _Applications(world, asked)
    _install(schedule, world, applications)
    try:
        stuck = applications.live(schedule, patient="P12" not in promises)
    except (AssertionError, RemoteProtocolError, LookupError) as error:
        return Outcome(info, events, [], f"{type(error).__name__} at {world.now:g}: {error}")
    world.finish()
    asked.wishes = {node: set(world.subscriptions[node]) for node in world.present()}
    for event in events:  # a process that crashed took its interest along
        if event.kind == Kind.CRASH and event.time >= asked.followers.get(event.node, world.now):
            del asked.followers[event.node]
    return Outcome(info, events, stuck, interests_known=world.interests_known, asked=asked)


def _world(schedule: Schedule, family: Family, wrap: Wrap | None, recorder: Recorder, *, careful: bool) -> World:
    make = machines(
        family,
        schedule.seed,
        schedule.size,
        schedule.nodes,
        schedule.members,
        schedule.settings,
        contacts=_contacts(schedule, family),
    )
    delay = parse_delay(schedule.propagation, stream(schedule.seed, "network"), schedule.size)
    return World(
        schedule.nodes,
        wrap(make) if wrap is not None else make,
        Network(schedule.size, delay, fifo_links=schedule.fifo_links or family.fifo),
        codec_of(family),
        recorder=recorder,
        coded=schedule.coded,
        careful=careful,
        together=family.together,
    )


def _contacts(schedule: Schedule, family: Family) -> dict[NodeId, tuple[NodeId, ...]]:
    """Whom each node may turn to first, in a family whose nodes nobody announces; or, where they are admitted to
    their places, whom it remembers when it comes back: few, many or all."""
    population = family.population
    if population.announced and not population.power_of_two:
        return {}
    rng = stream(schedule.seed, "contacts")
    others = {node: [one for one in schedule.nodes if one != node] for node in schedule.nodes}
    if population.announced:
        return {node: tuple(rng.sample(some, rng.randint(0, len(some)))) for node, some in others.items()}
    return {node: tuple(rng.sample(some, min(CONTACTS, len(some)))) for node, some in others.items()}


class _Applications:
    """Ask on behalf of the schedule, and remember what was asked."""

    def __init__(self, world: World, asked: Asked) -> None:
        self._world = world
        self._asked = asked
        self._numbers = count()

    def live(self, schedule: Schedule, *, patient: bool) -> list[str]:
        """The whole run; what is waited for at its end."""
        world, asked = self._world, self._asked
        world.start()
        alone = find(schedule.protocol) if schedule.detection_delay is None else None
        rest = _Rest(world, asked, patient=patient, alone=alone)
        stuck = rest.reach(schedule.heal_at + HINTS * LOOK_EVERY)
        if not stuck and schedule.epilogue:
            asked.epilogue_at = world.now
            self.epilogue(schedule.epilogue, stream(schedule.seed, "epilogue"))
            stuck = rest.reach(world.now + LOOK_EVERY)
        return stuck

    def act(self, action: Action) -> None:
        """What a schedule says; the application of a process that stands still asks nothing."""
        world, node, topic = self._world, action.node, action.topic
        if node in world.paused:
            return
        match action.kind:
            case "publish":
                self.publish(node, topic, action.messages, action.size)
            case "crosspost":
                self.crosspost(node, tuple(topic.split(SEVERAL)), action.messages)
            case "subscribe":
                world.subscribe(node, topic)
            case "follow":
                if world.follow(node, Beginning(topic.removesuffix("*"))):
                    self._asked.followers[node] = world.now
            case "unfollow":
                world.follow(node, None)
                self._asked.followers.pop(node, None)
            case _:
                world.unsubscribe(node, topic)

    def publish(self, node: NodeId, topic: Topic, messages: int = 1, size: int = 0) -> None:
        if node not in self._world.paused:
            payloads = self._payloads(node, (topic,), messages, size)
            self._take_back(self._world.publish(node, topic, payloads), 1)

    def crosspost(self, node: NodeId, topics: tuple[Topic, ...], messages: int) -> None:
        if node not in self._world.paused:
            payloads = self._payloads(node, topics, messages, 0)
            self._take_back(self._world.crosspost(node, topics, payloads), len(topics))

    def _payloads(self, node: NodeId, topics: tuple[Topic, ...], messages: int, size: int) -> list[bytes]:
        """No two messages of a run are alike. Noted first: what is published at once is a row before the call
        returns."""
        payloads = [b"%d" % next(self._numbers) + bytes(size) for _ in range(messages)]
        digests = tuple(map(digest_of, payloads))
        self._asked.requests += [(self._world.now, node, topic, digests) for topic in topics]
        return payloads

    def _take_back(self, was_done: bool, requests: int) -> None:
        """What was refused was not asked for."""
        if not was_done:
            del self._asked.requests[-requests:]

    def epilogue(self, publishers: int, rng: Random) -> None:
        """Everything is settled: some nodes publish once more on every topic that is subscribed to."""
        world = self._world
        there = world.present()
        for topic in sorted(set().union(*(world.subscriptions[node] for node in there))):
            for node in rng.sample(there, min(publishers, len(there))):
                self.publish(node, topic)


def _install(schedule: Schedule, world: World, applications: _Applications) -> None:
    begin_subscribed(world, find(schedule.protocol), schedule.members)
    for action in schedule.actions:
        world.at(action.at, applications.act, action)
    for at, node, peer in schedule.suspicions:
        world.at(at, world.suspect, node, peer)
    rng = stream(schedule.seed, "faults")
    fault_injection.install(schedule.faults, world, rng, detection_delay=schedule.detection_delay)
    hinted = find(schedule.protocol).population.announced and schedule.detection_delay is not None
    for k in range(HINTS if hinted else 0):
        world.at(schedule.heal_at + k * LOOK_EVERY, _heal, world)
    if schedule.reactions:
        _react(schedule, world, applications, stream(schedule.seed, "reactions"))


def _react(schedule: Schedule, world: World, applications: _Applications, rng: Random) -> None:
    left = schedule.reactions

    def answer(now: float, node: NodeId, effect: Deliver) -> None:
        nonlocal left
        if left and effect.message.source != node and rng.random() < 0.3:
            left -= 1
            world.at(now + rng.choice((0.0, rng.uniform(0, 200))), applications.publish, node, effect.topic)

    world.on_deliver = answer


def _heal(world: World) -> None:
    """Detectors are right again: the crashed are reported to everybody, and everybody may talk to everybody."""
    for node in world.nodes:
        for peer in world.nodes:
            if peer != node and peer not in world.crashed:
                world.unsuspect(node, peer)
            elif peer != node:
                world.suspect(node, peer)


class _Rest:
    """Until nothing happens any more, or, with perpetual or very late timers, until nobody waits for anything and
    nothing is delivered: of what is under way, a machine that waits for no answer does not tell.

    Where messages are still delivered nobody waits for ever: a window of one over slow links empties a long queue late.
    A protocol that does not promise to hold nothing for ever is at rest with messages held: `patient`. Where no driver
    says who may talk to whom again, the nodes of that family have to find out alone.
    """

    def __init__(self, world: World, asked: Asked, *, patient: bool, alone: Family | None) -> None:
        self._world = world
        self._asked = asked
        self._patient = patient
        self._alone = alone

    def reach(self, until: float) -> list[str]:
        """What nodes wait for for ever; empty at rest."""
        world, asked = self._world, self._asked
        most_events, calm = world.events + EVENTS_PER_NODE * len(world.nodes), 0
        last, delivered = until + PATIENCE, asked.deliveries
        while world.events < most_events:
            if world.run(until, most_events) and (self._patient or not self._waiting()):
                return []
            calm = calm + 1 if not self._waiting() and asked.deliveries == delivered else 0
            if calm == CALM:
                return []
            if asked.deliveries > delivered:
                last, delivered = until + PATIENCE, asked.deliveries
            if until > last:
                break
            until += LOOK_EVERY
        return self._waiting() or ["packets do not cease"]

    def _waiting(self) -> list[str]:
        world = self._world
        return self._apart() + [
            f"node {node}: {line}"
            for node in world.nodes
            if node not in world.crashed
            for line in world.machines[node].waiting()
        ]

    def _apart(self) -> list[str]:
        if self._alone is None:
            return []
        world, there = self._world, self._world.present()
        living = {node: self._alone.inspect(world.machines[node]).living for node in there}
        return [f"node {node}: lives with {living[node]} only" for node in there if set(living[node]) != set(there)]
