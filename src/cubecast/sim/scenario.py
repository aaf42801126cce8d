"""Who is there and what they know from the start, turned into machines: the same for every way to run a world."""

from collections.abc import Iterable, Mapping

from cubecast.ids import NodeId, Topic
from cubecast.protocol.contract import Machine
from cubecast.protocol.family import Family, Seat, Setup
from cubecast.sim.lives import MachineFactory
from cubecast.sim.randomness import stream


def machines(
    family: Family,
    seed: int,
    size: int,
    nodes: Iterable[NodeId],
    settled: Mapping[Topic, Iterable[NodeId]],
    settings: Mapping[str, str],
) -> MachineFactory:
    """How the family makes the machine of each life in this population. Each life has random numbers of its own."""
    rosters = {topic: tuple(some) for topic, some in settled.items()}
    setup = Setup(size, tuple(nodes), rosters, stream(seed, "protocol"))
    make = family.factory(setup, settings)

    def made(node: NodeId, incarnation: int) -> Machine:
        return make(Seat(node, incarnation, seed=f"{seed}/life/{node}/{incarnation}"))

    return made
