"""The epidemic systems, declared."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Published, Released
from cubecast.protocol.epidemic.crosspost import CROSSPOST_PACKETS, CrosspostFlood, SimpleFlood
from cubecast.protocol.epidemic.epto import Epto
from cubecast.protocol.epidemic.epto_order import Order
from cubecast.protocol.epidemic.epto_parameters import PACKETS as EPTO_PACKETS
from cubecast.protocol.epidemic.epto_parameters import EptoParameters, PublishedParameters
from cubecast.protocol.epidemic.stan import Stan, StanParameters
from cubecast.protocol.epidemic.stan_overlay import view_size
from cubecast.protocol.epidemic.stan_packets import PACKETS as STAN_PACKETS
from cubecast.protocol.family import Family, Make, MakeMachine, Nemesis, Seat, Setup
from cubecast.protocol.inputs import Crosspost, Publish, Subscribe, Unsubscribe
from cubecast.protocol.inspector import Inspector, topic_told

# What EpTO tells status and pages about itself.

MOST_SHOWN = 100


class EptoInspector(Inspector):
    machine: Epto

    @property
    def living(self) -> list[NodeId]:
        return sorted((self.machine.node, *self.machine.peers))

    @property
    def topics(self) -> Collection[Topic]:
        return self.machine.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        return {name: self._topic(name, self.machine.topics[name]) for name in names}

    def _topic(self, name: Topic, order: Order) -> dict[str, Any]:
        """Who subscribes elsewhere no process knows; kept is what is too young to be delivered."""
        published = self.machine.published.get(name, 0)
        young = {**order.received, **order.next_ball}
        return topic_told(
            subscribed=order.subscribed,
            confirmed=order.subscribed,
            published=published,
            unstable=published - self.machine.released(name),
            kept=len(young),
            kept_bytes=sum(len(one.payload or b"") for one in young.values()),
            publishers=self._publishers(order) if order.subscribed else [],
        )

    def _publishers(self, order: Order) -> list[dict[str, Any]]:
        """The last ones heard, with what has arrived of each and waits for its place."""
        lag = Counter(one.message[:2] for one in order.received.values() if one.payload is not None)
        return [
            {"node": source, "incarnation": incarnation, "delivered": reached, "lag": lag[source, incarnation]}
            for (source, incarnation), reached in islice(reversed(order.at.items()), MOST_SHOWN)
        ]

    def published(self) -> Mapping[Topic, int]:
        return self.machine.published

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        order = self.machine.topics.get(topic)
        return order is not None and order.at.get(message[:2], 0) >= message.counter

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        """A ball may go to anybody."""
        return self.living


# The declarations.

_SAFETY = ("K0", "P1", "P1b", "P2", "P5", "P6", "P9a", "P9b", "P11", "P3b")


def _epto(setup: Setup, parameters: EptoParameters) -> MakeMachine:
    def make(seat: Seat) -> Machine:
        founder = seat.node in setup.nodes and not seat.incarnation
        settled = [topic for topic, nodes in setup.settled.items() if founder and seat.node in nodes]
        return Epto(
            seat.node,
            (*setup.nodes, *seat.contacts),
            parameters,
            seat.rng,
            incarnation=seat.incarnation,
            settled=settled,
            newcomer=not founder,
        )

    return make


EPTO = Family(
    "epto",
    "EpTO: total order by gossip; the order is certain, completeness likely, holes are told",
    _SAFETY,
    EPTO_PACKETS,
    _epto,
    EptoParameters,
    measured=("P4",),
    frees=Released,
    inspect=EptoInspector,
    nemesis=Nemesis(
        faults=(
            *("crash", "restart", "pause", "partition", "oneway", "slow", "loss", "duplicate", "resend", "delay"),
            *("reorder", "suspect", "suspicion", "flicker", "late", "twice", "jump"),
        ),
        joins=True,
        outsiders=True,
        returning=True,
        settings={
            "clock": ("hybrid", "hybrid", "logical"),
            "period": ("125", "125", "40", "300"),
            "drift": ("0", "0", "0.1", "1.5"),
            "fanout": ("0", "0", "0", "1", "3"),
            "ttl": ("0", "0", "0", "2", "5"),
            "threshold": ("0", "0", "0", "1", "4"),
            "relays": ("2", "2", "0", "1", "3"),
            "expired": ("order", "order", "order", "drop"),
            "idle": ("50", "10", "0"),
        },
    ),
    described="docs/papers/epto.md",
)
EPTO_PUBLISHED = Family(
    "epto-published",
    "EpTO as printed, ties, identities and clocks of newcomers included: orders may differ",
    ("K0", "P1", "P1b", "P2", "P11"),
    EPTO_PACKETS,
    _epto,
    PublishedParameters,
    measured=("P4",),
    frees=Released,
    inspect=EptoInspector,
    nemesis=Nemesis(faults=("delay", "reorder", "slow", "loss", "pause")),
    described="docs/papers/epto.md",
)


# StaN, and what floods crossposted messages over its overlays, declared.

_SETTINGS = {"repair": ("true", "true", "false"), "ttl": ("4", "4", "0", "1"), "period": ("1000", "200", "3000")}
_FAULTS = ("crash", "slow", "delay", "reorder", "loss", "duplicate", "pause", "partition")
_REQUESTS = frozenset({Publish, Subscribe, Unsubscribe, Crosspost})


def _making(kind: type[Stan]) -> Make:
    def prepare(setup: Setup, parameters: StanParameters) -> MakeMachine:
        return lambda seat: _machine(kind, setup, parameters, seat)

    return prepare


def _machine(kind: type[Stan], setup: Setup, parameters: StanParameters, seat: Seat) -> Machine:
    rng = seat.rng
    founder = seat.node in setup.nodes and not seat.incarnation
    views = {}
    for topic, members in setup.settled.items():
        if founder and seat.node in members:
            others = [one for one in members if one != seat.node]
            views[topic] = rng.sample(others, view_size(len(members)))
    peers = (*setup.nodes, *seat.contacts)
    return kind(seat.node, peers, parameters, rng, incarnation=seat.incarnation, views=views)


STAN = Family(
    "stan",
    "StaN: one random overlay per topic, which come to share links; messages are flooded",
    ("K0", "P1", "P2"),
    STAN_PACKETS,
    _making(Stan),
    StanParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    frees=Published,
    nemesis=Nemesis(faults=_FAULTS, joins=True, settings=_SETTINGS),
    live=False,
    described="docs/papers/stan.md",
)
CROSSPOST = replace(
    STAN,
    name="crosspost",
    summary="CrosspostFlood: StaN's overlays; a message of several topics is sent once to each neighbour",
    packets=CROSSPOST_PACKETS,
    make=_making(CrosspostFlood),
    requests=_REQUESTS,
    nemesis=replace(STAN.nemesis, crossposts=True),
)
SIMPLE_FLOOD = replace(
    STAN,
    name="simple-flood",
    summary="SimpleFlood: StaN's overlays; a message of several topics is flooded in each of them",
    make=_making(SimpleFlood),
    requests=_REQUESTS,
    nemesis=CROSSPOST.nemesis,
)
