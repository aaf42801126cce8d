"""Figure 3.7: physical links of a hundred processes on a grid, round by round; in lock step, and as on PlanetLab.

The deployment is replaced by the machines themselves in the simulator: rounds of 30 s that begin whenever a process
does, delays as measured between PlanetLab's hosts, and a message lost now and then.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cubecast.experiments.claims import claim
from cubecast.experiments.ledger import Finding
from cubecast.experiments.parallel import Figures, Point, Runner
from cubecast.experiments.stan.point import GRID_ROUNDS, TTL, average, setting, universe_of
from cubecast.protocol.families import find
from cubecast.sim.config import stream
from cubecast.sim.network import Network, parse_delay
from cubecast.sim.scenario import machines
from cubecast.sim.world import World
from cubecast.wire.codec import codec_of

SETTING = setting("grid")
ROUND = 30_000.0
RUNS = 5
LOSS = 0.05
"""Of messages; the thesis calls it not negligible."""


def deployed(point: Point) -> Figures:
    """Links of a process at the start and after each round."""
    drawn, family, seed = universe_of("grid", point["seed"]), find("stan"), point["seed"]
    settled = {f"t{topic}": tuple(drawn.of(topic).tolist()) for topic in range(drawn.topics)}
    size = drawn.processes
    make = machines(family, seed, size, range(size), settled, {"period": str(ROUND), "ttl": str(TTL)})
    delay = parse_delay("planetlab", stream(seed, "delays"), size)
    world = World(range(size), make, Network(size, delay, processing=0.0, transmission=0.0), codec_of(family))
    lost = stream(seed, "loss")
    world.network.fate = lambda now, source, destination, packet: [] if lost.random() < LOSS else [0.0]
    world.start()
    links = [_links(world)]
    for number in range(1, GRID_ROUNDS + 1):
        world.run(number * ROUND)
        links.append(_links(world))
    return {"links": links}


def _links(world: World) -> float:
    alive: list[Any] = list(world.machines.values())
    return average(len(set().union(*(one.view for one in machine.overlays.values()))) for machine in alive)


def runs(runner: Runner, seed: int) -> list[Figures]:
    return list(runner(deployed, [{"seed": seed + number} for number in range(RUNS)]))


def evolution(runs: Sequence[Figures]) -> list[float]:
    return [average(values) for values in zip(*(run["links"] for run in runs), strict=True)]


def beside_the_papers(links: Sequence[float]) -> dict[str, Sequence[float | None]]:
    """Round by round; the thesis prints the first and the last."""
    between: list[float | None] = [None] * (len(links) - 2)
    printed = [claim("ST-F37-initial").value, *between, claim("ST-F37").value]
    return {"links of a process on the grid, ours": links, "links of a process on the grid, paper": printed}


def findings(runs: Sequence[Figures], abroad: Sequence[Figures] = ()) -> Iterator[Finding]:
    links, logical = evolution(runs), average(run["logical"] for run in runs)
    note = f"{_by_round(links)}; logical links {logical:.1f} throughout"
    for name, ours in (("ST-F37-initial", links[0]), ("ST-F37", links[-1])):
        yield Finding(claim(name), ours, note=note)
    if abroad:
        links = evolution(abroad)
        yield Finding(claim("ST-F37-planetlab"), links[-1], note=f"{_by_round(links)}; {100 * LOSS:g} % lost")


def _by_round(links: Sequence[float]) -> str:
    return f"round by round {', '.join(f'{one:.1f}' for one in links)}"
