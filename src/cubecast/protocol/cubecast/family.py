"""The user's protocol, declared."""

from dataclasses import replace
from itertools import permutations
from typing import Any, get_type_hints

from cubecast.ids import NodeId
from cubecast.protocol.contract import Machine
from cubecast.protocol.cubecast.inspector import CubecastInspector
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.packets import FIRST_PACKETS, LATER_PACKETS, Convoy, Part
from cubecast.protocol.cubecast.parameters import Detection, Parameters
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.hypercube.topology import MAX_DIMENSION, cluster, dimension_of, first_child
from cubecast.protocol.inputs import Follow, Publish, Subscribe, Unsubscribe
from cubecast.protocol.masks import mask_of

_CRASHES = ("crash", "cutoff", "half")
_LINKS = ("delay", "reorder", "slow", "detour", "duplicate")
_WRONG = ("suspect", "partition", "oneway", "pause", "loss", "resend", "suspicion", "flicker")
_INSIDE = ("twosteps", "twice", "late", "jump")
_LIVE = {
    "window": ("16",),
    "eager": ("2",),
    "calm": ("16",),
    "direct": ("15",),
    "ack_delay": ("70.0",),
    "retry": ("500.0",),
    "round_length": ("500.0",),
    "detection": ("diagnosis",),
    "max_batch": ("512",),
    "max_batch_bytes": ("65536",),
    "aggregation": ("off",),
    "patience": ("1500.0", "3000.0"),
}
_DRAWN = {
    "window": ("1", "2", "8", "64"),
    "max_batch": ("1", "2", "512"),
    "max_batch_bytes": ("1", "200", "65536"),
    "retry": ("250.0", "500.0", "1000.0"),
    "aggregation": ("off", "on"),
    "eager": ("0", "0", "1", "4"),
    "ack_delay": ("0.0", "0.0", "20.0", "200.0"),
    "direct": ("0", "0", "3", "15"),
    "calm": ("0", "0", "6"),
    "topics_per_answer": ("1", "500"),
    "announcement_bytes": ("1", "80", "262144"),
    "detection": ("driver", "driver", "driver", "diagnosis"),
    "patience": ("1500.0",),
    "round_length": ("500.0",),
}
_PACE = {"retry": "1000.0", "window": "8", "eager": "0", "ack_delay": "0.0", "direct": "0", "detection": "driver"}
"""Nothing is sent again during the decisive moments, nothing waits to be sent, and everything goes along trees."""
_SEQUENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "last_words": {},
    "secret": {},
    "rumour": {},
    "two_sides": {},
    "stranger": {"patience": ("1500.0",)},
    "greetings": {},
    "catalogue": {"topics_per_answer": ("1",), "announcement_bytes": ("1", "80")},
}
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


def _forwarders(nodes: tuple[NodeId, ...]) -> list[tuple[NodeId, NodeId, NodeId]]:
    return [
        (source, child, other)
        for source, other in permutations(nodes, 2)
        if (child := first_child(source, cluster(source, other), mask_of(nodes))) is not None and child != other
    ]


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
        "P14",
        "P16",
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
        settings=_DRAWN,
        live=_LIVE,
        sequences=_SEQUENCES,
        pace=_PACE,
        silenced=("Settle", "Obituary"),
        forwarders=_forwarders,
    ),
    inspect=CubecastInspector,
    described="docs/protocol.md",
    wire_types=dict.fromkeys((Publication, Direct), _publication_types()),
)
