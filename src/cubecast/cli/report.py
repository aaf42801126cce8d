"""`cubecast report`: one HTML page with everything a directory holds."""

from pathlib import Path

import click

from cubecast.cli.common import json_option, print_json, spark_options
from cubecast.cli.screen import output, stages

EXAMPLE = """
\b
Examples:
  cubecast sim cubecast --nodes 64 --trace out/run1
  cubecast report out/run1
  cubecast reproduce causal-aggregation --quick --out out/chapter4
  cubecast report out/chapter4 --out chapter4.html
"""


@click.command(epilog=EXAMPLE)
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
