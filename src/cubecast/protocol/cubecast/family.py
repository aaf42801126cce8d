"""The user's protocol, declared, and what it tells about itself (`inspection.py`), in the form every family's inspector
has.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any, get_type_hints

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.cubecast import inspection
from cubecast.protocol.cubecast.lifetime import Lifetime
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.packets import FIRST_PACKETS, LATER_PACKETS, Convoy, Part
from cubecast.protocol.cubecast.parameters import Detection, Parameters, Timer
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.hypercube.topology import MAX_DIMENSION, cluster, dimension_of, first_child, tree
from cubecast.protocol.inputs import Follow, Publish, Subscribe, Unsubscribe
from cubecast.protocol.inspector import Inspector, Overlay, Reached, Standing
from cubecast.protocol.masks import mask_of


class CubecastInspector(Inspector):
    machine: Cubecast

    @property
    def _life(self) -> Lifetime:
        return self.machine.life

    @property
    def is_active(self) -> bool:
        return self.machine.is_active

    @property
    def living(self) -> list[NodeId]:
        return self.machine.living

    def standings(self) -> Mapping[NodeId, Standing]:
        return {node: Standing(*one) for node, one in inspection.standings(self._life).items()}

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        return self.machine.describe(now, most_topics)

    @property
    def topics(self) -> Collection[Topic]:
        return self._life.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        return inspection.describe_topics(self._life, names)

    def some_topics(self, most: int) -> list[Topic]:
        return inspection.some_topics(self._life, inspection.under_way(self._life), most)

    def envelope_bytes(self, topic: Topic) -> int:
        return self.machine.envelope_bytes(topic)

    def published(self) -> Mapping[Topic, int]:
        return inspection.published(self._life)

    def reached(self) -> list[Reached]:
        return [Reached(*one) for one in inspection.reached(self._life)]

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        return inspection.has_delivered(self._life, topic, message)

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        return inspection.destinations(self._life, topic)

    def reaches(self, topic: Topic, me: NodeId) -> bool:
        return any(node != me for node in self.destinations(topic))

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        members = mask_of(self.destinations(topic)) & ~(1 << root)
        return tree(root, self._life.context.parameters.dimension, members)

    def overlay(self) -> Overlay:
        return Overlay("cube")

    def waiting(self) -> list[str]:
        return inspection.describe_waiting(self._life)

    @property
    def is_at_rest(self) -> bool:
        return not inspection.describe_waiting(self._life, most=1)

    def held(self, now: float) -> list[dict[str, Any]]:
        return inspection.describe_held(self._life, now, inspection.under_way(self._life))

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        found = [node for node, children in self.tree(source, topic).items() if self.machine.node in children]
        return found[0] if found else None

    def outlook(self, source: NodeId, standing: str, *, connected: bool, via: NodeId | None) -> str:
        parameters = self._life.context.parameters
        if standing == "alive" and connected:
            way = "" if via is None or via == source else f", by way of node {via}"
            every = f"{parameters.retry:g} s"
            return f"node {source} lives and keeps it; until this node acknowledges it comes every {every}{way}"
        if standing == "alive":
            return (
                f"the link to node {source} is lost; it is dialled again, and after {parameters.patience:g} s without "
                "a sign of life the node is held faulty and the members agree on what it left"
            )
        if standing == "faulty":
            waiting = "; ".join(self._life.settlement.waiting()) or "the agreement is complete"
            return (
                f"node {source} is held faulty: whoever has it hands it on, and what nobody has is announced as a gap "
                f"({waiting})"
            )
        if standing == "settled":
            return f"everything node {source} left is settled; this is released with the next step"
        return f"node {source} was never heard of here; a member that knows it will introduce it"

    def metadata(self, packet: Any) -> Mapping[str, Any] | None:
        if not isinstance(packet, Publication):
            return None
        return {
            "barrier": packet.dependencies,
            "destinations": (packet.members, packet.epochs),
            "starts": packet.starts,
        }

    def timer(self, recorded: Any) -> Hashable:
        return Timer(recorded)

    def is_retry(self, timer: Hashable) -> bool:
        return timer is Timer.RETRY


# The declaration.

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
    "lost_twice": {"direct": ("15",), "aggregation": ("off",)},
    "secret": {},
    "rumour": {},
    "two_sides": {},
    "left_alone": {"detection": ("diagnosis",), "patience": ("1500.0", "3000.0")},
    "stranger": {"patience": ("1500.0",)},
    "strangers": {"patience": ("1500.0",)},
    "greetings": {},
    "catalogue": {"topics_per_answer": ("1",), "announcement_bytes": ("1", "80")},
    "latecomer": {"topics_per_answer": ("1", "1", "500")},
    "shares": {"announcement_bytes": ("1", "80")},
    "second_death": {},
    "asked_too_late": {},
    "unknown_to_each_other": {},
    "stillborn": {"detection": ("diagnosis",), "patience": ("1500.0",)},
    "standstill": {"detection": ("diagnosis",), "patience": ("1500.0",)},
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
