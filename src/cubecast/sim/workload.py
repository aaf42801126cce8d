"""Who publishes what when, who subscribes. A workload is data; `install` turns it into scheduled calls on a world."""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TypeAlias

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic
from cubecast.protocol.effects import Deliver
from cubecast.sim.world import World

FORMS = "uniform, poisson:MEAN, periodic:PERIOD, respond:FIRST:WAIT or respond-poisson:FIRST:MEAN"


@dataclass(frozen=True)
class Uniform:
    """Each publisher's messages at independent times, uniform in the window."""


@dataclass(frozen=True)
class Poisson:
    """Each publisher publishes after exponential pauses of this mean."""

    mean: float


@dataclass(frozen=True)
class Periodic:
    """Every period one publication by a random current subscriber, until the window ends (thesis §5.6.6)."""

    period: float


@dataclass(frozen=True)
class Respond:
    """`first` nodes publish at the start; everybody else once, some time after its first-th delivery (§5.6.4): up to
    `wait`, or exponential with this mean."""

    first: int
    wait: float
    exponential: bool = False


Workload: TypeAlias = Uniform | Poisson | Periodic | Respond


def parse_workload(text: str) -> Workload:
    name, *parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
        if any(number <= 0 for number in numbers):
            raise ValueError
        match name, numbers:
            case "uniform", []:
                return Uniform()
            case "poisson", [mean]:
                return Poisson(mean)
            case "periodic", [period]:
                return Periodic(period)
            case (("respond" | "respond-poisson"), [first, wait]) if first == int(first):
                return Respond(int(first), wait, name != "respond")
    except ValueError:
        pass
    raise BadInput(f"workload {text!r} is not understood; write one of {FORMS}")


class Topics:
    """Topic names, and how often each is published on: uniformly or by Zipf's law with some exponent."""

    def __init__(
        self, count: int, exponent: float, rng: Random, members: Mapping[str, Sequence[NodeId]] | None = None
    ) -> None:
        """With `members` they are their names, and a publisher draws among those it subscribes to."""
        self.names = list(members or ()) or ([f"t{k}" for k in range(count)] if count > 1 else ["t"])
        self._wanted: dict[NodeId, list[str]] = {}
        for topic, some in (members or {}).items():
            for node in some:
                self._wanted.setdefault(node, []).append(topic)
        self._shares = list(accumulate((k + 1) ** -exponent for k in range(count)))
        self._rng = rng

    def draw(self, node: NodeId | None = None) -> str:
        if len(self.names) == 1:
            return self.names[0]
        if node in self._wanted:
            return self._rng.choice(self._wanted[node])
        return self.names[bisect(self._shares, self._rng.random() * self._shares[-1])]

    def draw_several(self, node: NodeId, count: int) -> tuple[str, ...]:
        """Different ones, as many as there are for this node to publish on."""
        first = self.draw(node)
        others = [topic for topic in self._wanted.get(node, self.names) if topic != first]
        return first, *self._rng.sample(others, min(count - 1, len(others)))


def install(
    workload: Workload,
    world: World,
    publishers: Sequence[NodeId],
    topics: Topics,
    *,
    messages: int,
    window: float,
    payload: bytes,
    rng: Random,
    tags: int = 1,
) -> None:
    """Schedule the workload: `messages` per publisher where the workload counts them, all within `window`; each on so
    many topics as `tags` says."""
    if tags > 1 and not isinstance(workload, Uniform | Poisson):
        raise BadInput("messages of several topics are published by the workloads uniform and poisson only")

    def publish_at(time: float, node: NodeId) -> None:
        if tags > 1:
            world.at(time, world.crosspost, node, topics.draw_several(node, tags), (payload,))
        else:
            world.at(time, world.publish, node, topics.draw(node), (payload,))

    match workload:
        case Uniform():
            for node in publishers:
                for time in sorted(rng.uniform(0, window) for _ in range(messages)):
                    publish_at(time, node)
        case Poisson(mean):
            for node in publishers:
                time = 0.0
                for _ in range(messages):
                    time += rng.expovariate(1 / mean)
                    publish_at(time, node)
        case Periodic(period):
            _periodic(world, topics, period, window, payload, rng)
        case Respond():
            _respond(world, publishers, topics, workload, payload, rng)


