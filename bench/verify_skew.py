"""Seconds for each delivery verified: skewed traces beside an even one of the same size, in one run.

    python -m bench.verify_skew --deliveries 1e7
    python -m bench.verify_skew --deliveries 5e6 --only mixed        the even trace, and its rows by time

Mixed is the even trace with rows of all nodes in every row group: beyond four million they are shuffled first.
"""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from bench.processes import PeakMemory, own_seconds
from bench.skewed_traces import mix, shapes, write

MIXED = "mixed: the even one's rows by time"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=float, default=1e6)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD", help="beside the even one, those so named")
    arguments = parser.parse_args()
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.verify import verify

    spark = spark_session()
    even = None
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    first, *others = shapes(int(arguments.deliveries))
    others = [one for one in [*others, replace(first, name=MIXED)] if any(word in one.name for word in arguments.only)]
    for number, shape in enumerate([shapes(100_000)[0], first, *others]):
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch) / "trace"
            write(directory, shape)
            if shape.name == MIXED:
                mix(directory)
            with PeakMemory() as memory:
                used, began = own_seconds(), perf_counter()
                (run,) = verify(spark, [directory]).runs
                taken, used = perf_counter() - began, own_seconds() - used
        assert run.verdict == "VALID", (shape.name, run.verdict, run.witnesses[:3])
        if not number:  # starts the workers
            continue
        each = used / shape.deliveries
        even = even or each
        print(
            f"{shape.name:54} {shape.deliveries:>11,} deliveries  {taken:6.1f} s, processor {used:6.1f} s: "
            f"{each / even:4.2f} × the even trace's for each, peak {memory}",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
