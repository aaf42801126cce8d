"""How fast the simulator is: packet events per second beside a bare event queue on the same machine, in one run.

`everybody publishes once` with acknowledgements, tracing off, one process per size so that peak memory can be told. The
yardstick is a binary heap of tuples, the loop every event simulator in Python has at its core; the ratio says how much
the protocol, the network model and the statistics add, whatever the machine is doing meanwhile. `--event-by-event` runs
the same the slow way, without windows (`sim/windows.py`).
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from heapq import heapify, heapreplace
from random import Random
from time import process_time

from cubecast.sim.config import SimConfig
from cubecast.sim.run import prepare


def heap_events_per_second(events: int = 200_000, outstanding: int = 100_000) -> float:
    rng = Random(1)
    heap = [(rng.random() * 100, k, 0, None) for k in range(outstanding)]
    heapify(heap)
    started = process_time()
    for k in range(outstanding, outstanding + events):
        heapreplace(heap, (heap[0][0] + rng.random() * 100, k, 0, None))
    return events / (process_time() - started)


def measure(nodes: int, *, windows: bool) -> dict[str, float]:
    """One run between two readings of the yardstick."""
    before = heap_events_per_second()
    simulation = prepare(SimConfig("vcube-ps", nodes=nodes, publishers="100%"))
    if not windows:
        # A run that may have to stop at some time looks at every event.
        simulation.world.run = partial(simulation.world.run, until=sys.float_info.max)
    started = process_time()
    figures = simulation.run()
    seconds = process_time() - started
    yardstick = (before + heap_events_per_second()) / 2
    return {
        "nodes": nodes,
        "events": figures["events"],
        "seconds": seconds,
        "events_per_second": figures["events"] / seconds,
        "heap_events_per_second": yardstick,
        "share_of_heap_speed": figures["events"] / seconds / yardstick,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[256, 512, 1024])
    parser.add_argument("--event-by-event", action="store_true", help="not window by window")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, windows=not options.event_by_event)))
        return
    headings = ("events", "CPU s", "events/s", "heap/s", "ratio", "µs/event", "MiB")
    print(f"{'nodes':>6}", *(f"{heading:>10}" for heading in headings))
    for nodes in options.nodes:
        command = [sys.executable, "-m", "bench.sim_speed", "--one", str(nodes)]
        command += ["--event-by-event"] if options.event_by_event else []
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        cells = (
            f"{row['events']:,}",
            f"{row['seconds']:.2f}",
            f"{row['events_per_second']:,.0f}",
            f"{row['heap_events_per_second']:,.0f}",
            f"{row['share_of_heap_speed']:.2f}",
            f"{1e6 / row['events_per_second']:.2f}",
            f"{row['peak_mib']:.0f}",
        )
        print(f"{nodes:>6}", *(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
