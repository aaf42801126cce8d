"""`cubecast log`: look into a node's durable log, beside the node or without it."""

import sys
from pathlib import Path

import click

from cubecast.cli.common import OK, VIOLATED, json_option, print_json
from cubecast.cli.screen import errors, output, stages
from cubecast.log.check import check_log, list_topics
from cubecast.report.log_export import export_lines
from cubecast.report.tables import print_log

LS_EXAMPLE = """
\b
Example, for a node started with --data data --log '>':
  cubecast log ls data
"""
EXPORT_EXAMPLE = """
\b
Examples:
  cubecast log export data --topic 'orders.>' > orders.jsonl
  cubecast log export data --parquet orders.parquet
"""
CHECK_EXAMPLE = """
\b
Example:
  cubecast log check data && echo every message is as it was written
"""
directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.group()
def log() -> None:
    """A node's durable log in DIR: list it, export it, check it. Nothing is changed; the node may be running."""


@log.command(epilog=LS_EXAMPLE)
@directory_argument
@json_option
def ls(directory: Path, as_json: bool) -> None:
    """The topics with their offsets, sizes and times."""
    report = list_topics(directory).to_json()
    if as_json:
        print_json(report)
    else:
        print_log(output, report)


@log.command(epilog=EXPORT_EXAMPLE)
@directory_argument
@click.option("--topic", "patterns", metavar="PATTERN", multiple=True, help="Only these topics; default all.")
@click.option(
    "--parquet", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write Parquet, not lines."
)
@click.pass_context
def export(context: click.Context, directory: Path, patterns: tuple[str, ...], parquet: Path | None) -> None:
    """Every message, as a JSON object per line on standard output or as Parquet.

    Exit code 1 when something is damaged and could not be exported; what and where is said on standard error.
    """
    if parquet is None:
        problems = export_lines(directory, sys.stdout, patterns)
    else:
        from cubecast.report.log_parquet import export_parquet

        with stages(f"writing {parquet}"):
            problems = export_parquet(directory, parquet, patterns)
    _complain(problems)
    context.exit(VIOLATED if problems else OK)


@log.command(epilog=CHECK_EXAMPLE)
@directory_argument
@json_option
@click.pass_context
def check(context: click.Context, directory: Path, as_json: bool) -> None:
    """Read everything and compare it with its checksums, offsets and names.

    Exit code 0: all is good, 1: damage, with file and place, 2: there is no log.
    """
    with stages(f"checking {directory}"):
        report = check_log(directory)
    if as_json:
        print_json(report.to_json())
    else:
        print_log(output, report.to_json())
        if not report.problems:
            checked = sum(topic.messages for topic in report.topics)
            output.print(f"{checked:,} messages, and each is as it was written", soft_wrap=True)
        _complain(report.problems)
    context.exit(VIOLATED if report.problems else OK)


def _complain(problems: list[str]) -> None:
    for problem in problems:
        errors.print(problem, soft_wrap=True)
