"""`cubecast workload`: subscription tables from logs, or made up."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from cubecast.cli.spark_options import spark_options

if TYPE_CHECKING:
    from cubecast.pipeline.workloads.profile import Profile

SEED = 1


@click.group()
def workload() -> None:
    """Subscription workloads: from real logs, or synthetic with the same shape."""


@workload.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the Parquet table.")
@click.option("--seeds", default=100, show_default=True, help="Random topics the universe grows from.")
@click.option("--least", default=30, show_default=True, help="Topics with fewer subscribers are dropped.")
@click.option("--extra", type=click.Choice(["random", "own"]), default="random", show_default=True)
@click.option("--members", type=click.Choice(["seed", "all"]), default="seed", show_default=True)
@click.option("--candidates", default=1, show_default=True, help="Make so many, keep the median in topics per user.")
@click.option("--user", default="user", show_default=True, help="Column with the user.")
@click.option("--item", default="item", show_default=True, help="Column with the item subscribed to.")
@click.option("--format", "kind", type=click.Choice(["csv", "json", "parquet"]), help="Default: by the file's name.")
@click.option("--seed", default=SEED, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@spark_options
def universe(
    log: Path, out: Path, user: str, item: str, kind: str | None, seed: int, as_json: bool, master: str | None,
    conf: Iterable[tuple[str, str]], seeds: int, least: int, extra: str, members: str, candidates: int,
) -> None:  # fmt: skip
    """A self-contained universe of topics and users from a subscription LOG (user, item[, time]).

    Example: cubecast workload universe edits.csv --item page --seeds 20 --out out/w8
    """
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.workloads.build import build_universe
    from cubecast.pipeline.workloads.logs import LogFormat
    from cubecast.pipeline.workloads.universe import Extra, Members, UniverseRules

    rules = UniverseRules(seeds, least, Extra(extra), Members(members))
    with Console(stderr=True).status("growing the universe"):
        kept, found = build_universe(
            spark_session(master, conf), LogFormat(log, user, item, kind), rules, seed, candidates, out
        )
    show(found, {"seed": kept, "out": str(out), "least_subscribers": least, "seeds": seeds}, as_json)


@workload.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the Parquet table.")
@click.option("--users", default=100, show_default=True)
@click.option("--topics", default=16, show_default=True)
@click.option("--points-exponent", default=2.0, show_default=True, help="Power law of identifiers per topic.")
@click.option("--most-points", default=1000, show_default=True, help="Most identifiers of a topic.")
@click.option("--radius-exponent", default=2.5, show_default=True, help="Power law of interest radii.")
@click.option("--least-radius", default=0.01, show_default=True, help="Of a square with side 1.")
@click.option("--most-radius", default=0.5, show_default=True)
@click.option("--seed", default=SEED, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@spark_options
def synthetic(
    out: Path, users: int, topics: int, points_exponent: float, most_points: int, radius_exponent: float,
    least_radius: float, most_radius: float, seed: int, as_json: bool, master: str | None,
    conf: Iterable[tuple[str, str]],
) -> None:  # fmt: skip
    """Synthetic subscriptions by the grid model: users near each other like the same topics.

    Example: cubecast workload synthetic --users 100000 --topics 1000 --out out/grid
    """
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.workloads.build import build_synthetic
    from cubecast.pipeline.workloads.synthetic import GridModel

    model = GridModel(users, topics, points_exponent, most_points, radius_exponent, least_radius, most_radius)
    with Console(stderr=True).status("placing users and topics"):
        found = build_synthetic(spark_session(master, conf), model, seed, out)
    show(found, {"seed": seed, "out": str(out)}, as_json)


def show(found: "Profile", context: dict[str, Any], as_json: bool) -> None:
    """The profile as one JSON object, or as a table for people."""
    facts = {**context, **found.to_json()}
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table("", "mean", "max", "exponent", "from", "distance")
    for name, degrees in (("subscribers per topic", found.per_topic), ("subscriptions per user", found.per_user)):
        law = degrees.law
        exponent = f"{law.exponent:.2f} ± {law.error:.2f}"
        table.add_row(name, f"{degrees.mean:.1f}", str(degrees.most), exponent, str(law.least), f"{law.distance:.3f}")
    console = Console()
    console.print(
        f"{found.topics:,} topics, {found.users:,} users, {found.subscriptions:,} subscriptions, seed {context['seed']}"
    )
    console.print(table)
    if found.correlation.mean is not None:
        console.print(f"mean correlation of topics {found.correlation.mean:.4f} over {found.correlation.pairs:,} pairs")
    console.print(f"written to {context['out']}")
