"""`cubecast workload`: subscription tables from logs, or made up."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from cubecast.cli.common import json_option, print_json, seed_option, spark_options
from cubecast.cli.screen import output, stages
from cubecast.errors import BadInput

out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="New directory for the Parquet table."
)
UNIVERSE_EXAMPLE = """
\b
Example:
  cubecast workload universe edits.csv --item page --seeds 20 --out out/w8
"""
SYNTHETIC_EXAMPLE = """
\b
Example:
  cubecast workload synthetic --users 10000 --topics 200 --out out/grid
"""
MATCHED_EXAMPLE = """
\b
Example:
  cubecast workload matched --users 1381 --topics 576 --out out/w8
"""
OVERLAYS_EXAMPLE = """
\b
Example:
  cubecast workload overlays out/w8 --rounds 10 --out out/overlays
"""
PUBLICATIONS_EXAMPLE = """
\b
Example:
  cubecast workload publications --topics 128 --exponent 0.825 --out out/load
"""


@click.group()
def workload() -> None:
    """Subscription workloads: from real logs, or synthetic with the same shape.

    Each starts Spark, which takes 10 to 30 s; what is wrong with the options or the output is said before.
    """


@contextmanager
def _spark_for(
    out: Path, master: str | None, conf: Iterable[tuple[str, str]]
) -> Iterator[tuple[Any, Callable[[str], None]]]:
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.staging import require_new

    require_new(out)
    with stages("starting Spark") as tell:
        yield spark_session(master, conf), tell


@workload.command(epilog=UNIVERSE_EXAMPLE)
@click.argument("log", type=click.Path(path_type=Path))
@out_option
@click.option("--seeds", default=100, show_default=True, help="Random topics the universe grows from.")
@click.option("--least", default=30, show_default=True, help="Topics with fewer subscribers are dropped.")
@click.option("--extra", type=click.Choice(["random", "own"]), default="random", show_default=True)
@click.option("--members", type=click.Choice(["seed", "all"]), default="seed", show_default=True)
@click.option("--candidates", default=1, show_default=True, help="Make so many, keep the median in topics per user.")
@click.option("--user", default="user", show_default=True, help="Column with the user.")
@click.option("--item", default="item", show_default=True, help="Column with the item subscribed to.")
@click.option("--skip-malformed", "skip", is_flag=True, help="Leave out rows that are no pair; say how many.")
@click.option("--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="Default: by the file's name.")
@seed_option
@json_option
@spark_options
def universe(
    log: Path, out: Path, user: str, item: str, skip: bool, kind: str | None, seed: int, as_json: bool,
    master: str | None, conf: Iterable[tuple[str, str]], seeds: int, least: int, extra: str, members: str,
    candidates: int,
) -> None:  # fmt: skip
    """A self-contained universe of topics and users from a subscription LOG (user, item[, time])."""
    from cubecast.pipeline.workloads.profile import build_universe
    from cubecast.pipeline.workloads.table import LogFormat
    from cubecast.pipeline.workloads.universe import Extra, Members, UniverseRules

    rules = UniverseRules(seeds, least, Extra(extra), Members(members))
    source = LogFormat(log, user, item, kind, skip)
    source.check()
    with _spark_for(out, master, conf) as (spark, tell):
        tell(f"growing the universe of {log}")
        kept, skipped, found = build_universe(spark, source, rules, seed, candidates, out)
    show({"seed": kept, "out": str(out), "skipped": skipped, **found.to_json()}, as_json)


@workload.command(epilog=SYNTHETIC_EXAMPLE)
@out_option
@click.option("--users", default=100, show_default=True)
@click.option("--topics", default=16, show_default=True)
@click.option("--points-exponent", default=2.0, show_default=True, help="Power law of identifiers per topic.")
@click.option("--most-points", default=1000, show_default=True, help="Most identifiers of a topic.")
@click.option("--radius-exponent", default=2.5, show_default=True, help="Power law of interest radii.")
@click.option("--least-radius", default=0.01, show_default=True, help="Of a square with side 1.")
@click.option("--most-radius", default=0.5, show_default=True)
@seed_option
@json_option
@spark_options
def synthetic(
    out: Path, users: int, topics: int, points_exponent: float, most_points: int, radius_exponent: float,
    least_radius: float, most_radius: float, seed: int, as_json: bool, master: str | None,
    conf: Iterable[tuple[str, str]],
) -> None:  # fmt: skip
    """Synthetic subscriptions by the grid model: users near each other like the same topics."""
    from cubecast.pipeline.workloads.profile import build_synthetic
    from cubecast.pipeline.workloads.synthetic import GridModel

    model = GridModel(users, topics, points_exponent, most_points, radius_exponent, least_radius, most_radius)
    with _spark_for(out, master, conf) as (spark, tell):
        tell("placing users and topics")
        found = build_synthetic(spark, model, seed, out)
    show({"seed": seed, "out": str(out), **found.to_json()}, as_json)


@workload.command(epilog=MATCHED_EXAMPLE)
@out_option
@click.option("--users", default=1381, show_default=True)
@click.option("--topics", default=576, show_default=True)
@click.option("--like", type=click.Choice(["wikipedia", "livejournal"]), default="wikipedia", show_default=True)
@click.option("--largest", type=int, help="Subscribers of the largest topic; without, as --like has it.")
@click.option("--communities", type=int, help="Groups of users with common interests; without, as --like has it.")
@click.option("--share", type=float, help="Chance of a subscriber to be of its topic's community.")
@seed_option
@json_option
@spark_options
def matched(
    out: Path, users: int, topics: int, like: str, largest: int | None, communities: int | None, share: float | None,
    seed: int, as_json: bool, master: str | None, conf: Iterable[tuple[str, str]],
) -> None:  # fmt: skip
    """Synthetic subscriptions of a given size, with the shape of a real log's universe."""
    from cubecast.pipeline.workloads.profile import build_matched
    from cubecast.pipeline.workloads.synthetic import LIKE, Shape

    usual = LIKE[like]
    shape = Shape(
        users,
        topics,
        usual[0] if largest is None else largest,
        usual[1],
        usual[2],
        usual[3] if communities is None else communities,
        usual[4] if share is None else share,
    )
    with _spark_for(out, master, conf) as (spark, tell):
        tell("drawing subscribers")
        found = build_matched(spark, shape, seed, out)
    show({"seed": seed, "out": str(out), **found.to_json()}, as_json)


