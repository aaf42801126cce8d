"""StaN, and what floods crossposted messages over its overlays, declared."""

from dataclasses import replace

from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Published
from cubecast.protocol.epidemic.crosspost import CROSSPOST_PACKETS, CrosspostFlood, SimpleFlood
from cubecast.protocol.epidemic.stan import Stan, StanParameters
from cubecast.protocol.epidemic.stan_overlay import view_size
from cubecast.protocol.epidemic.stan_packets import PACKETS
from cubecast.protocol.family import Family, Make, MakeMachine, Nemesis, Seat, Setup
from cubecast.protocol.inputs import Crosspost, Publish, Subscribe, Unsubscribe

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
    PACKETS,
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
