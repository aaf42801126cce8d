"""Broker networks, declared: LoCaPS and the two systems it is compared with."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from cubecast.errors import BadInput
from cubecast.ids import NodeId, Topic
from cubecast.protocol.brokers.baseline_packets import DELTA_PACKETS, GRYPHON_PACKETS
from cubecast.protocol.brokers.delta import Delta
from cubecast.protocol.brokers.gryphon import Gryphon
from cubecast.protocol.brokers.locaps import Tables
from cubecast.protocol.brokers.machine import BrokerParameters, LoCaPS
from cubecast.protocol.brokers.packets import PACKETS, SubscriptionId
from cubecast.protocol.brokers.tree import BrokerTree, at_most, check_faults, read_links
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Released
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.inputs import Advertise, Publish, Subscribe, Unadvertise, Unsubscribe
from cubecast.protocol.inspector import Inspector, Standing, topic_told
from cubecast.protocol.parameters import check_parameters, parameter

# What a broker tells of itself: the tree as it sees it, its tables, who covers whom, and why something waits.

MOST_SHOWN = 100


class BrokerInspector(Inspector):
    machine: LoCaPS

    @property
    def _tables(self) -> Tables:
        return self.machine._tables

    @property
    def is_active(self) -> bool:
        return self.machine.is_active

    @property
    def living(self) -> list[NodeId]:
        return sorted(node for node, one in self.standings().items() if one.alive)

    def standings(self) -> Mapping[NodeId, Standing]:
        """Of brokers as near as it exchanges messages with; of others a broker knows nothing."""
        machine, substrate = self.machine, self.machine._substrate
        out = substrate.suspects | substrate.removed
        found = {machine.node: Standing(machine.node, machine.incarnation, True)}
        for node in sorted(substrate.near):
            found[node] = Standing(node, substrate.received.lives.get(node, 0), node not in out)
        return found

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        settled = not self.machine._substrate.suspects
        more = {"settled": settled, "brokers": self.brokers(), "remarks": self.remarks()}
        return super().describe(now, most_topics) | more

    def brokers(self) -> dict[str, Any]:
        """The tree, the sizes of the tables, who covers whom, and what each subscription here waits for."""
        tables, substrate, tree = self._tables, self.machine._substrate, self.machine._parameters.tree
        return {
            "faults": substrate.faults,
            "neighbours": list(tree.neighbours[self.machine.node]),
            "links": [[one, other] for one, near in tree.neighbours.items() for other in near if one < other],
            "suspected": sorted(substrate.suspects),
            "removed": sorted(substrate.removed),
            "advertisements": len(tables.ads),
            "subscriptions": len(tables.table),
            "covered": self._covered(),
            "without_cut": self._without_cut(),
        }

    def remarks(self) -> list[tuple[str, str]]:
        said = self.brokers()
        faults = said["faults"]
        rows = [
            ("crashes survived", f"{faults} of any {2 * faults + 1} brokers in a row"),
            ("neighbours", " ".join(map(str, said["neighbours"])) or "none"),
            ("tables", f"{said['advertisements']} advertisements, {said['subscriptions']} subscriptions"),
        ]
        rows += [(name, " ".join(map(str, said[name]))) for name in ("suspected", "removed") if said[name]]
        rows += [(one["subscription"], f"covered by {one['by']}") for one in said["covered"]]
        for one in said["without_cut"]:
            rows += [(one["subscription"], f"no beginning yet: {missing}") for missing in one["waits_for"]]
        return rows

    def _covered(self) -> list[dict[str, str]]:
        """Subscriptions here and which one known here covers each, the first few."""
        tables, found = self._tables, []
        for own, local in list(tables.locals.items())[:MOST_SHOWN]:
            entry = tables.table.get(own)
            covering = None if entry is None else tables.covering_of(own, entry)
            if covering is not None:
                found.append({"subscription": local.topic, "by": _name(covering)})
        return found

    def _without_cut(self) -> list[dict[str, Any]]:
        """Which subscriptions here do not know yet where they begin, and whose answer is missing."""
        tables, found = self._tables, []
        for topic in list(self.machine._unconfirmed)[:MOST_SHOWN]:
            own = self.machine._subscriptions[topic]
            open_ads = tables.open_ads(own)
            missing = [f"broker {one.broker} has not answered for {tables.ads[one].topic}" for one in open_ads]
            found.append({"subscription": topic, "waits_for": missing[:MOST_SHOWN]})
        return found

    # Topics

    @property
    def topics(self) -> Collection[Topic]:
        machine = self.machine
        return dict.fromkeys([*machine._subscriptions, *machine._publishers])

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        machine = self.machine
        return {
            name: topic_told(
                subscribed=name in machine._subscriptions,
                confirmed=name in machine._subscriptions and name not in machine._unconfirmed,
                published=machine._counters.get(name, 0),
            )
            for name in names
        }

    def published(self) -> Mapping[Topic, int]:
        return self.machine._counters

    # Ways

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        tables = self._tables
        wanted = {
            subscription.broker
            for subscription, entry in tables.table.items()
            if topic is None or tables.may_want(entry, topic)
        }
        return sorted(wanted - {self.machine.node})

    def reaches(self, topic: Topic, me: NodeId) -> bool:
        return bool(self.destinations(topic))

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        tree = self.machine._parameters.tree
        if root not in tree.neighbours:
            return {}
        wanted = [*self.destinations(topic), self.machine.node] if topic is not None else list(tree.neighbours)
        on_the_way = dict.fromkeys(one for node in wanted if node != root for one in tree.path(root, node))
        return {
            node: tuple(one for one in tree.neighbours[node] if one in on_the_way and one not in tree.path(node, root))
            for node in dict.fromkeys([root, *on_the_way])
        }

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        tree = self.machine._parameters.tree
        return tree.side(self.machine.node, source) if source in tree.neighbours else None


def _name(subscription: SubscriptionId) -> str:
    return f"subscription {subscription.number} of broker {subscription.broker}"


# The declarations.

_SHAPE = "of the brokers: binary (complete, root first), line, or random"


class Shape(Enum):
    BINARY = "binary"
    LINE = "line"
    RANDOM = "random"


@dataclass(frozen=True)
class TreeParameters:
    tree: Shape = parameter(Shape.BINARY, _SHAPE, agree=True)


@dataclass(frozen=True)
class LoCaPSParameters:
    tree: Shape = parameter(Shape.BINARY, _SHAPE, agree=True)
    links: str = parameter("", "of the tree instead, as pairs of ids: 0-1 0-2 1-3; live brokers need it", agree=True)
    faults: int = parameter(1, "crashed brokers survived on any path of 2f + 1", least=0, most=8, agree=True)
    covering: bool = parameter(True, "a covered subscription begins at the nearest pivot", agree=True)
    ack_delay: float = parameter(50.0, "that acknowledgements may wait for company", live=0.05, least=0, unit="time")
    patience: float = parameter(
        1000.0, "a copy waits for what must come before it until that is asked for", live=0.5, above=0, unit="time"
    )
    remove_after: float = parameter(
        60_000.0, "a broker is suspected before it is given up for good", live=10.0, above=0, unit="time"
    )

    wait_until_known: bool = parameter(
        False, "nothing is published before all brokers know its publisher", live=True, agree=True
    )
    heartbeat: float = parameter(
        0.0, "between signs of life; who is silent for four is suspected (0: none)", live=1.0, least=0, unit="time"
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.links:
            check_faults(read_links(self.links), self.faults)


def tree_of(shape: Shape, nodes: tuple[NodeId, ...], rng: Random) -> BrokerTree:
    """Over these ids, in their order."""

    def parent(place: int) -> int:
        if shape is Shape.RANDOM:
            return rng.randrange(max(0, place - 4), place)
        return place - 1 if shape is Shape.LINE else (place - 1) // 2

    return BrokerTree(((nodes[parent(place)], nodes[place]) for place in range(1, len(nodes))), nodes)


def _locaps(setup: Setup, parameters: LoCaPSParameters) -> MakeMachine:
    if len(setup.nodes) < 2 and not parameters.links:
        raise BadInput('brokers need to know their tree: [parameters] links = "0-1 0-2 1-3", the same at all of them')
    tree = read_links(parameters.links) if parameters.links else tree_of(parameters.tree, setup.nodes, setup.rng)
    chosen = BrokerParameters(
        tree,
        parameters.faults,
        parameters.covering,
        parameters.ack_delay,
        parameters.patience,
        parameters.remove_after,
        parameters.wait_until_known,
        parameters.heartbeat,
    )

    def make(seat: Seat) -> Machine:
        if seat.node not in tree.neighbours:
            raise BadInput(f"broker {seat.node} is not in the tree, which links {sorted(tree.neighbours)}; see `links`")
        return LoCaPS(seat.node, chosen, incarnation=seat.incarnation, settled=setup.settled)

    return make


def _delta(setup: Setup, parameters: TreeParameters) -> MakeMachine:
    tree = tree_of(parameters.tree, setup.nodes, setup.rng)
    return lambda seat: Delta(seat.node, tree, incarnation=seat.incarnation, settled=setup.settled)


def _gryphon(setup: Setup, parameters: TreeParameters) -> MakeMachine:
    tree = tree_of(parameters.tree, setup.nodes, setup.rng)
    return lambda seat: Gryphon(
        seat.node, tree, root=setup.nodes[0], incarnation=seat.incarnation, settled=setup.settled
    )


def _survives(nodes: tuple[NodeId, ...], settings: Mapping[str, str], faulty: frozenset[NodeId]) -> bool:
    chosen = LOCAPS.chosen(settings)
    return at_most(tree_of(chosen.tree, nodes, Random(0)), chosen.faults, faulty)


_GAPLESS = ("K0", "P1", "P2", "P4", "P5", "P6", "P7", "P8", "P11", "P12")

LOCAPS = Family(
    name="locaps",
    summary="a tree of brokers, content filters, causal order, subscriptions that begin at the nearest covering path",
    promises=_GAPLESS,
    packets=PACKETS,
    make=_locaps,
    parameters=LoCaPSParameters,
    population=Population(2, named=True),
    nemesis=Nemesis(
        faults=("crash", "cutoff", "half", "suspect", "isolation", "delay", "slow"),
        joins=True,
        outsiders=True,
        settings={"tree": ("binary", "line"), "faults": ("0", "1", "1", "2", "2"), "remove_after": ("5000", "60000")},
        survives=_survives,
    ),
    requests=frozenset({Publish, Subscribe, Unsubscribe, Advertise, Unadvertise}),
    frees=Released,
    inspect=BrokerInspector,
    fifo=True,
    described="docs/papers/locaps.md",
)
DELTA = Family(
    name="delta",
    summary="a tree of brokers; a subscription is flooded and begins when all acknowledged (Delta)",
    promises=("K0", "P1", "P2", "P5", "P6"),
    packets=DELTA_PACKETS,
    make=_delta,
    parameters=TreeParameters,
    population=Population(2),
    nemesis=Nemesis(faults=("slow",), joins=True, outsiders=True),
    live=False,
    fifo=True,
    described="docs/papers/locaps.md",
)
GRYPHON = Family(
    name="gryphon",
    summary="events leave from the root; versions say which broker knows which subscription (Gryphon)",
    promises=("K0", "P1", "P2", "P5", "P6"),
    packets=GRYPHON_PACKETS,
    make=_gryphon,
    parameters=TreeParameters,
    population=Population(2),
    nemesis=Nemesis(faults=("slow",), joins=True, outsiders=True),
    live=False,
    fifo=True,
    described="docs/papers/locaps.md",
)
