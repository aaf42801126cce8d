"""StaN, declared."""

from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Published
from cubecast.protocol.epidemic.stan import Stan, StanParameters
from cubecast.protocol.epidemic.stan_overlay import view_size
from cubecast.protocol.epidemic.stan_packets import PACKETS
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Seat, Setup


def _stan(setup: Setup, parameters: StanParameters) -> MakeMachine:
    def make(seat: Seat) -> Machine:
        rng = seat.rng
        founder = seat.node in setup.nodes and not seat.incarnation
        views = {}
        for topic, members in setup.settled.items():
            if founder and seat.node in members:
                others = [one for one in members if one != seat.node]
                views[topic] = rng.sample(others, view_size(len(members)))
        peers = (*setup.nodes, *seat.contacts)
        return Stan(seat.node, peers, parameters, rng, incarnation=seat.incarnation, views=views)

    return make


STAN = Family(
    "stan",
    "StaN: one random overlay per topic, which come to share links; messages are flooded",
    ("K0", "P1", "P2"),
    PACKETS,
    _stan,
    StanParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    frees=Published,
    nemesis=Nemesis(
        faults=("crash", "slow", "delay", "reorder", "loss", "duplicate", "pause", "partition"),
        joins=True,
        settings={"repair": ("true", "true", "false"), "ttl": ("4", "4", "0", "1"), "period": ("1000", "200", "3000")},
    ),
    live=False,
    described="docs/papers/stan.md",
)
