"""Many seeded schedules against live clusters, one after another, until one breaks a promise."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.experiments.live_faults.run import Outcome, run_schedule
from cubecast.experiments.live_faults.schedule import draw

PATIENCE = 1.0


def torment(directory: Path, seed: int, schedules: int) -> Iterator[Outcome]:
    """Runs the schedules of `seed`, `seed` + 1, …, each below a directory of its own; raises LiveFailure."""
    if schedules < 1:
        raise BadInput(f"at least one schedule must run, not {schedules}")
    below = {one: directory / f"seed-{one}" for one in range(seed, seed + schedules)}
    for place in below.values():
        if place.exists():
            raise BadInput(f"{place} exists; name another directory for --live")
    for one, place in below.items():
        yield asyncio.run(run_schedule(draw(one, patience=PATIENCE), place, patience=PATIENCE))


def verified_with_spark(directory: Path, master: str | None, conf: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The same traces, judged a second time by the pipeline: verdicts by run."""
    from cubecast.pipeline.session import spark_session
    from cubecast.pipeline.verify import verify

    traces = sorted(directory.glob("seed-*/trace"))
    verified = verify(spark_session(master, conf), traces)
    return {Path(one.run.directory).parent.name: one.verdict for one in verified.runs}
