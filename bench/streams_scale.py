"""Thousands of simulated processes: they join, a stream flows, a fifth of them fail at once, and it goes on.

    python -m bench.streams_scale                    1,000, 3,000 and 10,000 processes, a few minutes
    python -m bench.streams_scale --nodes 2000       other sizes
    python -m bench.streams_scale --churn            ten minutes of 3 and 5 % churn per minute among 512

Everybody left must have everything, or the program ends with 1. Copies and bytes per message and process must not grow
with their number, and depth with its logarithm only: the last column would show it.
"""

import argparse
import sys
from math import log2
from time import process_time

from cubecast.experiments.brisa import churn
from cubecast.experiments.brisa.scene import SECOND, Scene, mean, quantile

SIZES = (1_000, 3_000, 10_000)
MESSAGES = 20
JOIN_GAP = 2.0
LOST = 0.2


def measure(nodes: int) -> bool:
    began = process_time()
    scene = Scene("brisa", nodes, seed=1)
    scene.gather(gap=JOIN_GAP)
    joined = process_time()
    source = scene.source()
    scene.run(scene.stream(source, 1) + 3 * SECOND)  # the flood
    scene.forget_traffic()
    scene.run(scene.stream(source, MESSAGES) + SECOND)
    streamed = process_time()
    copies, size = sum(scene.copies) / MESSAGES / (nodes - 1), mean(scene.bytes_in)
    depths = [flow.depth for flow in scene.flows().values()]
    others = [node for node in scene.world.present() if node != source]
    for victim in scene.rng.sample(others, int(LOST * nodes)):
        scene.world.crash(victim)
    end = scene.stream(source, MESSAGES) + 10 * SECOND
    scene.run(end)
    have = [flow.have for flow in scene.flows().values()]
    whole = sum(one == 1 + 2 * MESSAGES for one in have)
    healed = process_time()
    print(
        f"{nodes:7,}  joined in {joined - began:5.1f} s, {MESSAGES} messages {streamed - joined:5.1f} s, "
        f"a fifth lost and {MESSAGES} more {healed - streamed:5.1f} s of a core\n"
        f"         {copies:.3f} copies of a message per process; {size / MESSAGES:,.0f} bytes per process and message, "
        f"keep-alives too\n"
        f"         depth {quantile(depths, 0.5)} / {quantile(depths, 0.99)} / {max(depths)}, "
        f"{max(depths) / log2(nodes):.2f} × log₂ N; {whole:,} of {len(have):,} left have everything",
        flush=True,
    )
    return bool(whole == len(have))


def ten_minutes(percent: int) -> bool:
    (tree, _) = churn.points((512,), (percent,), range(1, 2), float(churn.MINUTES), SECOND)
    began = process_time()
    figures = churn.run(tree)
    print(
        f"512 processes, {percent} % churn per minute for {churn.MINUTES} minutes: {process_time() - began:.1f} s of a "
        f"core, {figures['events']:,} events; {figures['lost']:.1f} parents lost per minute, "
        f"{figures['soft']:.1f} % repaired softly; everybody left has everything: {figures['complete']}",
        flush=True,
    )
    return bool(figures["complete"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, action="append", help="a size instead of the usual ones")
    parser.add_argument("--churn", action="store_true")
    options = parser.parse_args()
    done = [ten_minutes(percent) for percent in (3, 5)] if options.churn else map(measure, options.nodes or SIZES)
    sys.exit(0 if all([*done]) else 1)


if __name__ == "__main__":
    main()
