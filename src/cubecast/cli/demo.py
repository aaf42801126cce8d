"""`cubecast demo`: the main job end to end on this machine."""

from pathlib import Path

import click

from cubecast.cli.common import EXIT_CODES, VIOLATED, json_option, print_json, seed_option, spark_options
from cubecast.cli.screen import errors, output, stages

EXAMPLE = """
\b
Example:
  cubecast demo --out out/demo
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--out", default="out/demo", show_default=True, type=click.Path(path_type=Path), help="Where everything goes."
)
@spark_options
@seed_option
@json_option
@click.pass_context
def demo(
    context: click.Context, out: Path, master: str | None, conf: tuple[tuple[str, str], ...], seed: int, as_json: bool
) -> None:
    """Eight live nodes talk, one is killed, one joins; two judges read the traces; a damaged one must be caught.

    Takes about 20 s on two cores; with --master or --conf Spark judges, half a minute more.
    """
    from cubecast.experiments.demo import DAMAGED, TRACE, run_demo
    from cubecast.report.tables import demo_tables

    with stages("demonstration") as tell:
        say = tell if errors.is_terminal else errors.print
        result = run_demo(out, seed, say, master, conf)
    if as_json:
        print_json(result)
    else:
        for table in demo_tables(result):
            output.print(table)
        output.print(f"journals: {result['journals']}\ntrace: {result['trace']}\nreport: {result['report']}")
        output.print(
            f"{result['verdict']} in {result['wall_seconds']} s; look closer with: cubecast check {out / TRACE}"
        )
    judges = (result["checked"], result["verified"])
    honest = all(judge[DAMAGED]["verdict"] == "VIOLATED" for judge in judges)
    agreed = result["checked"][TRACE]["verdict"] == result["verdict"]
    context.exit(EXIT_CODES[result["verdict"]] if honest and agreed else VIOLATED)
