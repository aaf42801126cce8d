"""`cubecast sweep`: a grid of parameters times seeded runs, shared out by Spark."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

from cubecast.cli.common import VIOLATED, json_option, print_json, spark_options
from cubecast.cli.screen import errors, output, stages
from cubecast.experiments.sweep.grid import NAMED, Sweep, find_sweep

INTERRUPTED = 130
"""What shells report after Ctrl-C."""

EXAMPLE = f"""
\b
Examples:
  cubecast sweep {next(iter(NAMED))} --runs 2 --out out/first
  cubecast sweep my-sweep.toml

\b
my-sweep.toml:
  [sweep]
  runs = 3
  [grid]
  protocol = ["cubecast"]
  nodes = [16, 64]

\b
Sweeps that have a name:
  {f"{chr(10)}  ".join(NAMED)}
"""


@click.command(epilog=EXAMPLE)
@click.argument("name", metavar="NAME|FILE.toml")
@click.option("--runs", type=int, help="Runs of each point, instead of what the sweep says.")
@click.option("--seed", type=int, help="The seed all others are derived from, instead of what the sweep says.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write or resume; default out/sweep-NAME.")
@click.option("--keep-traces", is_flag=True, help="Keep the trace of every run in the directory.")
@spark_options
@json_option
@click.pass_context
def sweep(
    context: click.Context,
    name: str,
    runs: int | None,
    seed: int | None,
    out: Path | None,
    keep_traces: bool,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    as_json: bool,
) -> None:
    """Run the sweep NAME, or the one FILE.toml describes: every point of its grid, RUNS times.

    Spark takes some 10 s to start; a point takes from a second to minutes, by its size, and the sweep says how many are
    done as it goes on. Points that are finished in the output directory are not run again, so a sweep that was
    interrupted is resumed by the same command.

    Exit code 0: all points ran, 1: some failed (they are rows of the results too), 2: bad input.
    """
    asked = find_sweep(name)
    changes = {"runs": runs, "seed": seed, "keep_traces": keep_traces or None}
    asked = replace(asked, **{key: value for key, value in changes.items() if value is not None})  # type: ignore[arg-type]
    directory = out or Path("out") / f"sweep-{asked.name}"
    context.exit(_run(asked, directory, master, conf, as_json))


def _run(asked: Sweep, directory: Path, master: str | None, conf: tuple[tuple[str, str], ...], as_json: bool) -> int:
    from cubecast.experiments.sweep.run import SweepFailedError, prepare, run_sweep, waiting_points
    from cubecast.pipeline.session import LIGHT_JVM, spark_session
    from cubecast.report.sweeps import print_sweep, sweep_bar

    # Before Spark starts, which takes seconds: a typing mistake is answered at once.
    prepare(asked, directory)
    labels = {point.id: point.label for point in asked.expand()}
    try:
        with stages("starting Spark"):
            spark = spark_session(master, conf, LIGHT_JVM)
        with sweep_bar(errors, asked.name, labels) as listener:
            outcome = run_sweep(spark, asked, directory, listener).to_json()
    except KeyboardInterrupt:
        left = len(waiting_points(asked, directory))
        click.echo(f"cubecast: interrupted; {left} of {len(labels)} points are left in {directory}", err=True)
        click.echo(f"cubecast: the same command resumes it: {shlex.join(['cubecast', *sys.argv[1:]])}", err=True)
        return INTERRUPTED
    except SweepFailedError as error:
        click.echo(f"cubecast: {error}", err=True)
        return VIOLATED
    if as_json:
        print_json(outcome)
    else:
        print_sweep(output, outcome)
    return VIOLATED if outcome["errors"] else 0
