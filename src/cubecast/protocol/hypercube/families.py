"""The published hypercube systems, declared."""

from dataclasses import dataclass
from zlib import crc32

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.protocol.contract import Machine
from cubecast.protocol.family import Family, MakeMachine, Nemesis, Population, Seat, Setup
from cubecast.protocol.hypercube.causal_aggregation import CausalBroadcast, CausalParameters
from cubecast.protocol.hypercube.causal_packets import AckBundle, Bundle, CausalPacket
from cubecast.protocol.hypercube.delivery import FirstReception
from cubecast.protocol.hypercube.packets import Membership, OperationAck, Pub, PubAck, Sub, Uns
from cubecast.protocol.hypercube.srpt import Brokers, Srpt, spread
from cubecast.protocol.hypercube.subscribers import Roster
from cubecast.protocol.hypercube.timer_bundling import BundlingParameters, TimerBundling
from cubecast.protocol.hypercube.topology import MAX_DIMENSION, dimension_of
from cubecast.protocol.hypercube.vcube_pb import VCubePB
from cubecast.protocol.hypercube.vcube_ps import VCubePS
from cubecast.protocol.inputs import Publish
from cubecast.protocol.masks import mask_of
from cubecast.protocol.parameters import check_parameters, parameter

CUBE = Population(2, 1 << MAX_DIMENSION, power_of_two=True)
_ORDER = ("P5", "P7")
_COMPLETE = ("K0", "P1", "P1b", "P2", "P4", "P5", "P6", "P7", "P8", "P12", "P13")  # without failures


@dataclass(frozen=True)
class VCubePSParameters:
    first_reception: FirstReception = parameter(
        FirstReception.BLOCK, "a dependency on a source never heard of: block (pseudo-code) or pass (text)"
    )


@dataclass(frozen=True)
class BrokerParameters(VCubePSParameters):
    brokers: int = parameter(32, "how many ids are brokers", least=1, most=1 << MAX_DIMENSION)

    def __post_init__(self) -> None:
        check_parameters(self)


@dataclass(frozen=True)
class VCubePBParameters:
    round_length: float = parameter(1000.0, "between two testing rounds", above=0, unit="time")

    def __post_init__(self) -> None:
        check_parameters(self)


def _rosters(setup: Setup) -> dict[str, Roster]:
    """One per topic, shared by all machines."""
    return {topic: Roster(nodes) for topic, nodes in setup.settled.items()}


def _vcube_ps(setup: Setup, parameters: VCubePSParameters) -> MakeMachine:
    d, present, rosters = dimension_of(setup.size), mask_of(setup.nodes), _rosters(setup)
    mode = parameters.first_reception

    def make(seat: Seat) -> Machine:
        initial = dict(rosters) if not seat.incarnation else {}
        return VCubePS(seat.node, d, present, incarnation=seat.incarnation, first_reception=mode, initial=initial)

    return make


def _srpt(setup: Setup, parameters: VCubePSParameters, brokers: Brokers, roots: list[NodeId]) -> MakeMachine:
    d, rosters = dimension_of(setup.size), _rosters(setup)
    drawn = {topic: setup.rng.choice(roots) for topic in setup.settled}
    mode = parameters.first_reception

    def root_of(topic: str) -> NodeId:
        """Of a topic that came later its name decides, so that all nodes know it."""
        found = drawn.get(topic)
        return roots[crc32(topic.encode()) % len(roots)] if found is None else found

    def make(seat: Seat) -> Machine:
        initial = dict(rosters) if not seat.incarnation else {}
        return Srpt(seat.node, d, brokers, root_of, incarnation=seat.incarnation, first_reception=mode, initial=initial)

    return make


def _srpt_s(setup: Setup, parameters: VCubePSParameters) -> MakeMachine:
    present = mask_of(setup.nodes)
    return _srpt(setup, parameters, Brokers(present, present), sorted(setup.nodes))


def _srpt_b(setup: Setup, parameters: BrokerParameters) -> MakeMachine:
    count = parameters.brokers
    if count > setup.size:
        raise BadInput(f"brokers must be between 1 and {setup.size}, not {count}")
    return _srpt(setup, parameters, *spread(mask_of(setup.nodes), count))


