"""The user's protocol, declared."""

from dataclasses import replace
from typing import Any, get_type_hints

from cubecast.protocol.contract import Machine
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.inputs import Follow, Publish, Subscribe, Unsubscribe
from cubecast.protocol.vcube.cubecast.inspector import CubecastInspector
from cubecast.protocol.vcube.cubecast.machine import Cubecast
from cubecast.protocol.vcube.cubecast.packets import FIRST_PACKETS, LATER_PACKETS, Convoy, Part
from cubecast.protocol.vcube.cubecast.parameters import Detection, Parameters
from cubecast.protocol.vcube.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.vcube.topology import MAX_DIMENSION, dimension_of, mask_of

_CRASHES = ("crash", "cutoff", "half")
_LINKS = ("delay", "reorder", "slow", "duplicate")
_WRONG = ("suspect", "partition", "oneway", "pause", "loss", "resend", "suspicion", "flicker")
_INSIDE = ("twosteps", "twice", "late", "jump")
_SLOW_CONTROL = ("WaveAck", "WaveAck", "Wave", "Ack", "Stable", "Settle", "Welcome", "Obituary", "Publication")


def _make(setup: Setup, parameters: Parameters) -> MakeMachine:
    founders = mask_of(setup.nodes)
    ids = 0 if setup.open else founders
    shared = replace(parameters, dimension=dimension_of(setup.size), founders=founders, ids=ids)
    initial = {topic: mask_of(nodes) for topic, nodes in setup.settled.items()}

    def make(seat: Seat) -> Machine:
        contacts = mask_of(seat.contacts)
        return Cubecast(seat.node, shared, incarnation=seat.incarnation, initial=initial, contacts=contacts)

    return make


def _publication_types() -> dict[str, Any]:
    """A publication may be compiled, which leaves little of what it said: convoys say it as well."""
    travels = ("by", "dead", "topic")
    whole, part = get_type_hints(Convoy), get_type_hints(Part)
    return {**{name: whole[name] for name in travels}, **part, "hurry": bool}


CUBECAST = Family(
    name="cubecast",
    summary="reliable, gapless, pipelined causal publish/subscribe; what the live system runs",
    promises=(
        "K0",
        "K1",
        "K2",
        "K3",
        "P1",
        "P1b",
        "P2",
        "P3",
        "P4",
        "P5",
        "P6",
        "P7",
        "P8",
        "P10",
        "P11",
        "P12",
        "P13",
    ),
    packets=(*[None] * 10, *FIRST_PACKETS, None, *LATER_PACKETS),
    make=_make,
    rests=lambda parameters: parameters.detection is Detection.DRIVER,
    parameters=Parameters,
    requests=frozenset({Publish, Subscribe, Unsubscribe, Follow}),
    population=Population(2, 1 << MAX_DIMENSION, power_of_two=True),
    nemesis=Nemesis(
        (*_CRASHES, "restart", *_LINKS, *_WRONG, *_INSIDE, "hold"),
        joins=True,
        outsiders=True,
        held=_SLOW_CONTROL,
        full=True,
    ),
    inspect=CubecastInspector,
    described="docs/protocol.md",
    wire_types=dict.fromkeys((Publication, Direct), _publication_types()),
)
