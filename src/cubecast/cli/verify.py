"""`cubecast verify`: the verdict on traces of any size."""

import json
import time
from pathlib import Path
from typing import Any

import click

from cubecast.cli.common import BAD_INPUT, EXIT_CODES, VIOLATED, json_option, print_json
from cubecast.cli.progress import stages
from cubecast.cli.screen import output
from cubecast.cli.spark_options import spark_options
from cubecast.errors import BadInput
from cubecast.report.partial_notes import partial_notes
from cubecast.report.tables import print_verdict

EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 100 --trace out/run
  cubecast verify out/run
\b
Beside nodes that run with --journal live:
  cubecast verify --follow live
"""


@click.command(epilog=EXAMPLE)
@click.argument("directories", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option("--properties", metavar="P1,P5,…", help="What to decide; by default what each run promises.")
@spark_options
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write witnesses and verdicts as Parquet.")
@click.option("--follow", is_flag=True, help="DIR… are journals that grow: judge them again and again.")
@click.option("--every", default=2.0, show_default=True, metavar="SECONDS", help="With --follow: between two looks.")
@click.option(
    "--patience", default=5.0, show_default=True, metavar="SECONDS", help="With --follow: to wait for a missing cause."
)
@json_option
@click.pass_context
def verify(
    context: click.Context,
    directories: tuple[Path, ...],
    properties: str | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    out: Path | None,
    follow: bool,
    every: float,
    patience: float,
    as_json: bool,
) -> None:
    """Decide whether the traces in DIR… keep what they promise, with a judge made for traces of any size.

    Up to two million rows are judged in this process, which takes seconds; beyond that, or with --master or --conf, by
    Spark, which takes about 10 s to start and then judges some million deliveries a second.

    With --follow the journals of running nodes are judged while they grow. Each verdict holds up to how far they were
    read; it ends by itself when all nodes have ended, or with Ctrl-C.

    Exit code 0: VALID, 1: VIOLATED, 2: bad input, at least for some of the runs, 3: UNKNOWN, something is missing.
    """
    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    if out is not None and out.exists():
        raise BadInput(f"{out} exists; name another directory for the witnesses")
    if follow:
        context.exit(EXIT_CODES[_follow(directories, names, every, patience, as_json)])
    report = _verify(directories, names, master, conf, out)
    if as_json:
        print_json(report)
    else:
        print_verdict(output, report)
        if out is not None:
            output.print(f"Witnesses and verdicts are in {out}")
    code = EXIT_CODES[report["verdict"]]
    context.exit(BAD_INPUT if report["refused"] and code != VIOLATED else code)


def _follow(
    directories: tuple[Path, ...], properties: list[str] | None, every: float, patience: float, as_json: bool
) -> str:
    """A line whenever there is news; the last verdict."""
    from cubecast.report.following import follow, line

    said, verdict = "", "UNKNOWN"
    try:
        for standing in follow(directories, properties, "cubecast", patience, lambda: time.sleep(every)):
            verdict = str(standing.verdict)
            text = json.dumps(standing.to_json()) if as_json else line(standing)
            if text != said:
                click.echo(text)
            said = text
    except KeyboardInterrupt:
        pass  # that is how it ends while nodes go on
    return verdict


def _verify(
    directories: tuple[Path, ...],
    properties: list[str] | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    out: Path | None,
) -> dict[str, Any]:
    from cubecast.report.small_or_spark import SparkIfAsked, verify_traces

    with stages("looking at the traces") as tell:
        verification = verify_traces(directories, properties, SparkIfAsked(master, conf), tell)
        if out is not None:
            verification.write(out)
    return verification.to_json() | {"partial": partial_notes(directories)}
