"""HyParView, Brisa and what Brisa is compared with, declared."""

from bisect import bisect_left
from collections.abc import Callable
from math import ceil, log
from typing import Any

from cubecast.ids import NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Published, Released
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_forest import check_forest
from cubecast.protocol.epidemic.brisa_inspector import BrisaInspector, OverlayInspector
from cubecast.protocol.epidemic.brisa_packets import FLOW_PACKETS
from cubecast.protocol.epidemic.flood import FLOOD_PACKETS, Flood, HyParViewParameters, Overlay
from cubecast.protocol.epidemic.hyparview import MEMBERSHIP_PACKETS
from cubecast.protocol.epidemic.simple_gossip import GOSSIP_PACKETS, GossipParameters, SimpleGossip
from cubecast.protocol.epidemic.simple_tree import TREE_PACKETS, SimpleTree
from cubecast.protocol.epidemic.tag import TAG_PACKETS, Tag, TagParameters
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.parameters import NoParameters

FOUNDERS_CONTACTS = 3
"""Processes before it that one which is there from the start knows of, so that all together connect."""
DESCRIBED = "docs/papers/brisa.md"


def _settled(setup: Setup, seat: Seat) -> list[Topic]:
    founder = seat.node in setup.nodes and not seat.incarnation
    return [topic for topic, nodes in setup.settled.items() if founder and seat.node in nodes]


def _on_overlay(kind: Callable[..., Machine]) -> Callable[[Setup, Any], MakeMachine]:
    """Joined through contacts; those that are there from the start know some that came before."""

    def make_all(setup: Setup, parameters: Any) -> MakeMachine:
        founders = sorted(setup.nodes)

        def make(seat: Seat) -> Machine:
            rng = seat.rng
            before = bisect_left(founders, seat.node)
            some = () if seat.contacts else rng.sample(range(before), min(FOUNDERS_CONTACTS, before))
            known = seat.contacts or tuple(founders[one] for one in some)
            subscribed = _settled(setup, seat)
            return kind(seat.node, parameters, rng, incarnation=seat.incarnation, contacts=known, subscribed=subscribed)

        return make

    return make_all


def _gossip(setup: Setup, parameters: GossipParameters) -> MakeMachine:
    fanout = parameters.fanout or max(1, ceil(log(setup.size)))

    def make(seat: Seat) -> Machine:
        rng = seat.rng
        others = list(seat.contacts) or [node for node in setup.nodes if node != seat.node]
        known = rng.sample(others, min(parameters.view, len(others)))
        return SimpleGossip(
            seat.node,
            parameters,
            rng,
            fanout=fanout,
            incarnation=seat.incarnation,
            contacts=known,
            subscribed=_settled(setup, seat),
        )

    return make


def _first(setup: Setup) -> NodeId:
    return min(setup.nodes, default=0)


def _tree(setup: Setup, parameters: NoParameters) -> MakeMachine:
    def make(seat: Seat) -> Machine:
        settled = _settled(setup, seat)
        return SimpleTree(seat.node, _first(setup), seat.rng, incarnation=seat.incarnation, subscribed=settled)

    return make


def _tag(setup: Setup, parameters: TagParameters) -> MakeMachine:
    def make(seat: Seat) -> Machine:
        settled = _settled(setup, seat)
        return Tag(seat.node, _first(setup), parameters, seat.rng, incarnation=seat.incarnation, subscribed=settled)

    return make


BRISA = Family(
    "brisa",
    "HyParView and Brisa: streams to many on trees that grow and heal by themselves; nobody knows all members",
    ("K0", "P1", "P2", "P5", "P6", "P11"),
    (*MEMBERSHIP_PACKETS, *FLOW_PACKETS),
    _on_overlay(Brisa),
    BrisaParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(
        faults=("crash", "restart", "break", "break", "pause", "partition", "slow", "delay"),
        outsiders=True,
        settings={
            "parents": ("1", "1", "2", "3"),
            "strategy": ("first-come", "first-come", "delay-aware", "gerontocratic", "load-balancing"),
            "buffer": ("256", "256", "4"),
            "expansion": ("2", "1"),
            "reuse": ("0", "0", "2"),
        },
    ),
    together=check_forest,
    fifo=True,
    frees=Released,
    largest="buffer_bytes",
    inspect=BrisaInspector,
    described=DESCRIBED,
)
HYPARVIEW = Family(
    "hyparview",
    "HyParView alone: every process keeps a few links to others, and the whole stays connected; no messages",
    ("K0",),
    FLOOD_PACKETS,
    _on_overlay(Overlay),
    HyParViewParameters,
    requests=frozenset(),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("crash", "slow", "delay")),
    fifo=True,
    frees=Published,
    live=False,
    inspect=OverlayInspector,
    described=DESCRIBED,
)
FLOOD = Family(
    "flood",
    "messages flooded over HyParView: what Brisa's trees save",
    ("K0", "P1", "P2", "P11"),
    FLOOD_PACKETS,
    _on_overlay(Flood),
    HyParViewParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("crash", "slow", "delay"), outsiders=True),
    fifo=True,
    frees=Published,
    live=False,
    inspect=OverlayInspector,
    described=DESCRIBED,
)
SIMPLE_GOSSIP = Family(
    "simple-gossip",
    "messages pushed to random processes of Cyclon's views and pulled where they did not come",
    ("K0", "P1", "P2", "P11"),
    GOSSIP_PACKETS,
    _gossip,
    GossipParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("crash", "slow", "delay", "reorder", "loss", "duplicate"), outsiders=True),
    frees=Published,
    live=False,
    described=DESCRIBED,
)
SIMPLE_TREE = Family(
    "simple-tree",
    "messages pushed along a random tree that one process hands out; failures are not handled",
    ("K0", "P1", "P2", "P11"),
    TREE_PACKETS,
    _tree,
    NoParameters,
    measured=("P4",),
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("slow", "delay"), outsiders=True),
    fifo=True,
    frees=Published,
    live=False,
    described=DESCRIBED,
)
TAG = Family(
    "tag",
    "TAG: a tree found along a list of all processes, messages pulled from the parent one by one",
    ("K0", "P1", "P2", "P11"),
    TAG_PACKETS,
    _tag,
    TagParameters,
    measured=("P4",),
    rests=lambda parameters: False,
    population=Population(2, announced=False),
    nemesis=Nemesis(faults=("crash", "slow", "delay"), outsiders=True),
    fifo=True,
    frees=Published,
    live=False,
    described=DESCRIBED,
)
