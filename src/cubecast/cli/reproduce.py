"""`cubecast reproduce`: the papers' tables and figures again, claim by claim."""

from pathlib import Path

import click

from cubecast.cli.common import OK, VIOLATED, json_option, print_json, seed_option
from cubecast.cli.screen import output, progress
from cubecast.errors import BadInput
from cubecast.experiments.parallel import in_processes
from cubecast.experiments.reproduction import EXPERIMENTS, Effort, find_experiment, write_reproduction
from cubecast.report.ledger import print_readings, print_reproduction

EXAMPLE = """
\b
Example:
  cubecast reproduce causal-aggregation --quick --out out/chapter4
  cubecast reproduce causal-aggregation --readings --runs 3
"""


@click.command(epilog=EXAMPLE)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--runs", type=int, help="Runs per point; by default as many as in the paper.")
@click.option("--quick", is_flag=True, help="Small sizes only, in seconds instead of minutes.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write results to, for `cubecast report`.")
@click.option("--readings", is_flag=True, help="Compare all readings of the paper's model instead.")
@seed_option
@json_option
@click.pass_context
def reproduce(
    context: click.Context,
    names: tuple[str, ...],
    runs: int | None,
    quick: bool,
    out: Path | None,
    readings: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Run experiments (all of them by default) and print the claims ledger: paper, ours, difference, verdict.

    Exit code 0: every claim is within its tolerance or its difference explained, 1: one is not.
    """
    effort = Effort(runs, quick, seed)
    chosen = names or tuple(EXPERIMENTS)
    if readings:
        _compare(chosen, effort, as_json)
        return
    reports = []
    for name in chosen:
        with progress(f"reproducing {name}"):
            reports.append(find_experiment(name)(effort, in_processes).to_json())
        if not as_json:
            print_reproduction(output, reports[-1])
        if out is not None:
            write_reproduction(reports[-1], out)
    if as_json:
        print_json({"experiments": reports})
    context.exit(VIOLATED if any(report["unexplained"] for report in reports) else OK)


def _compare(names: tuple[str, ...], effort: Effort, as_json: bool) -> None:
    from cubecast.experiments.causal_aggregation.gap import compare_readings  # needs the kernels

    if names != ("causal-aggregation",):
        raise BadInput("there are readings of causal-aggregation only; name it")
    with progress("comparing readings"):
        rows = list(compare_readings(effort, in_processes))
    if as_json:
        print_json({"experiment": names[0], "seed": effort.seed, "readings": rows})
    else:
        print_readings(output, rows)