def _periodic(world: World, topics: Topics, period: float, window: float, payload: bytes, rng: Random) -> None:
    def tick() -> None:
        topic = topics.draw()
        candidates = [node for node in world.nodes if topic in world.subscriptions[node]]
        if candidates:
            world.publish(rng.choice(candidates), topic, (payload,))

    for k in range(1, int(window / period) + 1):
        world.at(k * period, tick)


def _respond(
    world: World, publishers: Sequence[NodeId], topics: Topics, workload: Respond, payload: bytes, rng: Random
) -> None:
    topic, first, wait = topics.names[0], workload.first, workload.wait
    openers = rng.sample(list(publishers), min(first, len(publishers)))
    for node in openers:
        world.at(0.0, world.publish, node, topic, (payload,))
    awaited = {node: first for node in publishers if node not in openers}

    def answer(now: float, node: NodeId, effect: Deliver) -> None:
        missing = awaited.get(node)
        if missing is None or effect.topic != topic:
            return
        if missing > 1:
            awaited[node] = missing - 1
        else:
            del awaited[node]
            pause = rng.expovariate(1 / wait) if workload.exponential else rng.uniform(0, wait)
            world.at(now + pause, world.publish, node, topic, (payload,))

    world.on_deliver = answer


# Subscribers that come and go: every leaver is replaced by a random outsider, so their number stays (§5.6.6).


def replace_leavers(world: World, topic: str, session_mean: float, until: float, rng: Random) -> None:
    """Exponential session times of this mean; nobody leaves after `until`."""

    def schedule_leave(node: NodeId) -> None:
        time = world.now + rng.expovariate(1 / session_mean)
        if time < until:
            world.at(time, leave, node)

    def leave(node: NodeId) -> None:
        if world.unsubscribe(node, topic):
            replace(node)
        else:
            schedule_leave(node)

    def replace(leaver: NodeId) -> None:
        outsiders = [other for other in world.nodes if topic not in world.subscriptions[other] and other != leaver]
        newcomer = rng.choice(outsiders)
        if world.subscribe(newcomer, topic):
            schedule_leave(newcomer)
        elif world.now < until:  # that one is still leaving: another one, a little later
            world.at(world.now + 1.0, replace, leaver)

    if all(topic in world.subscriptions[node] for node in world.nodes):
        raise BadInput("churn needs nodes that do not subscribe, to replace the leavers; lower the subscribers")
    for node in world.nodes:
        if topic in world.subscriptions[node]:
            schedule_leave(node)


# Who subscribes to what, from a table that `cubecast workload` made: columns `user` and `topic`.


def read_subscriptions(path: Path, nodes: int) -> dict[Topic, list[NodeId]]:
    """Users are nodes in the order of their names; topics by their number of subscribers, the largest first."""
    import pyarrow.parquet  # here, because most simulations need no table
    from pyarrow import ArrowException

    try:
        table = pyarrow.parquet.read_table(path, columns=["user", "topic"])
    except (OSError, ArrowException) as error:
        raise BadInput(f"{path} is no table of subscriptions (columns user and topic): {error}") from None
    users = sorted(set(table["user"].to_pylist()))
    if len(users) > nodes:
        raise BadInput(f"{path} has {len(users)} users for {nodes} nodes; give --nodes {len(users)} or more")
    place = {user: node for node, user in enumerate(users)}
    members: dict[Topic, set[NodeId]] = {}
    for user, topic in zip(table["user"].to_pylist(), table["topic"].to_pylist(), strict=True):
        members.setdefault(str(topic), set()).add(place[user])
    return {topic: sorted(members[topic]) for topic in sorted(members, key=lambda one: (-len(members[one]), one))}
