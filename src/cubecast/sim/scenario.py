"""Who is there and what they know from the start, turned into machines: the same for every way to run a world.

Also who comes and goes. A family whose nodes are announced hears of everybody; one that is not joins through contacts.
"""

from collections.abc import Iterable, Mapping
from random import Random

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.family import Family, Seat, Setup
from cubecast.sim.config import stream
from cubecast.sim.lives import MachineFactory
from cubecast.sim.world import World

Contacts = dict[NodeId, tuple[NodeId, ...]]


def machines(
    family: Family,
    seed: int,
    size: int,
    nodes: Iterable[NodeId],
    settled: Mapping[Topic, Iterable[NodeId]],
    settings: Mapping[str, str],
    *,
    roles: Mapping[NodeId, str] | None = None,
    contacts: Mapping[NodeId, tuple[NodeId, ...]] | None = None,
    is_open: bool = False,
) -> MachineFactory:
    """How the family makes the machine of each life in this population. Each life has random numbers of its own.

    `contacts` are looked up when a life begins, so that a node that comes back may have others.
    """
    rosters = {topic: tuple(some) for topic, some in settled.items()} if family.settles else {}
    parts = dict(roles or {})
    known: Mapping[NodeId, tuple[NodeId, ...]] = {} if contacts is None else contacts
    setup = Setup(size, tuple(nodes), rosters, stream(seed, "protocol"), is_open, parts)
    make = family.factory(setup, settings)

    def made(node: NodeId, incarnation: int) -> Machine:
        life = f"{seed}/life/{node}/{incarnation}"
        return make(Seat(node, incarnation, parts.get(node, ""), known.get(node, ()), life))

    return made


def begin_subscribed(world: World, family: Family, members: Mapping[Topic, Iterable[NodeId]]) -> None:
    """These are subscribed from the start, known to their machines beforehand or as the first thing they are asked."""
    for topic, nodes in members.items():
        for node in nodes:
            if family.settles:
                world.subscriptions[node].add(topic)
            else:
                world.at(0.0, world.subscribe, node, topic)


def parse_roles(family: Family, text: str, nodes: Iterable[NodeId]) -> dict[NodeId, str]:
    """`broker=16,publisher=4`: the first ids are brokers, the next publishers, the rest play the family's last part."""
    found: dict[NodeId, str] = {}
    left = list(nodes)
    for part in filter(None, text.split(",")):
        name, equals, count = part.partition("=")
        role = family.population.role(family.name, name)
        if not equals or not count.isdigit() or int(count) > len(left):
            raise BadInput(f"roles are written NAME=COUNT, at most as many as there are nodes, not {part!r}")
        found |= dict.fromkeys(left[: int(count)], role)
        left = left[int(count) :]
    return found | (dict.fromkeys(left, family.population.roles[-1]) if family.population.roles else {})


class Coming:
    """Nodes that come, go and return, and who is told."""

    def __init__(
        self, world: World, family: Family, contacts: Contacts, rng: Random, *, contacts_each: int, told_within: float
    ) -> None:
        self._world = world
        self._announced = family.population.announced
        self._contacts = contacts
        self._rng = rng
        self._each = contacts_each
        self._within = told_within

    def join(self, node: NodeId, topics: Iterable[Topic] = ()) -> None:
        """It comes, through contacts among those who are there, and its application subscribes."""
        others = [one for one in self._world.present() if one != node]
        known = others if self._announced else self._rng.sample(others, min(self._each, len(others)))
        self._contacts[node] = tuple(known)
        self._world.join(node)
        self._tell(node, here=True)
        for topic in topics:
            self._world.subscribe(node, topic)

    def leave(self, node: NodeId) -> None:
        self._world.leave(node)
        self._tell(node, here=False)

    def _tell(self, node: NodeId, *, here: bool) -> None:
        if self._announced:
            tell = self._world.unsuspect if here else self._world.suspect
            for other in self._world.present():
                if other != node:
                    self._world.at(self._world.now + self._rng.uniform(0, self._within), tell, other, node)

    def gather(self, nodes: Iterable[NodeId], within: float, topics: Mapping[NodeId, Iterable[Topic]]) -> None:
        """All of these come, one after another."""
        waiting = list(nodes)
        for place, node in enumerate(waiting, 1):
            self._world.at(within * place / len(waiting), self.join, node, tuple(topics.get(node, ())))

    def churn(self, share: float, period: float, until: float) -> None:
        """In every period this share of the nodes leaves, one by one; each is back within a period."""
        step = period / max(1.0, share * len(self._world.nodes))

        def replace() -> None:
            there = self._world.present()
            if len(there) > 1:
                node = self._rng.choice(there)
                topics = tuple(sorted(self._world.subscriptions[node]))
                self.leave(node)
                self._world.at(self._world.now + self._rng.uniform(0, period), self.join, node, topics)
            if self._world.now + step <= until:
                self._world.at(self._world.now + step, replace)

        if step <= until:
            self._world.at(step, replace)


def parse_churn(text: str) -> tuple[float, float]:
    """`5%/1000`: five in a hundred nodes per thousand units of time."""
    share, slash, period = text.partition("/")
    try:
        found = float(share.removesuffix("%")) / 100, float(period)
    except ValueError:
        found = 0.0, 0.0
    if not slash or not share.endswith("%") or not (0 < found[0] <= 1 and 0 < found[1] < float("inf")):
        raise BadInput(f"node churn is written SHARE%/TIME, such as 5%/1000, not {text!r}")
    return found
