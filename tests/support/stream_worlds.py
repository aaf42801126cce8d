"""Worlds of one stream to many, with processes that crash and links that break while it flows."""

from random import Random

from cubecast.ids import NodeId
from cubecast.sim.config import SimConfig
from cubecast.sim.run import Simulation, prepare
from cubecast.sim.world import World

MESSAGES = 60
STREAM = 20_000.0
END = 120_000.0
STEP = 250.0


def stream(seed: int, nodes: int, **settings: str) -> Simulation:
    """One publisher, from slow to fast links."""
    delays = Random(f"delays {seed}").choice(("uniform:1:3", "uniform:1:50", "uniform:1:300"))
    return prepare(
        SimConfig(
            "brisa",
            nodes=nodes,
            publishers="1",
            messages=MESSAGES,
            window=STREAM,
            propagation=delays,
            until=END,
            seed=seed,
            settings=settings,
        )
    )


def add_faults(simulation: Simulation, seed: int) -> None:
    """Up to a third of the processes crash, and links break, while messages are published."""
    rng, world, (publisher, *_) = Random(f"faults {seed}"), simulation.world, simulation.publishers
    others = [node for node in world.nodes if node != publisher]
    for victim in rng.sample(others, int(len(others) * rng.choice((0.1, 0.2, 0.3)))):
        world.at(rng.uniform(500, STREAM), world.crash, victim)
    for _ in range(rng.randrange(60)):
        world.at(rng.uniform(500, STREAM), break_some_link, world, rng)


def add_churn(simulation: Simulation, seed: int) -> None:
    """Processes fail and come back as new ones, links are cut by partitions that heal, and some processes are slow."""
    rng, world, (publisher, *_) = Random(f"churn {seed}"), simulation.world, simulation.publishers
    others = [node for node in world.nodes if node != publisher]
    for node in rng.sample(others, rng.randrange(2, len(others) // 3)):
        at = rng.uniform(500, STREAM)
        world.at(at, world.crash, node)
        world.at(at + rng.uniform(50, 5000), world.restart, node)
    side, at = set(rng.sample(world.nodes, rng.randrange(1, len(world.nodes) // 2))), rng.uniform(2000, STREAM)
    until, slow = at + rng.uniform(500, 8000), set(rng.sample(world.nodes, 4))

    def fate(now: float, source: NodeId, destination: NodeId, packet: object) -> list[float]:
        if at <= now <= until and (source in side) != (destination in side):
            return []
        return [300.0 if source in slow or destination in slow else 0.0]

    world.network.fate = fate
    world.at(at, cut_off, world, side)


def cut_off(world: World, side: set[NodeId]) -> None:
    for node in sorted(side):
        for peer in sorted(world.links.get(node, ())):
            if peer not in side:
                world.break_link(node, peer)


def break_some_link(world: World, rng: Random) -> None:
    node = rng.choice(sorted(world.links))
    if world.links[node]:
        world.break_link(node, rng.choice(sorted(world.links[node])))


def living(world: World) -> list[NodeId]:
    return [node for node in world.nodes if not world.is_gone(node)]


def cycle(world: World) -> tuple[object, NodeId] | None:
    """A flow and a process whose primary parents lead back to itself."""
    for node in living(world):
        for key in world.machines[node].flows:
            seen, here = {node}, _primary(world, node, key)
            while here is not None and here not in seen:
                seen.add(here)
                here = _primary(world, here, key)
            if here is not None:
                return key, node
    return None


def _primary(world: World, node: NodeId, key: object) -> NodeId | None:
    if world.is_gone(node):
        return None
    flow = world.machines[node].flows.get(key)
    return None if flow is None else flow.primary


def run_watching(simulation: Simulation) -> tuple[bool, bool]:
    """To the end; whether there ever was a cycle, and whether somebody left has not got everything."""
    world = simulation.world
    world.start()
    cycled, time = False, 0.0
    while time < END:
        time += STEP if time < 1.5 * STREAM else 20 * STEP
        world.run(time)
        cycled = cycled or cycle(world) is not None
    has = {max((flow.have for flow in world.machines[node].flows.values()), default=0) for node in living(world)}
    return cycled, has != {MESSAGES}
