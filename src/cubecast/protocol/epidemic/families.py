"""The epidemic systems, declared."""

from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Released
from cubecast.protocol.epidemic.epto import Epto
from cubecast.protocol.epidemic.epto_inspector import EptoInspector
from cubecast.protocol.epidemic.epto_parameters import PACKETS, EptoParameters, PublishedParameters
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Seat, Setup

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
    PACKETS,
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
    PACKETS,
    _epto,
    PublishedParameters,
    measured=("P4",),
    frees=Released,
    inspect=EptoInspector,
    nemesis=Nemesis(faults=("delay", "reorder", "slow", "loss", "pause")),
    described="docs/papers/epto.md",
)
