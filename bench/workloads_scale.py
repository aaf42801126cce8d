"""Universe extraction at scale: rows of a subscription log per second, beside DuckDB.

A synthetic log of about `--rows` (user, item) pairs is written once; timed are reading it, growing a universe of
`--seeds` topics and writing that, then profiling it. The session's start is not counted. Beside the wall time stands
the core time of this process, the JVM and its workers, which says more on a machine that is not quiet. Beside it stands
DuckDB, where it is installed (`cubecast[bench]`), with the same query from the same seed topics; whom each member adds
it draws by its own hash, so that its universe is of about the same size, not the same.

    python -m bench.workloads_scale --rows 100000000
    python -m bench.workloads_scale --rows 100000000 --log out/log    the log is kept, and read if it is there
"""

import argparse
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.processes import PeakMemory, own_seconds
from cubecast.pipeline.session import spark_session
from cubecast.pipeline.workloads.profile import profile, write_subscriptions
from cubecast.pipeline.workloads.synthetic import GridModel, synthetic_subscriptions, truncated_pareto
from cubecast.pipeline.workloads.table import LogFormat, read_log
from cubecast.pipeline.workloads.universe import UniverseRules, seed_topics, universe
from cubecast.pipeline.workloads.zipf import draw

SEED = 1
LEAST = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--log", type=Path, help="directory that keeps the log for another run")
    options = parser.parse_args()
    spark = spark_session(conf=[("spark.sql.shuffle.partitions", "8")])
    with tempfile.TemporaryDirectory() as place:
        log = options.log or Path(place) / "log.parquet"
        if not (log / "_SUCCESS").exists():
            with Stage("log made and written") as stage:
                stage.rows = options.rows
                raw_log(spark, options.rows).write.mode("overwrite").parquet(str(log))
        rows = spark.read.parquet(str(log)).count()
        print(f"log: {rows:,} rows, {log_size(log) / 1e6:.0f} MB of Parquet")
        with PeakMemory() as memory:
            with Stage("universe extracted and written") as stage:
                pairs = read_log(spark, LogFormat(log))
                found = universe(pairs.found, UniverseRules(options.seeds, LEAST), SEED)
                inside = write_subscriptions(found, Path(place) / "universe")
                stage.rows = rows
            with Stage("its profile") as stage:
                shape = profile(inside, SEED)
                stage.rows = shape.subscriptions
        seeds = [row.topic for row in seed_topics(pairs.found, options.seeds, SEED).collect()]
        pairs.release()
        print(f"  peak memory {memory} (this process + JVM and workers)")
        print(f"  {shape.topics:,} topics, {shape.users:,} users, {shape.subscriptions:,} subscriptions")
        beside_duckdb(log, rows, seeds, Path(place) / "duckdb.parquet")
        grid(spark, Path(place))
    spark.stop()


UNIVERSE = """
CREATE TEMP TABLE pairs AS SELECT DISTINCT log.user, log.item FROM read_parquet($log) AS log
  SEMI JOIN (SELECT DISTINCT user FROM read_parquet($log) SEMI JOIN seeds USING (item)) AS first USING (user);
CREATE TEMP TABLE chosen AS SELECT item FROM seeds
  UNION SELECT arg_min(item, hash(user, item)) FROM pairs GROUP BY user;
CREATE TEMP TABLE inside AS SELECT user, item FROM pairs SEMI JOIN chosen USING (item);
CREATE TEMP TABLE universe AS SELECT user, item AS topic FROM inside
  SEMI JOIN (SELECT item FROM inside GROUP BY item HAVING count(*) >= $least) AS kept USING (item);
"""


def beside_duckdb(log: Path, rows: int, seeds: list[str], out: Path) -> None:
    try:
        import duckdb
    except ImportError:
        print("DuckDB is not installed: nothing beside it")
        return
    with duckdb.connect() as connection, Stage("the same by DuckDB") as stage:
        stage.rows = rows
        connection.execute("CREATE TEMP TABLE seeds AS SELECT unnest($seeds) AS item", {"seeds": seeds})
        for statement in UNIVERSE.split(";\n"):
            if statement.strip():
                known = {"log": f"{log}/*.parquet", "least": LEAST}
                used = {name: one for name, one in known.items() if f"${name}" in statement}
                connection.execute(statement, used)
        connection.execute(f"COPY universe TO '{out}' (FORMAT parquet)")
        sizes = "SELECT count(DISTINCT topic), count(DISTINCT user), count(*) FROM universe"
        ((topics, users, subscriptions),) = connection.execute(sizes).fetchall()
    print(f"  {topics:,} topics, {users:,} users, {subscriptions:,} subscriptions")


def raw_log(spark: SparkSession, rows: int) -> DataFrame:
    """Pairs whose users and items are both as uneven as a power law makes them; some repeat, as in a real log."""
    users, items = max(rows // 7, 10), max(rows // 50, 10)
    name = F.col("id")
    user = F.floor(truncated_pareto(draw(SEED, "user", name), 0.7, 1.0, float(users)))
    item = F.floor(truncated_pareto(draw(SEED, "item", name), 0.8, 1.0, float(items)))
    return spark.range(rows).select(
        F.concat(F.lit("user"), user).alias("user"), F.concat(F.lit("item"), item).alias("item"), name.alias("time")
    )


def grid(spark: SparkSession, place: Path) -> None:
    model = GridModel(users=200_000, topics=2_000)
    with Stage("grid model, subscriptions made and written") as stage:
        stage.rows = write_subscriptions(synthetic_subscriptions(spark, model, SEED), place / "grid").count()


class Stage:
    """One timed stage, told when it ends."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.rows = 0

    def __enter__(self) -> "Stage":
        self._wall, self._cores = time.perf_counter(), own_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cores = time.perf_counter() - self._wall, own_seconds() - self._cores
        rate = f"{self.rows / wall:,.0f} rows/s"
        print(f"{self.what}: {self.rows:,} rows in {wall:.1f} s, {cores:.1f} core seconds, {rate}", flush=True)


def log_size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


if __name__ == "__main__":
    main()
