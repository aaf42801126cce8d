"""The demonstration: a live conversation with a crash and a newcomer, its trace judged twice, a damaged copy caught."""

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from cubecast.check import check_directory
from cubecast.check.mutate import MUTATORS
from cubecast.errors import BadInput
from cubecast.experiments.live.conversation import collect_conversation, converse
from cubecast.net.links.loop import run
from cubecast.report.document import require_drawing
from cubecast.trace.reader import read_trace
from cubecast.trace.writer import TraceWriter

TRACE, DAMAGED = "trace", "damaged"
DAMAGE = "cause_after_effect"
REPORT = "report.html"
PARTS = ("journals", "logs", TRACE, DAMAGED)


def run_demo(
    directory: Path,
    seed: int,
    say: Callable[[str], None],
    master: str | None = None,
    conf: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Everything below `directory`; what happened, for tables."""
    began = time.perf_counter()
    require_drawing()
    _clear(directory)
    talk = run(converse(directory, seed, say))
    say("collecting the journals, the killed node's too, into a trace")
    traces = {TRACE: collect_conversation(directory, seed), DAMAGED: directory / DAMAGED}
    _damage(traces[TRACE], traces[DAMAGED], seed)
    say("checking the trace, and a damaged copy of it, with the reference checker")
    checked = {name: check_directory(path).to_json() for name, path in traces.items()}
    say("verifying the same traces with the second judge, measuring, drawing the report")
    verified, measured = _verify_and_measure(traces, master, conf, directory / REPORT)
    return {
        "seed": seed,
        **talk,
        "verdict": verified[TRACE]["verdict"],
        "checked": checked,
        "verified": verified,
        "metrics": measured,
        "journals": str(directory / "journals"),
        "trace": str(traces[TRACE]),
        "report": str(directory / REPORT),
        "wall_seconds": round(time.perf_counter() - began, 1),
    }


def _clear(directory: Path) -> None:
    """Remove what an earlier demonstration left, and nothing else."""
    if directory.exists() and not directory.is_dir():
        raise BadInput(f"{directory} is not a directory; name another one with --out")
    foreign = [path.name for path in directory.glob("*") if path.name not in (*PARTS, REPORT)]
    if foreign:
        raise BadInput(f"{directory} holds {foreign[0]}, which no demonstration wrote; name another one with --out")
    for part in PARTS:
        shutil.rmtree(directory / part, ignore_errors=True)
    (directory / REPORT).unlink(missing_ok=True)
    directory.mkdir(parents=True, exist_ok=True)


def _damage(original: Path, copy: Path, seed: int) -> None:
    """One node of the copy delivers an effect before its cause."""
    info, events = read_trace(original)
    mutant = MUTATORS[DAMAGE].apply(events, Random(seed))
    assert mutant is not None, "a conversation has causes and effects"
    with TraceWriter(copy, replace(info, run=f"{info.run}-damaged")) as writer:
        writer.write_all(mutant)


def _verify_and_measure(
    traces: dict[str, Path], master: str | None, conf: Iterable[tuple[str, str]], report: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Each trace's verdict, and the metrics of the true one, which the report is about."""
    from cubecast.pipeline.session import LIGHT_JVM
    from cubecast.pipeline.verdict import Verification
    from cubecast.report.build import write_trace_report
    from cubecast.report.small_or_spark import SparkIfAsked, measure_traces, verify_traces

    spark = SparkIfAsked(master, conf, LIGHT_JVM)  # a few thousand rows: compiling would cost more than it saves
    both = verify_traces(list(traces.values()), None, spark, _quietly)
    verified = {Path(one.run.directory).name: Verification((one,), both.wall_seconds) for one in both.runs}
    metrics = measure_traces([traces[TRACE]], spark, _quietly)
    write_trace_report("cubecast: the demonstration", verified[TRACE], metrics, report)
    return {name: one.to_json() for name, one in verified.items()}, metrics.to_json()["runs"][0]


def _quietly(text: str) -> None:
    """The demonstration tells its own stages."""