def _vcube_pb(setup: Setup, parameters: VCubePBParameters) -> MakeMachine:
    d, present = dimension_of(setup.size), mask_of(setup.nodes)
    initial = {topic: mask_of(nodes) for topic, nodes in setup.settled.items()}

    def make(seat: Seat) -> Machine:
        round_length = parameters.round_length
        return VCubePB(seat.node, d, present, incarnation=seat.incarnation, initial=initial, round_length=round_length)

    return make


def _everyone(setup: Setup) -> int:
    """The dimension of a cube whose every id is a member of every topic."""
    if any(len(set(nodes)) != setup.size for nodes in setup.settled.values()):
        raise BadInput("a broadcast reaches every node; subscribers must be 100%")
    return dimension_of(setup.size)


def _causal_broadcast(setup: Setup, parameters: CausalParameters) -> MakeMachine:
    d = _everyone(setup)
    return lambda seat: CausalBroadcast(seat.node, d, parameters, incarnation=seat.incarnation)


def _timer_bundling(setup: Setup, parameters: BundlingParameters) -> MakeMachine:
    d = _everyone(setup)
    return lambda seat: TimerBundling(seat.node, d, parameters, incarnation=seat.incarnation)


VCUBE_PS = Family(
    name="vcube-ps",
    summary="VCube-PS as published: per-source trees of subscribers, causal barriers",
    promises=("K0", "P1", "P1b", "P2"),
    static_promises=_ORDER,  # V4 and V6 in docs/papers/vcube-ps.md
    packets=(Pub, PubAck, Sub, Uns, OperationAck),
    make=_vcube_ps,
    parameters=VCubePSParameters,
    population=CUBE,
    live=False,
    nemesis=Nemesis(joins=True),
    described="docs/papers/vcube-ps.md",
)
SRPT = Family(
    name="srpt",
    summary="one random root per topic, tree over all ids (SRPT-S)",
    promises=("K0", "P1", "P1b"),
    static_promises=("P2", *_ORDER),
    packets=(Pub, Sub, Uns),
    make=_srpt_s,
    parameters=VCubePSParameters,
    population=CUBE,
    live=False,
    described="docs/papers/vcube-ps.md",
)
SRPT_B = Family(
    name="srpt-b",
    summary="one random root per topic, tree over brokers, subscribers attached (SRPT-B)",
    promises=("K0", "P1", "P1b"),
    static_promises=("P2", *_ORDER),
    packets=(Pub, Sub, Uns),
    make=_srpt_b,
    parameters=BrokerParameters,
    population=CUBE,
    live=False,
    nemesis=Nemesis(settings={"brokers": ("1", "2", "4")}),
    described="docs/papers/vcube-ps.md",
)
VCUBE_PB = Family(
    name="vcube-pb",
    summary="VCube-PB as published: VCube-PS for crashing nodes, with a perfect failure detector",
    promises=("K0", "P1", "P1b", "P2", "P3", "P4", "P5", "P7"),
    packets=(Pub, PubAck, Membership),
    make=_vcube_pb,
    parameters=VCubePBParameters,
    population=CUBE,
    live=False,
    nemesis=Nemesis(
        ("crash", "cutoff", "half", "delay", "reorder", "slow", "hold"),
        outsiders=True,
        held=("Pub", "PubAck", "Membership"),
    ),
    described="docs/papers/vcube-pb.md",
)
CAUSAL_BROADCAST = Family(
    name="causal-broadcast",
    summary="vector clocks on per-source trees; causally related messages travel in one packet",
    promises=_COMPLETE,
    packets=(CausalPacket,),
    make=_causal_broadcast,
    parameters=CausalParameters,
    requests=frozenset({Publish}),
    population=CUBE,
    live=False,
    nemesis=Nemesis(everybody=True),
    described="docs/papers/causal-aggregation.md",
)
TIMER_BUNDLING = Family(
    name="timer-bundling",
    summary="vector clocks on per-source trees; what waits for a neighbour shares a packet, acknowledgements too",
    promises=(*_COMPLETE, "P3"),
    packets=(Bundle, AckBundle),
    make=_timer_bundling,
    parameters=BundlingParameters,
    requests=frozenset({Publish}),
    population=CUBE,
    live=False,
    nemesis=Nemesis(everybody=True),
    described="docs/papers/causal-aggregation.md",
)
