"""`cubecast compare`: the systems of all papers on one workload."""

from pathlib import Path

import click

from cubecast.cli.common import json_option, print_json, seed_option
from cubecast.cli.progress import stages
from cubecast.cli.reproduce import runner_of, telling
from cubecast.cli.screen import output
from cubecast.errors import BadInput
from cubecast.experiments.reproduction import Effort
from cubecast.report.tables import print_comparison

EXAMPLE = """
\b
Example:
  cubecast compare --quick
  cubecast compare --out out/systems
  cubecast report out/systems
"""


@click.command(epilog=EXAMPLE)
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option("--runs", type=int, help="Runs of each system under each condition; 5, or 1 with --quick.")
@click.option("--quick", is_flag=True, help="16 processes instead of 64, in seconds instead of minutes.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write or resume, for `cubecast report`.")
@click.option("--master", help="Run the points as tasks of this Spark master instead of processes of this machine.")
@seed_option
@json_option
def compare(
    systems: tuple[str, ...],
    runs: int | None,
    quick: bool,
    out: Path | None,
    master: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Put systems on one workload: quiet, with loss, with a crash; print what each costs and keeps.

    SYSTEM is a protocol; by default all that are compared. Simulated, so the figures are the same on every machine. A
    comparison that is stopped goes on where it was when it is started again with the same --out.
    """
    from cubecast.experiments.comparison.compare import compare as compare_systems  # needs what judges the runs
    from cubecast.experiments.comparison.compare import write_comparison

    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out} is no directory; name another place for the results")
    with stages("comparing") as tell:
        found = compare_systems(Effort(runs, quick, seed), telling("comparing", tell, runner_of(master, out)), systems)
    if out is not None:
        write_comparison(found, out)
    if as_json:
        print_json(found)
    else:
        print_comparison(output, found)
