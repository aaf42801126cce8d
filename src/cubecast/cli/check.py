"""`cubecast check`: the reference checker's verdict on one trace, without Spark."""

from pathlib import Path

import click

from cubecast.check import check_directory
from cubecast.cli.common import EXIT_CODES, json_option, output, print_json, progress
from cubecast.trace.reader import read_trace
from cubecast.trace.shiviz import shiviz_log

EXAMPLE = """
\b
Example:
  cubecast sim vcube-ps --nodes 16 --trace out/run1
  cubecast check out/run1 --properties P1,P5,P7 --shiviz out/run1.log
"""


@click.command(epilog=EXAMPLE)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--properties", help="Comma-separated, for example P1,P5; by default what the run promises.")
@click.option("--shiviz", type=click.Path(path_type=Path), help="Write a ShiViz log (a space-time diagram) here too.")
@json_option
@click.pass_context
def check(ctx: click.Context, directory: Path, properties: str | None, shiviz: Path | None, as_json: bool) -> None:
    """Judge the trace in DIRECTORY with the plain-Python reference checker."""
    with progress("checking"):
        report = check_directory(directory, properties.split(",") if properties else None)
    if shiviz is not None:
        shiviz.write_text(shiviz_log(read_trace(directory).events))
    if as_json:
        print_json(report.to_json())
    else:
        for name, verdict in report.verdicts.items():
            output.print(f"{name:4} {verdict}")
        for witness in report.witnesses:
            where = f"node {witness.node}.{witness.incarnation}, row {witness.seq}"
            output.print(f"{witness.promise}: {where}: {witness.reason}", markup=False, soft_wrap=True)
        for reason in report.unknown_because:
            output.print(f"unknown: {reason}", markup=False, soft_wrap=True)
        output.print(f"{report.verdict}: {report.messages} messages, {report.deliveries} deliveries")
    ctx.exit(EXIT_CODES[report.verdict])
