"""`cubecast metrics`: what traces say about cost and speed."""

from collections.abc import Iterable
from pathlib import Path

import click

from cubecast.cli.common import BAD_INPUT, OK, complain, json_option, print_json, spark_options
from cubecast.cli.screen import output, stages

EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 64 --trace out/run1
  cubecast metrics out/run1 --out out/metrics
"""


@click.command(epilog=EXAMPLE)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write every table as Parquet below this directory.")
@spark_options
@json_option
@click.pass_context
def metrics(
    context: click.Context,
    directories: tuple[Path, ...],
    out: Path | None,
    master: str | None,
    conf: Iterable[tuple[str, str]],
    as_json: bool,
) -> None:
    """Latency, traffic, ordering cost, queues, load and subscriptions of the traces in and below DIR.

    Traces of up to two million rows are measured in this process, about 10 s per million rows; beyond that, or with
    --master or --conf, Spark measures them, which takes half a minute before the first row is read.

    Exit code 0: all runs are measured, 2: bad input, at least for some of the runs.
    """
    from cubecast.report.small_or_spark import SparkIfAsked, measure_traces
    from cubecast.report.tables import metric_tables

    with stages("looking at the traces") as tell:
        found = measure_traces(directories, SparkIfAsked(master, conf), tell, out)
    if as_json:
        print_json(found.to_json())
    else:
        for table in metric_tables(found.to_json()):
            output.print(table)
        if out is not None:
            output.print(f"tables written to {out}")
    for reason in found.refused:
        complain(f"cubecast: refused: {reason}")
    context.exit(BAD_INPUT if found.refused else OK)
