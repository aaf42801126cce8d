"""A small random configuration from a seed: every dimension of a run is drawn, so that a sweep of seeds is a swarm."""

import json
import sys
from random import Random

from cubecast.check import Report, check_trace
from cubecast.sim.config import SimConfig
from cubecast.sim.recorder import Recorder
from cubecast.sim.run import prepare, run_info
from cubecast.trace.event import Event
from cubecast.trace.reader import Trace

DELAYS = (
    "constant:100",
    "constant:1",
    "normal:100:25",
    "normal:30:60",
    "uniform:1:200",
    "quantiles:0=1,0.9=20,1=900",
    "planetlab",
)


def draw_config(seed: int) -> SimConfig:
    """Static membership, 2 to 64 nodes."""
    rng = Random(f"random-runs/{seed}")
    nodes = 2 ** rng.choice((1, 2, 3, 3, 4, 4, 5, 6))
    protocol = rng.choice(("vcube-ps", "vcube-ps", "srpt", "srpt-b"))
    workload = rng.choice(("uniform", "uniform", f"poisson:{rng.choice((20, 200))}", f"respond:{rng.randint(1, 3)}:80"))
    budget = 48 if nodes <= 16 else 24  # publications, so that a run stays a matter of milliseconds
    publishers = rng.randint(1, min(nodes, budget))
    subscribers = rng.randint(publishers, nodes)
    messages = rng.randint(1, max(1, min(8, budget // publishers)))
    settings = {"brokers": str(rng.randint(1, nodes))} if protocol == "srpt-b" else {}
    return SimConfig(
        protocol,
        nodes=nodes,
        publishers=str(publishers),
        subscribers=str(subscribers),
        messages=messages,
        window=rng.choice((1.0, 100.0, 1000.0)),
        workload=workload,
        topics=rng.choice((1, 1, 2)),
        propagation=rng.choice(DELAYS),
        processing=rng.choice((0.0, 1.0)),
        transmission=rng.choice((0.0, 1.0, 5.0)),
        fifo_links=rng.random() < 0.5,
        payload_bytes=rng.choice((0, 50)),
        coded=rng.random() < 0.5,
        queued_control=rng.random() < 0.7,
        seed=seed,
        settings=settings,
    )


PROMISED_WHEN_STATIC = (
    *("K0", "K1", "K2", "K3", "P1", "P1b", "P2", "P3", "P4", "P4u", "P5", "P6"),
    *("P7", "P8", "P11", "P12", "P13"),
)
"""With nobody joining, leaving or failing, VCube-PS and the baselines keep every promise but total order."""


def check_seed(seed: int) -> Report:
    config = draw_config(seed)
    events: list[Event] = []
    simulation = prepare(
        config, Recorder(events, packets=seed % 4 == 0), careful=True
    )  # rows of receptions are for P12
    simulation.run()
    held = [line for machine in simulation.world.machines.values() for line in machine.waiting()]
    assert not held, f"seed {seed}: at the end of the run {held[0]}"
    return check_trace(Trace(run_info(config), events), PROMISED_WHEN_STATIC)


def main() -> None:
    """`PYTHONPATH=tests python -m support.random_runs SEED`: one run again, its configuration and its verdict."""
    seed = int(sys.argv[1])
    print(draw_config(seed))
    print(json.dumps(check_seed(seed).to_json(), indent=2))


if __name__ == "__main__":
    main()
