"""HyParView, Brisa and what Brisa is compared with, declared."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice, pairwise
from math import ceil, log
from typing import Any

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Published, Released
from cubecast.protocol.epidemic.brisa import Brisa, BrisaParameters
from cubecast.protocol.epidemic.brisa_packets import FLOW_PACKETS
from cubecast.protocol.epidemic.flood import FLOOD_PACKETS, Flood, HyParViewParameters, Overlay
from cubecast.protocol.epidemic.hyparview import MEMBERSHIP_PACKETS
from cubecast.protocol.epidemic.simple_gossip import GOSSIP_PACKETS, GossipParameters, SimpleGossip
from cubecast.protocol.epidemic.simple_tree import TREE_PACKETS, SimpleTree
from cubecast.protocol.epidemic.tag import TAG_PACKETS, Tag, TagParameters
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.inspector import Inspector, Reached, topic_told
from cubecast.protocol.inspector import Overlay as ShownOverlay
from cubecast.protocol.parameters import NoParameters

# What no process of an overlay can see alone: in each flow the primary parents form a forest.


def check_forest(machine_of: Callable[[NodeId], Any], node: NodeId) -> None:
    """After a step of this process, which is the only one that may have closed a cycle. Who crashed has no machine."""
    for key in machine_of(node).flows:
        seen, here = {node: None}, _primary(machine_of(node), key)
        while here is not None:
            assert here not in seen, f"primary parents of {key.topic} of {key.root} in a cycle: {[*seen, here]}"
            seen[here] = None
            here = _primary(machine_of(here), key)


def _primary(machine: Any, key: Any) -> NodeId | None:
    flow = None if machine is None else machine.flows.get(key)
    return None if flow is None else flow.primary


# What HyParView and Brisa tell status and pages about themselves.


class OverlayInspector(Inspector):
    """No process of an overlay knows all members: neighbours are all it can name."""

    @property
    def living(self) -> list[NodeId]:
        return sorted((self.machine.node, *self.machine.overlay.active))

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        return self.living

    def overlay(self) -> ShownOverlay:
        return ShownOverlay(
            "graph", tuple((self.machine.node, peer, "") for peer in sorted(self.machine.overlay.active))
        )


class BrisaInspector(OverlayInspector):
    machine: Brisa

    @property
    def topics(self) -> Collection[Topic]:
        return self.machine.topics

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        published, subscribed = self.machine.published(), self.machine.delivered()
        return {
            name: topic_told(
                subscribed=name in subscribed, confirmed=name in subscribed, published=published.get(name, 0)
            )
            for name in names
        }

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        most = len(self.machine.flows) if most_topics is None else most_topics
        return super().describe(now, most_topics) | {
            "streams": self.streams(most),
            "streams_in_all": len(self.machine.flows),
        }

    def streams(self, most: int) -> list[dict[str, Any]]:
        return [self._stream(key, flow) for key, flow in islice(self.machine.flows.items(), most)]

    def _stream(self, key: Any, flow: Any) -> dict[str, Any]:
        """`behind`: messages a neighbour is known to have and this process has not; `slow`: children whose links are
        full, with the messages that wait for them."""
        return {
            "topic": key.topic,
            "publisher": key.root,
            "incarnation": key.incarnation,
            "messages": flow.have,
            "parent": flow.primary,
            "parents": list(flow.parents),
            "depth": flow.depth,
            "path": list(flow.path),
            "children": flow.children,
            "behind": flow.lag,
            "slow": {str(peer): flow.have - upto for peer, upto in flow.behind.items()},
            "copies_per_message": flow.copies / flow.fresh if flow.fresh else 0.0,
            "kept_bytes": flow.kept.bytes,
            "orphan": flow.orphan,
        }

    def overlay(self) -> ShownOverlay:
        """Neighbours, and beside those who send or are sent a stream, of whom."""
        labels: dict[NodeId, list[str]] = {peer: [] for peer in self.machine.overlay.active}
        for key, flow in self.machine.flows.items():
            for peer in flow.parents:
                labels.setdefault(peer, []).append(f"{key.topic} from node {key.root}")
        me = self.machine.node
        return ShownOverlay("graph", tuple((me, peer, ", ".join(labels[peer])) for peer in sorted(labels)))

    def published(self) -> Mapping[Topic, int]:
        return self.machine.published()

    def reached(self) -> list[Reached]:
        return [Reached(topic, True, delivered) for topic, delivered in self.machine.delivered().items()]

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        return any(one[:2] == message[:2] and one >= message for one in self.machine.delivered().get(topic, ()))

    knows_whole_trees = False

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        """As far as it is known here: the way from the root to this process, and its children."""
        for key, flow in self.machine.flows.items():
            if key.root == root and topic in (None, key.topic):
                way = [*flow.path, self.machine.node] if flow.path[-1:] != (self.machine.node,) else list(flow.path)
                links = {one: (below,) for one, below in pairwise(way)}
                return links | {self.machine.node: tuple(child for child in flow.children if child not in way)}
        return {}

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        found = (flow.primary for key, flow in self.machine.flows.items() if (key.topic, key.root) == (topic, source))
        return next(found, None)


# The declarations.

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
