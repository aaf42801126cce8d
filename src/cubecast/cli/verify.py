"""`cubecast verify`: the Spark verdict on traces."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from cubecast.errors import BadInput, CubecastError

EXIT_CODES = {"VALID": 0, "VIOLATED": 1, "UNKNOWN": 3}
EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 100 --trace out/run
  cubecast verify out/run
"""


@click.command(epilog=EXAMPLE)
@click.argument("directories", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option("--properties", metavar="P1,P5,…", help="What to decide; by default what each run promises.")
@click.option("--master", metavar="URL", help="Where Spark runs; by default on this machine's cores.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A Spark option; may be given again.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write witnesses and verdicts as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(
    directories: tuple[Path, ...],
    properties: str | None,
    master: str | None,
    conf: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Decide with Spark whether the traces in DIR… keep what they promise.

    Exit code 0: VALID, 1: VIOLATED, 2: no verdict because of bad input, 3: UNKNOWN, something is missing.
    """
    try:
        code = _verify(directories, properties, master, conf, out, as_json)
    except CubecastError as error:
        click.echo(f"cubecast verify: {error}", err=True)
        code = 2
    sys.exit(code)


def _verify(
    directories: tuple[Path, ...],
    properties: str | None,
    master: str | None,
    conf: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> int:
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.staging import checked_properties, find_runs
    from cubecast.pipeline.verify import verify as verify_traces

    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    # Before Spark starts, which takes seconds: a typing mistake is answered at once.
    checked_properties(find_runs(directories), names)
    if out is not None and out.exists():
        raise BadInput(f"{out} exists; name another directory for the witnesses")
    spark = spark_session(master, [_option(text) for text in conf])
    verification = verify_traces(spark, directories, names)
    if out is not None:
        verification.witness_frame(spark).write.parquet(str(out / "witnesses"))
        verification.verdict_frame(spark).write.parquet(str(out / "verdicts"))
    report = verification.to_json()
    if as_json:
        click.echo(json.dumps(report))
    else:
        _show(report, out)
    return EXIT_CODES[report["verdict"]]


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadInput(f"--conf takes KEY=VALUE, not {text!r}")
    return key, value


def _show(report: dict[str, object], out: Path | None) -> None:
    console = Console()
    table = Table("property", "verdict", "violations")
    properties = report["properties"]
    assert isinstance(properties, dict)
    for name, one in properties.items():
        table.add_row(name, one["verdict"], str(one["violations"]))
    console.print(table)
    counts = ", ".join(f"{report[name]} {name}" for name in ("runs", "messages", "deliveries"))
    console.print(f"{report['verdict']}: {counts}, {report['wall_seconds']} s")
    _list(console, report["unknown_because"], "Not known because")
    _list(console, report["witnesses"], "Smallest witnesses")
    if out is not None:
        console.print(f"Witnesses and verdicts are in {out}")


def _list(console: Console, lines: object, title: str) -> None:
    assert isinstance(lines, Iterable)
    for number, line in enumerate(lines):
        if not number:
            console.print(f"{title}:")
        if isinstance(line, dict):
            line = (
                f"{line['property']} in {line['run']}, node {line['node']}.{line['incarnation']}, "
                f"row {line['seq']}: {line['reason']}"
            )
        console.print(f"  {line}", markup=False, highlight=False)
