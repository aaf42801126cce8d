"""`cubecast verify`: the Spark verdict on traces."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from cubecast.cli.common import EXIT_CODES, json_option, output, print_json, progress
from cubecast.errors import BadInput

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
@json_option
@click.pass_context
def verify(
    context: click.Context,
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
    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    if out is not None and out.exists():
        raise BadInput(f"{out} exists; name another directory for the witnesses")
    report = _verify(directories, names, master, [_option(text) for text in conf], out)
    if as_json:
        print_json(report)
    else:
        _show(report, out)
    context.exit(EXIT_CODES[report["verdict"]])


def _verify(
    directories: tuple[Path, ...],
    properties: list[str] | None,
    master: str | None,
    conf: list[tuple[str, str]],
    out: Path | None,
) -> dict[str, Any]:
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.staging import checked_properties, find_runs
    from cubecast.pipeline.verify import verify as verify_traces

    # Before Spark starts, which takes seconds: a typing mistake is answered at once.
    checked_properties(find_runs(directories), properties)
    with progress("starting Spark"):
        spark = spark_session(master, conf)
    with progress("verifying"):
        verification = verify_traces(spark, directories, properties)
        if out is not None:
            verification.witness_frame(spark).write.parquet(str(out / "witnesses"))
            verification.verdict_frame(spark).write.parquet(str(out / "verdicts"))
    return verification.to_json()


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadInput(f"--conf takes KEY=VALUE, not {text!r}")
    return key, value


def _show(report: dict[str, Any], out: Path | None) -> None:
    table = Table("property", "verdict", "violations")
    for name, one in report["properties"].items():
        table.add_row(name, one["verdict"], str(one["violations"]))
    output.print(table)
    counts = ", ".join(f"{report[name]} {name}" for name in ("runs", "messages", "deliveries"))
    output.print(f"{report['verdict']}: {counts}, {report['wall_seconds']} s")
    _list("Not known because", report["unknown_because"])
    _list("Smallest witnesses", [_witness(one) for one in report["witnesses"]])
    if out is not None:
        output.print(f"Witnesses and verdicts are in {out}", markup=False)


def _witness(one: dict[str, Any]) -> str:
    where = f"node {one['node']}.{one['incarnation']}, row {one['seq']}"
    return f"{one['property']} in {one['run']}, {where}: {one['reason']}"


def _list(title: str, lines: list[str]) -> None:
    if lines:
        output.print(f"{title}:")
    for line in lines:
        output.print(f"  {line}", markup=False)
