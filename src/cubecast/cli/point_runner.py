"""How commands run the points of an experiment: where, and saying how far they are."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

from cubecast.experiments.parallel import Figures, Point, PointFunction, Runner, in_processes, kept, on_spark


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
