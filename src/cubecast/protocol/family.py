"""What a protocol says about itself: one declaration, read by simulator, codec, swarm, sweeps, live node and CLI.

Data only. `protocol.families` finds a declaration by name; docs/families.md tells how to add one.
Follows decision 0055.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias
from zlib import crc32

from cubecast.errors import BadInput
from cubecast.ids import Incarnation, NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.effects import Acknowledged
from cubecast.protocol.inputs import Publish, Subscribe, Unsubscribe
from cubecast.protocol.inspector import Inspector
from cubecast.protocol.parameters import Parameter, choose, parameters_of

MOST_NODES = 1 << 16
"""Of a simulated population, whatever the family."""


@dataclass(frozen=True)
class Setup:
    """What the machines of one population have in common."""

    size: int
    """Ids there are; those not among `nodes` are holes."""
    nodes: tuple[NodeId, ...]
    """Who is there from the start and may know of each other."""
    settled: Mapping[Topic, tuple[NodeId, ...]]
    """Subscriptions that everybody knows from the start."""
    rng: Random
    """For what the whole population must agree upon, such as a root per topic."""
    open: bool = False
    """Others than `nodes` may come later."""
    roles: Mapping[NodeId, str] = field(default_factory=dict)
    """What part each node plays, where a family has parts."""


@dataclass(frozen=True)
class Seat:
    """Whose machine is to be made: one life of one node."""

    node: NodeId
    incarnation: Incarnation = 0
    role: str = ""
    contacts: tuple[NodeId, ...] = ()
    """Peers this life may turn to first; a founder that knows everybody has none."""
    seed: str = "0"
    """Every random choice of this life follows from it; drivers record it, so that a run can be repeated."""

    @property
    def rng(self) -> Random:
        return Random(self.seed)


MakeMachine: TypeAlias = Callable[[Seat], Machine]
Make: TypeAlias = Callable[[Setup, Any], MakeMachine]
"""(what the population shares, an instance of the family's parameters) → how to make one machine of it."""


@dataclass(frozen=True)
class Population:
    """Which numbers of nodes make sense, and what parts they may play."""

    least: int = 2
    most: int = MOST_NODES
    power_of_two: bool = False
    """Ids are places of a hypercube: a place is admitted to, not chosen."""
    roles: tuple[str, ...] = ()
    """Empty: all nodes are alike. Otherwise nodes not told apart play the last."""
    named: bool = False
    """Ids are those of a plan that all nodes have, such as the links of a tree of brokers."""
    announced: bool = True
    """Drivers tell every node who comes and goes. Otherwise a node joins through its contacts and keeps links."""

    @property
    def draws_ids(self) -> bool:
        """A live node has an id of 63 bits of its own. Otherwise it gets one of 2^dimension from those it joins."""
        return not (self.power_of_two or self.named)

    def role(self, owner: str, name: str) -> str:
        if name not in self.roles:
            raise BadInput(f"{owner} has no role {name!r}; it has {', '.join(self.roles) or 'none'}")
        return name

    def check(self, owner: str, size: int) -> None:
        if not self.least <= size <= self.most:
            raise BadInput(f"{owner} runs on {self.least} to {self.most} nodes, not {size}")
        if self.power_of_two and size & (size - 1):
            raise BadInput(
                f"{owner} runs on a hypercube, which has 2, 4, 8 … {self.most} ids, not {size}; "
                "round up to a power of two"
            )


@dataclass(frozen=True)
class Nemesis:
    """Which faults a swarm may draw: only what the family claims to survive."""

    faults: tuple[str, ...] = ("delay", "reorder", "slow")
    joins: bool = False
    """Nodes subscribe and unsubscribe while it runs."""
    outsiders: bool = False
    """Nodes publish without being subscribed."""
    crossposts: bool = False
    """Messages of several topics are published."""
    held: tuple[str, ...] = ()
    """Kinds of packets that may be held up."""
    everybody: bool = False
    """All ids are nodes, and all nodes are subscribed."""
    returning: bool = False
    """Nodes that come back subscribe and publish at once."""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parameters that are drawn among these values."""
    full: bool = False
    """It takes everything: dense worlds with interests, sometimes with the settings of live nodes, and sequences."""
    live: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What nodes outside simulations have by default, a second counted as 1000 u.t."""
    sequences: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Rows of events that are played in some worlds (`sim.sequences`), by name, each with the parameters it needs."""
    pace: Mapping[str, str] = field(default_factory=dict)
    """Parameters in every sequence."""
    silenced: tuple[str, ...] = ()
    """Kinds of packets by which a node says that it suspects another."""
    forwarders: Callable[[tuple[NodeId, ...]], Sequence[tuple[NodeId, NodeId, NodeId]]] = lambda nodes: ()
    survives: Callable[[tuple[NodeId, ...], Mapping[str, str], frozenset[NodeId]], bool] = lambda *_: True
    """(nodes, settings, faulty): does it claim to survive that these crash, are cut off or are suspected at once?"""
    """(source, node, other): what the source sends to the other goes by way of the node, while all of these live."""


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    summary: str
    promises: tuple[str, ...]
    """Properties of docs/verification.md that hold always."""
    packets: tuple[type | None, ...]
    """A packet's place is its tag on the wire: append, never renumber; None is a tag that is not used."""
    make: Make
    parameters: type
    static_promises: tuple[str, ...] = ()
    """Properties that hold besides while the membership is static: no node subscribes or unsubscribes."""
    measured: tuple[str, ...] = ()
    """Properties that hold with a probability: measured and reported, never promised."""
    requests: frozenset[type] = frozenset({Publish, Subscribe, Unsubscribe})
    """What an application may ask."""
    rests: Callable[[Any], bool] = lambda parameters: True
    """Whether it comes to rest, with these parameters, when nothing is asked of it; if not, a simulation needs a
    horizon."""
    frees: type = Acknowledged
    """The effect after which own publications take no more room: Acknowledged, Released, or at once, Published."""
    largest: str = ""
    """The parameter that says how many bytes a message may have, if one does."""
    live: bool = True
    """Can be run by live nodes, which come one after another."""
    inspect: Callable[[Any], Inspector] = Inspector
    """How to look into a machine."""
    settles: bool = True
    """Its machines can know subscriptions from the start; if not, a simulation asks for them at time 0."""
    together: Callable[[Callable[[NodeId], Any], NodeId], None] = lambda machine_of, node: None
    """What must hold of all machines together, looked at after a step of this node; asserts. Who is gone has None."""
    fifo: bool = False
    """Needs links that keep the order of what is sent."""
    population: Population = field(default_factory=Population)
    nemesis: Nemesis = field(default_factory=Nemesis)
    described: str = ""
    """Where to read about it."""
    wire_types: Mapping[type, Mapping[str, Any]] = field(default_factory=dict)
    """Types of what travels, of packets that are compiled and do not tell."""

    def promised(self, *, static: bool) -> tuple[str, ...]:
        """What holds in a run whose membership is static, or is not."""
        return (*self.promises, *self.static_promises) if static else self.promises

    @property
    def settings(self) -> dict[str, Parameter]:
        return parameters_of(self.parameters)

    def choose(self, given: Mapping[str, str], *, live: bool = False) -> dict[str, Any]:
        """Its parameters by name with those given, as text, changed."""
        return choose(self.name, self.parameters, given, live=live)

    def chosen(self, given: Mapping[str, str], *, live: bool = False) -> Any:
        """An instance of its parameters."""
        return self.parameters(**self.choose(given, live=live))

    def signature(self, parameters: Any) -> str:
        """Equal for nodes that understand each other: the name, and a number for what must agree."""
        agreed = [f"{name}={getattr(parameters, name)}" for name, one in self.settings.items() if one.agree]
        return f"{self.name}/{crc32(' '.join(agreed).encode()):08x}" if agreed else self.name

    def factory(self, setup: Setup, given: Mapping[str, str]) -> MakeMachine:
        """How to make the machines of this population, with these parameters changed."""
        return self.make(setup, self.chosen(given))