@workload.command(epilog=OVERLAYS_EXAMPLE)
@click.argument("table", type=click.Path(path_type=Path))
@out_option
@click.option("--rounds", default=10, show_default=True)
@click.option("--ttl", default=4, show_default=True, help="Hops of a walk after the first.")
@click.option("--loss", default=0.0, show_default=True, help="Share of messages that are lost.")
@click.option("--repair/--no-repair", default=True, show_default=True, help="Keep links to those nobody points to.")
@click.option("--view", type=int, help="Links in every topic; without, as many as connect it (ln m + 4.6).")
@click.option("--measured", default=1000, show_default=True, help="Topics whose graphs are measured.")
@click.option("--starts", default=16, show_default=True, help="Members of each from which ways are measured.")
@click.option("--every-round", is_flag=True, help="Count links after every round, not only at both ends.")
@seed_option
@json_option
@spark_options
def overlays(
    table: Path, out: Path, rounds: int, ttl: int, loss: float, repair: bool, view: int | None, measured: int,
    starts: int, every_round: bool, seed: int, as_json: bool, master: str | None, conf: Iterable[tuple[str, str]],
) -> None:  # fmt: skip
    """StaN over a subscription TABLE of any size: links before and after, and what the overlays are like."""
    from cubecast.experiments.stan.overlays import Rounds, write_overlays
    from cubecast.report.tables import overlays_table

    rules = Rounds(rounds, ttl, loss, repair, seed, view, measured, starts, every_round)
    if not table.exists():
        raise BadInput(f"there is no table {table}")
    with _spark_for(out, master, conf) as (spark, tell):
        facts = write_overlays(spark, table, rules, out, tell)
    facts = {"seed": seed, "out": str(out), **facts}
    if as_json:
        print_json(facts)
        return
    output.print(overlays_table(facts))
    output.print(f"seed {seed} · written to {out}")


@workload.command(epilog=PUBLICATIONS_EXAMPLE)
@out_option
@click.option("--publications", default=16384, show_default=True)
@click.option("--topics", default=128, show_default=True)
@click.option("--publishers", default=256, show_default=True)
@click.option("--window", default=32000.0, show_default=True, help="Publications fall into [0, window).")
@click.option("--exponent", type=float, help="Of Zipf's law; 0 is uniform; without, as measured in the web.")
@seed_option
@json_option
@spark_options
def publications(
    out: Path, publications: int, topics: int, publishers: int, window: float, exponent: float | None, seed: int,
    as_json: bool, master: str | None, conf: Iterable[tuple[str, str]],
) -> None:  # fmt: skip
    """A load of publications over topics by Zipf's law: when, by whom, on the topic of which rank."""
    from cubecast.pipeline.workloads.profile import build_publications
    from cubecast.pipeline.workloads.zipf import WEB_EXPONENT, ZipfLoad

    load = ZipfLoad(publications, topics, publishers, window, WEB_EXPONENT if exponent is None else exponent)
    with _spark_for(out, master, conf) as (spark, tell):
        tell("drawing publications")
        busiest = build_publications(spark, load, seed, out)
    facts = {"seed": seed, "out": str(out), "publications": publications, "busiest_topic_share": busiest}
    if as_json:
        print_json(facts)
    else:
        output.print(f"{publications:,} publications, {busiest:.1%} of them on the busiest topic")
        output.print(f"seed {seed} · written to {out}")


def show(facts: dict[str, Any], as_json: bool) -> None:
    from cubecast.report.tables import degrees_table

    if as_json:
        print_json(facts)
        return
    output.print(degrees_table(facts))
    if facts.get("skipped"):
        output.print(f"{facts['skipped']:,} rows of the log are no pair and were left out")
    output.print(f"seed {facts['seed']} · written to {facts['out']}")
