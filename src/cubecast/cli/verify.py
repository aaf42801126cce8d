"""`cubecast check` and `cubecast verify`: the reference checker's verdict on a trace, without Spark, and the verdict on
traces of any size.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from cubecast.api.connect import Connecting
from cubecast.cli.client_options import connecting, login, proof_options
from cubecast.cli.common import BAD_INPUT, EXIT_CODES, VIOLATED, json_option, print_json, spark_options
from cubecast.cli.screen import output, stages
from cubecast.errors import BadInput
from cubecast.report.tables import partial_notes, print_verdict

if TYPE_CHECKING:
    from cubecast.report.journals import Mirror


CHECK_EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 4 --trace out/run
  cubecast check out/run
"""


@click.command(epilog=CHECK_EXAMPLE)
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


VERIFY_EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 100 --trace out/run
  cubecast verify out/run
\b
Beside nodes that run with --trace live; and from anywhere, beside nodes that serve HTTP as well:
  cubecast verify --follow live
  cubecast verify --follow --node 127.0.0.1:7400 --node 127.0.0.1:7401
"""


@click.command(epilog=VERIFY_EXAMPLE)
@click.argument("directories", nargs=-1, metavar="DIR…", type=click.Path(path_type=Path))
@click.option("--properties", metavar="P1,P5,…", help="What to decide; by default what each run promises.")
@spark_options
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write witnesses and verdicts as Parquet.")
@click.option("--follow", is_flag=True, help="DIR… are journals that grow: judge them again and again.")
@click.option("--every", default=2.0, show_default=True, metavar="SECONDS", help="With --follow: between two looks.")
@click.option(
    "--patience", default=5.0, show_default=True, metavar="SECONDS", help="With --follow: to wait for a missing cause."
)
@click.option(
    "--node", "nodes", multiple=True, metavar="HOST:PORT", help="With --follow instead of DIR…: ask running nodes."
)
@proof_options
@json_option
@click.pass_context
def verify(
    context: click.Context,
    /,
    directories: tuple[Path, ...],
    properties: str | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    out: Path | None,
    follow: bool,
    every: float,
    patience: float,
    as_json: bool,
    **where: Any,
) -> None:
    """Decide whether the traces in DIR… keep what they promise, with a judge made for traces of any size.

    Up to two million rows are judged in this process, which takes seconds; beyond that, or with --master or --conf, by
    Spark, which takes about 10 s to start and then judges some million deliveries a second.

    With --follow the journals of running nodes are judged while they grow. Each verdict holds up to how far they were
    read; it ends by itself when all nodes have ended, or with Ctrl-C. With --node the journals are fetched from the
    nodes, which must serve HTTP (--http) and record (--trace, or cubecast trace on); their pages show the verdict.

    Exit code 0: VALID, 1: VIOLATED, 2: bad input, at least for some of the runs, 3: UNKNOWN, something is missing.
    """
    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    if out is not None and out.exists():
        raise BadInput(f"{out} exists; name another directory for the witnesses")
    if bool(directories) == bool(where["nodes"]) or (where["nodes"] and not follow):
        raise BadInput("name the directories of traces, or of journals with --follow; or say --follow --node HOST:PORT")
    if follow and (master is not None or conf or out is not None):
        raise BadInput(
            "--follow judges in this process and leaves verdict.json beside the journals: no Spark, no --out"
        )
    if follow:
        with _mirror(where) if where["nodes"] else nullcontext() as mirror:
            places = directories if mirror is None else (mirror.directory,)
            context.exit(EXIT_CODES[_follow(places, names, every, patience, as_json, mirror)])
    report = _verify(directories, names, master, conf, out)
    if as_json:
        print_json(report)
    else:
        print_verdict(output, report)
        if out is not None:
            output.print(f"Witnesses and verdicts are in {out}")
    code = EXIT_CODES[report["verdict"]]
    context.exit(BAD_INPUT if report["refused"] and code != VIOLATED else code)


@contextmanager
def _mirror(where: dict[str, Any]) -> Iterator["Mirror"]:
    """Copies of the nodes' journals, as long as they are judged."""
    from cubecast.report.journals import Mirror

    def connect(node: str) -> Connecting:
        return connecting(**where | {"nodes": (node,)})

    with TemporaryDirectory(prefix="cubecast-journals-") as name:
        yield Mirror(where["nodes"], connect, Path(name), where["timeout"], login(**where))


def _follow(
    directories: tuple[Path, ...],
    properties: list[str] | None,
    every: float,
    patience: float,
    as_json: bool,
    mirror: "Mirror | None",
) -> str:
    """A line whenever there is news; the last verdict."""
    from cubecast.report.journals import follow, line

    said, verdict = "", "UNKNOWN"
    try:
        for standing in follow(directories, properties, patience, lambda: time.sleep(every), mirror):
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
