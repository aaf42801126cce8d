"""`cubecast check`: the reference checker's verdict on a trace, without Spark."""

from pathlib import Path

import click

from cubecast.cli.common import EXIT_CODES, json_option, print_json
from cubecast.cli.progress import stages
from cubecast.cli.screen import output

EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 4 --trace out/run
  cubecast check out/run
"""


@click.command(epilog=EXAMPLE)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--properties", metavar="P1,P5,…", help="What to decide; by default what the run promises.")
@click.option("--shiviz", type=click.Path(path_type=Path), metavar="FILE", help="Write the trace as a ShiViz log too.")
@json_option
@click.pass_context
def check(context: click.Context, directory: Path, properties: str | None, shiviz: Path | None, as_json: bool) -> None:
    """Decide with the small reference checker whether the trace in DIR keeps what it promises.

    Exit code 0: VALID, 1: VIOLATED, 2: no verdict because of bad input, 3: UNKNOWN, something is missing.
    """
    from cubecast.check import check_directory
    from cubecast.report.tables import partial_notes, print_verdict
    from cubecast.trace.reader import read_trace
    from cubecast.trace.shiviz import shiviz_log

    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    with stages(f"checking {directory}"):
        report = check_directory(directory, names).to_json() | {"partial": partial_notes([directory])}
        if shiviz is not None:
            shiviz.write_text(shiviz_log(read_trace(directory).events))
    if as_json:
        print_json(report)
    else:
        print_verdict(output, report)
    context.exit(EXIT_CODES[report["verdict"]])
