"""Brisa, declared."""

from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Released
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_packets import FLOW_PACKETS
from cubecast.protocol.epidemic.hyparview_packets import MEMBERSHIP_PACKETS
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup

FOUNDERS_CONTACTS = 3
"""Processes before it that one which is there from the start knows of, so that all together connect."""


def _brisa(setup: Setup, parameters: BrisaParameters) -> MakeMachine:
    def make(seat: Seat) -> Machine:
        rng = seat.rng
        founder = seat.node in setup.nodes and not seat.incarnation
        before = [node for node in setup.nodes if node < seat.node]
        known = seat.contacts or tuple(rng.sample(before, min(FOUNDERS_CONTACTS, len(before))))
        subscribed = [topic for topic, nodes in setup.settled.items() if founder and seat.node in nodes]
        return Brisa(seat.node, parameters, rng, incarnation=seat.incarnation, contacts=known, subscribed=subscribed)

    return make


BRISA = Family(
    "brisa",
    "HyParView and Brisa: streams to many on trees that grow and heal by themselves; nobody knows all members",
    ("K0", "P1", "P2", "P5", "P6", "P11"),
    (*MEMBERSHIP_PACKETS, *FLOW_PACKETS),
    _brisa,
    BrisaParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("crash", "slow", "delay"), joins=False, outsiders=True),
    fifo=True,
    frees=Released,
    described="docs/papers/brisa.md",
)
