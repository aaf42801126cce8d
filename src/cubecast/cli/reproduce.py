"""`cubecast reproduce` and `cubecast compare`: the papers' tables and figures again, claim by claim; their systems on
one workload; where points of experiments are run.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

import click

from cubecast.cli.common import OK, VIOLATED, json_option, print_json, seed_option
from cubecast.cli.screen import output, stages
from cubecast.errors import BadInput
from cubecast.experiments.bootstrap import with_intervals
from cubecast.experiments.ledger import claims_of, described
from cubecast.experiments.parallel import Figures, Point, PointFunction, Runner, in_processes, kept, on_spark
from cubecast.experiments.reproduction import Effort, choose, find_experiment, only, write_reproduction
from cubecast.report.ledger import print_claims, print_readings, print_reproduction
from cubecast.report.tables import print_comparison


def runner_of(master: str | None, out: Path | None) -> Runner:
    """Processes of this machine or tasks of a Spark master; with a directory, what is done is kept there."""
    runner: Runner = in_processes
    if master is not None:
        from cubecast.pipeline.session import spark_session  # takes a second, and needs an extra

        runner = on_spark(spark_session(master))
    return runner if out is None else kept(runner, out / "points")


def telling(doing: str, tell: Callable[[str], None], runner: Runner = in_processes) -> Runner:
    """Says how many points of each part are done, and how long the rest of the part will take."""

    def run(function: PointFunction, points: Sequence[Point]) -> Iterator[Figures]:
        started = monotonic()
        for done, figures in enumerate(runner(function, points), 1):
            left = (monotonic() - started) / done * (len(points) - done)
            tell(f"{doing}: {done} of {len(points)} points, about {left:.0f} s left in this part")
            yield figures

    return run


REPRODUCE_EXAMPLE = """
\b
Example:
  cubecast reproduce --list
  cubecast reproduce causal-aggregation --quick --out out/chapter4
  cubecast reproduce PS-F56a "Table 4.1"
  cubecast reproduce causal-aggregation --readings --runs 3
"""


@click.command(epilog=REPRODUCE_EXAMPLE)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--runs", type=int, help="Runs per point; by default as many as in the paper.")
@click.option("--quick", is_flag=True, help="Small sizes only, in seconds instead of minutes.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write or resume, for `cubecast report`.")
@click.option("--list", "only_list", is_flag=True, help="Name every claim; run nothing.")
@click.option("--readings", is_flag=True, help="Compare all readings of the paper's model instead.")
@click.option("--master", help="Run the points as tasks of this Spark master instead of processes of this machine.")
@seed_option
@json_option
@click.pass_context
def reproduce(
    context: click.Context,
    names: tuple[str, ...],
    runs: int | None,
    quick: bool,
    out: Path | None,
    only_list: bool,
    readings: bool,
    master: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Run experiments and print the claims ledger: paper, ours, difference, verdict.

    NAME is an experiment, a claim such as PS-F56a, or a place such as "Table 4.1"; by default all of them. What a claim
    or place needs is run whole, and what was asked for is printed. A run that is stopped goes on where it was when
    it is started again with the same --out.

    With --quick an experiment takes from seconds to a minute or two; in full, with the paper's sizes and runs, from
    minutes to hours. It says how many points are done as it goes on.

    Exit code 0: every claim is within its tolerance or its difference explained, 1: one is not.
    """
    effort = Effort(runs, quick, seed)
    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"{out} is no directory; name another place for the results")
    if readings:
        _compare(names, effort, as_json)
        return
    chosen = choose(names)
    if only_list:
        _list(chosen, as_json)
        return
    runner = runner_of(master, out)
    reports = []
    for name, rows in chosen.items():
        with stages(f"reproducing {name}") as tell:
            report = with_intervals(find_experiment(name), effort, telling(f"reproducing {name}", tell, runner))
        reports.append(only(report, rows))
        if not as_json:
            print_reproduction(output, reports[-1])
        if out is not None:
            write_reproduction(report, out)
    if as_json:
        print_json({"experiments": reports})
    context.exit(VIOLATED if any(report["unexplained"] for report in reports) else OK)


def _list(chosen: dict[str, set[str]], as_json: bool) -> None:
    listed = {
        name: [described(claim) for claim in claims_of(name) if claim.name in rows] for name, rows in chosen.items()
    }
    if as_json:
        print_json({"experiments": listed})
    else:
        print_claims(output, listed)


def _compare(names: tuple[str, ...], effort: Effort, as_json: bool) -> None:
    from cubecast.experiments.causal_aggregation.reproduce import compare_readings  # needs the kernels

    if names != ("causal-aggregation",):
        raise BadInput("there are readings of causal-aggregation only; name it")
    with stages("comparing readings") as tell:
        rows = list(compare_readings(effort, telling("reproducing all readings", tell)))
    if as_json:
        print_json({"experiment": names[0], "seed": effort.seed, "readings": rows})
    else:
        print_readings(output, rows)


COMPARE_EXAMPLE = """
\b
Example:
  cubecast compare --quick
  cubecast compare --out out/systems
  cubecast report out/systems
"""


@click.command(epilog=COMPARE_EXAMPLE)
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
