"""`cubecast metrics`: what traces say about cost and speed."""

from collections.abc import Iterable
from pathlib import Path

import click

from cubecast.cli.common import json_option, output, print_json, progress
from cubecast.cli.spark_options import spark_options

EXAMPLE = """
\b
Example:
  cubecast sim vcube-ps --nodes 64 --trace out/run1
  cubecast metrics out/run1 --out out/metrics
"""


@click.command(epilog=EXAMPLE)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write every table as Parquet below this directory.")
@spark_options
@json_option
def metrics(
    directories: tuple[Path, ...], out: Path | None, master: str | None, conf: Iterable[tuple[str, str]], as_json: bool
) -> None:
    """Latency, traffic, ordering cost, queues, load and subscriptions of the traces in and below DIR."""
    from cubecast.pipeline.metrics.measure import measure
    from cubecast.pipeline.outputs import require_new
    from cubecast.pipeline.session import spark_session
    from cubecast.report.metric_tables import metric_tables

    if out is not None:
        require_new(out)
    with progress("measuring"):
        found = measure(spark_session(master, conf), directories)
        if out is not None:
            found.write(out)
    if as_json:
        print_json(found.to_json())
        return
    for table in metric_tables(found.to_json()):
        output.print(table)
    if out is not None:
        output.print(f"tables written to {out}")
