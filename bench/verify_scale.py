"""Deliveries verified per second: the Spark verifier beside DuckDB and Polars on the same Parquet files.

    python -m bench.verify_scale                      10^6 and 10^7 deliveries
    python -m bench.verify_scale --deliveries 1e8     as many as you like; --peers-up-to bounds the joins of the peers

Spark does its whole job: K0 to K3, P1 to P8 and P11, dependencies rebuilt from positions. The peers are given the
dependencies that the publishers claim and check with one join that each lies before its effect at every node (FIFO and
causal order), nothing else. Starting Spark and its first Python workers is excluded and stated. Planted faults must be
found by all three.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.processes import PeakMemory
from bench.synthetic_traces import Fault, Shape, write

FAULTS = ("swap", "lose", "repeat")
BYTES_PER_DELIVERY = 12
"""More than the files really take."""


@dataclass(frozen=True)
class Measured:
    """One tool on one trace."""

    tool: str
    deliveries: int
    seconds: float
    nodes_blamed: frozenset[int]
    memory: str

    @property
    def rate(self) -> float:
        return self.deliveries / self.seconds


def measure(tool: str, shape: Shape, check: Callable[[], frozenset[int]]) -> Measured:
    with PeakMemory() as memory:
        started = perf_counter()
        blamed = check()
        seconds = perf_counter() - started
    return Measured(tool, shape.deliveries, seconds, blamed, str(memory))


def with_spark(spark: Any, directory: Path) -> frozenset[int]:
    from cubecast.pipeline.verify import verify

    (run,) = verify(spark, [directory]).runs
    return frozenset(finding["node"] for finding in run.witnesses)


JOIN = """
with rows as (select node, seq, kind, source::bigint * 1000000000 + counter as message, counter, deps
              from read_parquet('{files}') where kind in ('deliver', 'publish')),
     delivered as (select node, message, seq from rows where kind = 'deliver'),
     needs as (select message, unnest(deps).source::bigint * 1000000000 + unnest(deps).counter as cause
               from rows where kind = 'publish'
               union all select message, message - 1 from rows where kind = 'publish' and counter > 1)
select distinct effect.node
from delivered effect join needs using (message)
left join delivered cause on cause.node = effect.node and cause.message = needs.cause
where cause.seq is null or cause.seq > effect.seq
"""


def with_duckdb(directory: Path, memory: str) -> frozenset[int]:
    """Beyond `memory` it writes to the disk beside the trace."""
    import duckdb

    with duckdb.connect(
        config={"memory_limit": memory, "temp_directory": str(directory.parent / "duckdb")}
    ) as connection:
        found = connection.execute(JOIN.format(files=directory / "*.parquet")).fetchall()
    return frozenset(node for (node,) in found)


def with_polars(directory: Path) -> frozenset[int]:
    import polars as pl

    message = (pl.col("source").cast(pl.Int64) * 1_000_000_000 + pl.col("counter")).alias("message")
    rows = pl.scan_parquet(str(directory / "*.parquet"))
    delivered = rows.filter(pl.col("kind") == "deliver").select("node", message, "seq")
    published = rows.filter(pl.col("kind") == "publish")
    claimed = published.select(message, pl.col("deps")).explode("deps").drop_nulls("deps")
    cause = pl.col("deps").struct.field("source").cast(pl.Int64) * 1_000_000_000 + pl.col("deps").struct.field(
        "counter"
    )
    before = published.filter(pl.col("counter") > 1).select(message, (message - 1).alias("cause"))
    needs = pl.concat([claimed.select("message", cause.alias("cause")), before])
    pairs = delivered.join(needs, on="message").join(
        delivered.rename({"message": "cause", "seq": "cause_seq"}), on=["node", "cause"], how="left"
    )
    wrong = pairs.filter(pl.col("cause_seq").is_null() | (pl.col("cause_seq") > pl.col("seq")))
    found = wrong.select("node").unique().collect(engine="streaming")
    return frozenset(found["node"].to_list())


def run_size(spark: Any, deliveries: int, peers: Sequence[str], memory: str = "8GB") -> list[Measured]:
    shape = Shape.of(deliveries)
    faults = tuple(Fault(shape.nodes // 2 + place, kind) for place, kind in enumerate(FAULTS))
    with tempfile.TemporaryDirectory() as scratch:
        needed = shape.deliveries * BYTES_PER_DELIVERY
        if shutil.disk_usage(scratch).free < needed:
            sys.exit(f"{scratch} lacks the {needed / 2**30:.1f} GiB that {shape.deliveries} deliveries may take")
        directory = Path(scratch) / "trace"
        write(directory, shape, faults)
        found = [measure("Spark (all promises)", shape, lambda: with_spark(spark, directory))]
        if "duckdb" in peers:
            found.append(measure("DuckDB (one join)", shape, lambda: with_duckdb(directory, memory)))
        if "polars" in peers:
            found.append(measure("Polars (one join)", shape, lambda: with_polars(directory)))
    expected = frozenset(fault.node for fault in faults)
    for one in found:
        # The peers' join does not see a message that is there twice.
        sought = expected if one.tool.startswith("Spark") else expected - {faults[2].node}
        assert one.nodes_blamed >= sought, f"{one.tool} blames {one.nodes_blamed}, planted in {sought}"
    return found


def show(found: list[Measured]) -> None:
    base = found[0]
    for one in found:
        ratio = f"{one.seconds / base.seconds:5.2f} × Spark's time"
        print(
            f"{one.deliveries:>12,} deliveries  {one.tool:<22} {one.seconds:8.2f} s  {one.rate / 1e6:6.2f} M/s  "
            f"{ratio}  peak {one.memory} (this process + below)  faults found"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", nargs="*", type=float, default=[1e6, 1e7])
    parser.add_argument("--peers-up-to", type=float, default=2e7, help="beyond this many the peers' joins are left out")
    parser.add_argument("--peers", nargs="*", default=["duckdb", "polars"], choices=["duckdb", "polars"])
    parser.add_argument("--peer-memory", default="8GB", help="of DuckDB; the rest goes to the disk")
    arguments = parser.parse_args()
    from cubecast.pipeline.session import spark_session

    started = perf_counter()
    spark = spark_session()
    run_size(spark, 100_000, ())
    print(f"Starting Spark, its Python workers and a first small trace: {perf_counter() - started:.1f} s, not counted.")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    for deliveries in arguments.deliveries:
        peers = arguments.peers if deliveries <= arguments.peers_up_to else []
        show(run_size(spark, int(deliveries), peers, arguments.peer_memory))
    spark.stop()


if __name__ == "__main__":
    main()
