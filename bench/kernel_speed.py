"""How fast the causal broadcast kernel is: packet events per second of CPU, beside the machine it mirrors.

Every node publishes once within 500 units of time, propagation normal (100, 25). That both do the same, event for
event, is the business of the tests; here the machine runs at a size it can manage, the kernel at that and larger ones.
"""

import argparse
from collections.abc import Sequence
from time import process_time

import numpy as np

from cubecast.sim.config import SimConfig
from cubecast.sim.kernels.causal_broadcast import CausalKernel
from cubecast.sim.run import prepare

REPEATS = 9


def kernel_speed(nodes: int, aggregate: bool) -> tuple[int, float]:
    """Packets, and the best seconds of several repeats; making the tables and taking them down included."""
    rng = np.random.default_rng(1)
    times, delays = rng.uniform(0, 500, nodes), rng.normal(100, 25, (nodes, nodes)).clip(1)
    kernel, best = CausalKernel(nodes, aggregate), float("inf")
    for _ in range(REPEATS):
        started = process_time()
        packets = kernel.simulate(times, delays).packets
        best = min(best, process_time() - started)
    return packets, best


def machine_speed(nodes: int, aggregate: bool) -> tuple[int, float]:
    config = SimConfig(
        "causal-broadcast",
        nodes=nodes,
        publishers="100%",
        window=500.0,
        propagation="normal:100:25",
        settings={"aggregation": "on" if aggregate else "off"},
    )
    simulation = prepare(config)
    started = process_time()
    packets = simulation.run()["packets"]
    return packets, process_time() - started


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--machine", type=int, default=128, help="size at which the machine is measured")
    options = parser.parse_args(arguments)
    kernel_speed(8, True)  # compiles
    print(f"{'':30} {'packets':>10} {'CPU s':>8} {'packets/s':>12} {'ratio':>7}")
    for aggregate in (False, True):
        mode = "aggregation" if aggregate else "no aggregation"
        packets, seconds = machine_speed(options.machine, aggregate)
        machine = packets / seconds
        print(f"{f'machine {options.machine}, {mode}':30} {packets:>10,} {seconds:>8.3f} {machine:>12,.0f} {1:>7}")
        for nodes in (options.machine, *options.nodes):
            packets, seconds = kernel_speed(nodes, aggregate)
            speed = packets / seconds
            line = f"{f'kernel {nodes}, {mode}':30} {packets:>10,} {seconds:>8.3f} {speed:>12,.0f}"
            print(f"{line} {speed / machine:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
