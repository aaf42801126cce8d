"""`cubecast swarm --live`: schedules of real accidents to real processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from cubecast.cli.common import OK, VIOLATED, print_json
from cubecast.cli.progress import stages
from cubecast.cli.screen import output


def live_swarm(
    directory: Path, seed: int, schedules: int, second_judge: Callable[[], dict[str, str]] | None, *, as_json: bool
) -> NoReturn:
    """Tell of every schedule as it ends; end the program with the exit code of the verdict."""
    from cubecast.experiments.live_faults.run import LiveFailure
    from cubecast.experiments.live_faults.swarm import torment

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
