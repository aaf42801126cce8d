"""`cubecast metrics` and `cubecast report`: what traces say about cost and speed; one HTML page with everything a
directory holds.
"""

from collections.abc import Iterable
from pathlib import Path

import click

from cubecast.cli.common import BAD_INPUT, OK, complain, json_option, print_json, spark_options
from cubecast.cli.screen import output, stages

METRICS_EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 64 --trace out/run1
  cubecast metrics out/run1 --out out/metrics
"""


@click.command(epilog=METRICS_EXAMPLE)
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


REPORT_EXAMPLE = """
\b
Examples:
  cubecast sim cubecast --nodes 64 --trace out/run1
  cubecast report out/run1
  cubecast reproduce causal-aggregation --quick --out out/chapter4
  cubecast report out/chapter4 --out chapter4.html
"""


@click.command(epilog=REPORT_EXAMPLE)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The page to write; default DIR/report.html.")
@spark_options
@json_option
def report(
    directory: Path, out: Path | None, master: str | None, conf: tuple[tuple[str, str], ...], as_json: bool
) -> None:
    """Write an HTML report with plots of the traces, reproductions, comparisons and sweeps in and below DIR.

    Where several papers were reproduced, each gets a page beside it. Pages need nothing from outside themselves. A
    small run takes a few seconds; more than two million rows, or --master or --conf, start Spark, which takes a minute.
    Exit code 0: it is written, whatever it says; 2: there is nothing to report, or it is damaged.
    """
    from cubecast.report.build import build_report
    from cubecast.report.small_or_spark import SparkIfAsked

    with stages("looking for traces, reproductions, comparisons and sweeps") as tell:
        found = build_report(directory, out or directory / "report.html", SparkIfAsked(master, conf), tell)
    if as_json:
        print_json(found)
    else:
        output.print(f"{', '.join(found['sections'])}: {found['report']}", soft_wrap=True)
