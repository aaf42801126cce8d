"""The protocols a simulation can name: how to build their machines, what they promise, what `--set` may change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.vcube.causal_aggregation import Aggregation, CausalBroadcast, CausalParameters, PacketOrder, Tree
from cubecast.protocol.vcube.cubecast import Cubecast, Detection, Parameters
from cubecast.protocol.vcube.cubecast.parameters import Aggregation as CubecastAggregation
from cubecast.protocol.vcube.delivery import FirstReception
from cubecast.protocol.vcube.srpt import Brokers, Srpt, spread
from cubecast.protocol.vcube.subscribers import Roster
from cubecast.protocol.vcube.timer_bundling import BundlingParameters, TimerBundling
from cubecast.protocol.vcube.topology import dimension_of
from cubecast.protocol.vcube.vcube_pb import VCubePB
from cubecast.protocol.vcube.vcube_ps import VCubePS
from cubecast.sim.world import MachineFactory


@dataclass(frozen=True)
class Setting:
    """A protocol parameter that `--set name=value` may change."""

    default: Any
    meaning: str

    def parse(self, name: str, text: str) -> Any:
        kind = type(self.default)
        try:
            return kind(text)
        except ValueError:
            allowed = " or ".join(str(one.value) for one in kind) if issubclass(kind, Enum) else kind.__name__
            raise BadInput(f"{name} takes {allowed}, not {text!r}") from None


@dataclass(frozen=True)
class Setup:
    """What a protocol is built from: the ids in use, and the settled members per topic."""

    size: int
    present: int
    rosters: Mapping[str, Roster]
    rng: Random
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class ProtocolEntry:
    name: str
    summary: str
    promises: tuple[str, ...]
    build: Callable[[Setup], MachineFactory]
    settings: Mapping[str, Setting] = field(default_factory=dict)


def _vcube_ps(setup: Setup) -> MachineFactory:
    d = dimension_of(setup.size)
    mode = setup.settings["first_reception"]

    def make(node: NodeId, incarnation: int) -> VCubePS:
        initial = dict(setup.rosters) if not incarnation else {}
        return VCubePS(node, d, setup.present, incarnation=incarnation, first_reception=mode, initial=initial)

    return make


def _srpt(setup: Setup, brokers: Brokers, roots: list[NodeId]) -> MachineFactory:
    d = dimension_of(setup.size)
    root_of = {topic: setup.rng.choice(roots) for topic in setup.rosters}
    mode = setup.settings["first_reception"]

    def make(node: NodeId, incarnation: int) -> Srpt:
        initial = dict(setup.rosters) if not incarnation else {}
        where = root_of.__getitem__
        return Srpt(node, d, brokers, where, incarnation=incarnation, first_reception=mode, initial=initial)

    return make


def _srpt_s(setup: Setup) -> MachineFactory:
    everyone = [node for node in range(setup.size) if setup.present >> node & 1]
    return _srpt(setup, Brokers(setup.present, setup.present), everyone)


def _srpt_b(setup: Setup) -> MachineFactory:
    count = setup.settings["brokers"]
    if not 1 <= count <= setup.size:
        raise BadInput(f"brokers must be between 1 and {setup.size}, not {count}")
    return _srpt(setup, spread(setup.present, count, setup.size), list(range(count)))


def _vcube_pb(setup: Setup) -> MachineFactory:
    d = dimension_of(setup.size)
    initial = {topic: roster.mask for topic, roster in setup.rosters.items()}

    def make(node: NodeId, incarnation: int) -> VCubePB:
        return VCubePB(
            node,
            d,
            setup.present,
            incarnation=incarnation,
            initial=initial,
            round_length=setup.settings["round_length"],
        )

    return make


def _cubecast(setup: Setup) -> MachineFactory:
    parameters = Parameters(dimension_of(setup.size), founders=setup.present, ids=setup.present, **dict(setup.settings))
    initial = {topic: roster.mask for topic, roster in setup.rosters.items()}

    def make(node: NodeId, incarnation: int) -> Cubecast:
        return Cubecast(node, parameters, incarnation=incarnation, initial=initial)

    return make


def _everyone(setup: Setup) -> int:
    """The dimension of a cube whose every id is a member of every topic."""
    if any(roster.mask != (1 << setup.size) - 1 for roster in setup.rosters.values()):
        raise BadInput("a broadcast reaches every node; subscribers must be 100%")
    return dimension_of(setup.size)


def _causal_broadcast(setup: Setup) -> MachineFactory:
    d = _everyone(setup)
    parameters = CausalParameters(**setup.settings)
    return lambda node, incarnation: CausalBroadcast(node, d, parameters, incarnation=incarnation)


def _timer_bundling(setup: Setup) -> MachineFactory:
    d = _everyone(setup)
    parameters = BundlingParameters(**setup.settings)
    return lambda node, incarnation: TimerBundling(node, d, parameters, incarnation=incarnation)


_FIRST_RECEPTION = Setting(
    FirstReception.BLOCK, "a dependency on a source never heard of: block (pseudo-code) or pass (text)"
)
_ORDERED = ("K0", "P1", "P2", "P5", "P7")

_COMPLETE = ("K0", "P1", "P2", "P4", "P5", "P6", "P7", "P8", "P12", "P13")  # without failures

_ENTRIES = (
    ProtocolEntry(
        "vcube-ps",
        "VCube-PS as published: per-source trees of subscribers, causal barriers",
        _ORDERED,
        _vcube_ps,
        {"first_reception": _FIRST_RECEPTION},
    ),
    ProtocolEntry(
        "srpt",
        "one random root per topic, tree over all ids (SRPT-S)",
        _ORDERED,
        _srpt_s,
        {"first_reception": _FIRST_RECEPTION},
    ),
    ProtocolEntry(
        "srpt-b",
        "one random root per topic, tree over brokers, subscribers attached (SRPT-B)",
        _ORDERED,
        _srpt_b,
        {"first_reception": _FIRST_RECEPTION, "brokers": Setting(32, "how many ids are brokers")},
    ),
    ProtocolEntry(
        "vcube-pb",
        "VCube-PB as published: VCube-PS for crashing nodes, with a perfect failure detector",
        ("K0", "P1", "P2", "P3", "P4", "P5", "P7"),
        _vcube_pb,
        {"round_length": Setting(1000.0, "u.t. between two testing rounds")},
    ),
    ProtocolEntry(
        "cubecast",
        "reliable, gapless, pipelined causal publish/subscribe; what the live system runs",
        ("K0", "K1", "K2", "K3", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P10", "P11", "P12", "P13"),
        _cubecast,
        {
            "window": Setting(8, "own publications per topic that may be unstable at a time"),
            "max_batch": Setting(512, "messages per publication"),
            "max_batch_bytes": Setting(65_536, "payload bytes per publication; a larger message goes alone"),
            "retry": Setting(1000.0, "u.t. without an answer before something is sent again"),
            "detection": Setting(Detection.DRIVER, "who notices silent peers: driver or diagnosis"),
            "round_length": Setting(1000.0, "u.t. between two testing rounds"),
            "patience": Setting(4000.0, "u.t. of silence before a tested peer is held faulty"),
            "eager": Setting(0, "unstable publications from which on only full ones leave; 0: small ones always may"),
            "ack_delay": Setting(0.0, "u.t. that acknowledgements may wait for company"),
            "calm": Setting(0, "as eager, for a source that was not made to wait since all it published was stable"),
            "direct": Setting(
                0, "others at most to whom a source sends small publications itself, while little is under way"
            ),
            "aggregation": Setting(
                CubecastAggregation.OFF, "off, or on: publications for the same child share packets"
            ),
        },
    ),
    ProtocolEntry(
        "causal-broadcast",
        "vector clocks on per-source trees; causally related messages travel in one packet",
        _COMPLETE,
        _causal_broadcast,
        {
            "aggregation": Setting(Aggregation.ON, "off, on, or riding: unrelated messages join a postponed packet"),
            "tree": Setting(Tree.SOURCE, "source: a tree per publisher; single: that of node 0"),
            "order": Setting(PacketOrder.ARRIVAL, "of the messages in a packet: arrival, causal, or whole packets"),
            "mtu": Setting(1500, "bytes per packet at most, header included"),
        },
    ),
    ProtocolEntry(
        "timer-bundling",
        "vector clocks on per-source trees; what waits for the same neighbour shares a packet, acknowledgements too",
        (*_COMPLETE, "P3"),
        _timer_bundling,
        {
            "wait": Setting(10.0, "how long the first entry of a buffer waits for others, u.t."),
            "mtu": Setting(1500, "bytes per packet at most, header included"),
        },
    ),
)
PROTOCOLS: dict[str, ProtocolEntry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> ProtocolEntry:
    entry = PROTOCOLS.get(name)
    if entry is None:
        raise BadInput(f"unknown protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return entry


def settings_of(entry: ProtocolEntry, given: Mapping[str, str]) -> dict[str, Any]:
    """The protocol's parameters with `given` ones changed."""
    unknown = [name for name in given if name not in entry.settings]
    if unknown:
        known = ", ".join(entry.settings) or "none"
        raise BadInput(f"{entry.name} has no parameter {unknown[0]!r}; it has {known}")
    values = {name: setting.default for name, setting in entry.settings.items()}
    return values | {name: entry.settings[name].parse(name, text) for name, text in given.items()}
