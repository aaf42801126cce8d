"""`cubecast swarm`: many seeded fault schedules; the first violation, made small. `--live`: real accidents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from cubecast.cli.common import OK, VIOLATED, json_option, print_json, seed_option, spark_options
from cubecast.cli.screen import output, stages
from cubecast.protocol.families import DEFAULT_PROTOCOL


def live_swarm(
    directory: Path, seed: int, schedules: int, second_judge: Callable[[], dict[str, str]] | None, *, as_json: bool
) -> NoReturn:
    """Tell of every schedule as it ends; end the program with the exit code of the verdict."""
    from cubecast.experiments.live_faults.run import LiveFailure, torment

    found: dict[str, Any] = {"seed": seed, "schedules": [], "failure": None}
    try:
        with stages(f"seed {seed}: {schedules} schedules of live clusters below {directory}") as tell:
            for outcome in torment(directory, seed, schedules):
                found["schedules"].append(one := outcome.to_json())
                tell(f"seed {seed}: {len(found['schedules'])} of {schedules} schedules of live clusters")
                if not as_json:
                    output.print(f"{one['verdict']} {one['deliveries']:,} deliveries · {one['schedule']}")
    except LiveFailure as failure:
        found["failure"] = str(failure)
    if second_judge is not None and found["failure"] is None:
        found["spark"] = second_judge()
    if as_json:
        print_json(found)
    elif found["failure"] is not None:
        output.print(found["failure"])
    for name, verdict in {} if as_json else found.get("spark", {}).items():
        output.print(f"Spark: {name} {verdict}")
    kept = found["failure"] is None and set(found.get("spark", {}).values()) <= {"VALID"}
    click.get_current_context().exit(OK if kept else VIOLATED)


EXAMPLE = """
\b
Example:
  cubecast swarm --protocol cubecast --schedules 2000 --seed 1
  cubecast swarm --live out/faults --schedules 5 --spark
"""


@click.command(epilog=EXAMPLE)
@click.option("--protocol", default=DEFAULT_PROTOCOL, show_default=True, help="Which protocol to torment.")
@click.option("--schedules", type=int, help="How many schedules to run; 1,000 simulated or 10 live ones by default.")
@click.option("--jobs", default=1, show_default=True, help="Processes to run them in.")
@click.option("--exhaustive", type=int, help="Instead: all interleavings of tiny worlds, up to this many states each.")
@click.option(
    "--live",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead: accidents to real processes and links; everything they leave goes below DIR.",
)
@click.option("--spark", is_flag=True, help="With --live: let Spark verify the same traces too.")
@spark_options
@click.option("--replay", help="Run this one schedule, as a failure printed it.")
@seed_option
@json_option
def swarm(
    protocol: str,
    schedules: int | None,
    jobs: int,
    exhaustive: int | None,
    live: Path | None,
    spark: bool,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    replay: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Run seeded fault schedules, each followed by healing, and check every promise; stop at the first violation.

    A core runs some 10 to 20 schedules a second, so 1,000 take a minute or two; a live one takes 10 to 30 s.
    """
    from cubecast.experiments import swarm as experiment
    from cubecast.experiments.live_faults.run import verified_with_spark
    from cubecast.report.tables import swarm_table
    from cubecast.sim.schedule import Schedule

    if exhaustive is not None:
        _explore(exhaustive, as_json)
    if live is not None:
        judge = (lambda: verified_with_spark(live, master, conf)) if spark else None
        live_swarm(live, seed, 10 if schedules is None else schedules, judge, as_json=as_json)
    if schedules is None:
        schedules = 1000
    if replay is not None:
        schedule = Schedule.from_text(replay)
        protocol, seed = schedule.protocol, schedule.seed
        tally = experiment.Tally(schedules=1, failure=experiment.judge(schedule))
    else:
        with stages(f"seed {seed}: {schedules} schedules of {protocol}") as tell:
            for tally in experiment.swarm(protocol, seed, schedules, jobs):
                tell(f"seed {seed}: {tally.schedules} of {schedules} schedules of {protocol}")
    figures = tally.to_json(protocol, seed)
    if as_json:
        print_json(figures)
    else:
        failure = figures.pop("failure")
        output.print(swarm_table(figures))
        if failure is not None:
            _show(failure)
    click.get_current_context().exit(OK if tally.failure is None else VIOLATED)


def _show(failure: dict[str, Any]) -> None:
    faults = ", ".join(failure["faults"]) or "none"
    output.print(f"[bold]{failure['property']}[/bold] with faults {faults}:", markup=True)
    for reason in failure["reasons"]:
        output.print(f"  {reason}")
    output.print("reproduce with:")
    click.echo(failure["replay"])
    output.print("or step by step, as tests/scripts plays it:")
    click.echo(failure["script"])


def _explore(most_states: int, as_json: bool) -> NoReturn:
    from cubecast.experiments import exhaustive as tiny_worlds

    found = []
    with stages("all interleavings of tiny worlds") as tell:
        for name, explored in tiny_worlds.explore_all(most_states):
            found.append(tiny_worlds.to_json(name, explored))
            tell(f"all interleavings of tiny worlds: {len(found)} explored, the last {name}")
    if as_json:
        print_json({"worlds": found})
    else:
        for one in found:
            extent = "all explored" if one["complete"] else "incomplete: allow more states"
            delivered = one["histories_with_deliveries_to_others"]
            output.print(
                f"{one['world']}: {one['states']:,} states, {one['histories']:,} histories, "
                f"{delivered:,} with deliveries to others, {extent}"
            )
            for failure in one["failures"]:
                output.print(f"  {failure['reason']} after {failure['choices']}")
    click.get_current_context().exit(VIOLATED if any(one["failures"] or not one["complete"] for one in found) else OK)
