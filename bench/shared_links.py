"""Does StaN's fixed point pay where members are known? Connections and bytes of 64 nodes in many of 100 topics.

Simulated, because every packet can be looked at there. Three ways of sending the same messages, each tagged with a
topic and the two that correlate most with it: the users' protocol, once per topic, directly and along trees; floods in
each topic over the members with the smallest weights; and CrosspostFlood over the same. What a message of several
topics could save the users' protocol at most is the share of its copies that go the same way as another copy of it.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cubecast.experiments.stan.point import triplets
from cubecast.experiments.stan.universes import Universe, universe
from cubecast.pipeline.workloads.synthetic import Shape, population, power_law
from cubecast.protocol.epidemic.stan_overlay import view_size, weight
from cubecast.sim.config import SimConfig
from cubecast.sim.run import Simulation, prepare

SHAPE = Shape(processes=64, topics=100, largest=48, activity=1.6, most_active=30.0, communities=4, share=0.7)
SMALLEST = 8
APART = 5_000.0
"""Between messages, in the simulator's milliseconds: what is under way has come to rest."""


def draw_members(seed: int) -> Universe:
    rng = np.random.default_rng(seed)
    users = population(rng, SHAPE)
    drawn = []
    for size in power_law(rng, 2.0, SMALLEST, SHAPE.largest, SHAPE.topics).astype(int).tolist():
        members: list[int] = []
        home = np.array([rng.integers(SHAPE.communities)])
        while len(members) < size:
            one = int(users.draw(rng, home)[0])
            members += [one] * (one not in members)
        drawn.append(np.array(members, np.int32))
    return universe(SHAPE.processes, drawn)


class Traffic:
    """Every packet, from where to where."""

    def __init__(self) -> None:
        self.links: set[frozenset[int]] = set()
        self.copies = 0
        self.ways: set[tuple[bytes, int, int]] = set()
        self.payload_bytes = 0

    def saw(self, _: float, source: int, destination: int, packet: Any) -> tuple[float, ...]:
        self.links.add(frozenset((source, destination)))
        if packet.publication:
            self.copies += 1
            self.payload_bytes += len(packet.frame)
            self.ways.update((payload[:4], source, destination) for payload in packet.payloads)
        return (0.0,)


def send(
    protocol: str, table: Path, drawn: Universe, payload: int, sources: int, settings: dict[str, str]
) -> dict[str, float]:
    rng = np.random.default_rng(1)
    chosen = [
        (three, source) for three, common in triplets(drawn) for source in rng.permutation(common)[:sources].tolist()
    ]
    config = SimConfig(
        protocol, nodes=SHAPE.processes, subscriptions=str(table), publishers="1", messages=1, window=1.0,
        until=APART * (len(chosen) + 2), settings=settings,
    )  # fmt: skip
    simulation, traffic = prepare(config), Traffic()
    simulation.world.network.fate = traffic.saw
    if protocol != "cubecast":
        take_the_lightest(simulation)
    for number, (three, source) in enumerate(chosen, 1):
        content = number.to_bytes(4, "big") + bytes(payload - 4)
        names = tuple(f"t{topic:02}" for topic in three.tolist())
        if protocol == "crosspost":
            simulation.world.at(APART * number, simulation.world.crosspost, source, names, (content,))
            continue
        for name in names:
            simulation.world.at(APART * number, simulation.world.publish, source, name, (content,))
    counted = simulation.run()
    degrees = np.bincount([node for link in traffic.links for node in link], minlength=SHAPE.processes)
    return {
        "connections": float(degrees.mean()),
        "most": float(degrees.max()),
        "bytes": counted["bytes"] / counted["deliveries"],
        "copies": traffic.copies / counted["deliveries"],
        "shared": 1 - len(traffic.ways) / traffic.copies,
        "deliveries": counted["deliveries"],
    }


def take_the_lightest(simulation: Simulation) -> None:
    """StaN's fixed point: of all members of a topic those with the smallest weights."""
    machines: list[Any] = list(simulation.world.machines.values())
    members: dict[str, list[int]] = {}
    for machine in machines:
        for topic in machine.overlays:
            members.setdefault(topic, []).append(machine.node)
    for machine in machines:
        for topic, overlay in machine.overlays.items():
            others = sorted(
                (one for one in members[topic] if one != machine.node), key=lambda o: weight(machine.node, o)
            )
            overlay.view[:] = others[: view_size(len(others) + 1)]


WAYS = (
    ("cubecast, direct up to 15", "cubecast", {"direct": "15"}),
    ("cubecast, along trees", "cubecast", {"direct": "0"}),
    ("floods, fixed point", "simple-flood", {"period": "100000000", "repair": "false"}),
    ("CrosspostFlood, fixed point", "crosspost", {"period": "100000000", "repair": "false"}),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--payloads", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--sources", type=int, default=1, help="members that publish, per topic and those like it")
    options = parser.parse_args(arguments)
    drawn = draw_members(options.seed)
    if len(np.unique(drawn.members)) < SHAPE.processes:
        parser.error(f"with seed {options.seed} somebody subscribes to nothing; take another")
    print(f"64 nodes, {drawn.topics} topics of {drawn.sizes.mean():.1f} members, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "table.parquet"
        topics = np.repeat(np.arange(drawn.topics), drawn.sizes)
        names = {"user": [f"u{one:02}" for one in drawn.members], "topic": [f"t{one:02}" for one in topics]}
        pq.write_table(pa.table(names), table)
        for payload in options.payloads:
            for name, protocol, settings in WAYS:
                found = send(protocol, table, drawn, payload, options.sources, settings)
                print(
                    f"{payload:>5} bytes, {name:27} connections {found['connections']:.1f} (most {found['most']:.0f}), "
                    f"bytes per delivery {found['bytes']:7.0f}  copies {found['copies']:.2f}, "
                    f"{found['shared']:.1%} go where another topic's goes  {found['deliveries']:,} deliveries",
                    flush=True,
                )


if __name__ == "__main__":
    main()
