"""`cubecast verify`: the Spark verdict on traces."""

from pathlib import Path
from typing import Any

import click

from cubecast.cli.common import EXIT_CODES, json_option, output, print_json, progress
from cubecast.cli.spark_options import spark_options
from cubecast.errors import BadInput
from cubecast.report.partial_notes import partial_notes
from cubecast.report.tables import print_verdict

EXAMPLE = """
\b
Example:
  cubecast sim cubecast --nodes 16 --messages 100 --trace out/run
  cubecast verify out/run
"""


@click.command(epilog=EXAMPLE)
@click.argument("directories", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option("--properties", metavar="P1,P5,…", help="What to decide; by default what each run promises.")
@spark_options
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write witnesses and verdicts as Parquet.")
@json_option
@click.pass_context
def verify(
    context: click.Context,
    directories: tuple[Path, ...],
    properties: str | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Decide with Spark whether the traces in DIR… keep what they promise.

    Exit code 0: VALID, 1: VIOLATED, 2: no verdict because of bad input, 3: UNKNOWN, something is missing.
    """
    names = [name.strip() for name in properties.split(",") if name.strip()] if properties is not None else None
    if out is not None and out.exists():
        raise BadInput(f"{out} exists; name another directory for the witnesses")
    report = _verify(directories, names, master, conf, out)
    if as_json:
        print_json(report)
    else:
        print_verdict(output, report)
        if out is not None:
            output.print(f"Witnesses and verdicts are in {out}")
    context.exit(EXIT_CODES[report["verdict"]])


def _verify(
    directories: tuple[Path, ...],
    properties: list[str] | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
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
    return verification.to_json() | {"partial": partial_notes(directories)}
