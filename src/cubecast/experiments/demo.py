"""The demonstration: a conversation on two systems, judged twice, and a damaged copy of it that must be caught."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from cubecast.check import check_directory
from cubecast.check.mutate import MUTATORS
from cubecast.errors import BadInput
from cubecast.report.document import require_drawing
from cubecast.sim.config import SimConfig
from cubecast.sim.run import simulate_to_directory
from cubecast.trace.reader import read_trace
from cubecast.trace.schema import RUN_FILE
from cubecast.trace.writer import TraceWriter

SYSTEMS = ("vcube-ps", "srpt")
DAMAGED = "damaged"
DAMAGE = "cause_after_effect"


def conversation(protocol: str, seed: int) -> SimConfig:
    """64 nodes; three ask, everybody answers once all three questions were delivered; packets overtake each other."""
    return SimConfig(
        protocol, nodes=64, publishers="100%", workload="respond:3:400", propagation="normal:100:25", seed=seed
    )


def run_demo(directory: Path, seed: int, master: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Everything below `directory`; what happened, for a table."""
    require_drawing()
    traces = {name: directory / "traces" / name for name in (*SYSTEMS, DAMAGED)}
    _clear(directory, traces.values())
    figures = {}
    for protocol in SYSTEMS:
        say(f"simulating the conversation on {protocol}")
        figures[protocol] = simulate_to_directory(conversation(protocol, seed), traces[protocol])
    _damage(traces[SYSTEMS[0]], traces[DAMAGED], seed)
    say("checking the traces with the reference checker")
    checked = {name: check_directory(path).to_json() for name, path in traces.items()}
    say("starting Spark and verifying the same traces")
    report = directory / "report.html"
    verified, measured = _with_spark(list(traces.values()), master, report)
    return {
        "seed": seed,
        "figures": figures,
        "checked": checked,
        "verified": verified,
        "measured": measured,
        "report": str(report),
    }


def _clear(directory: Path, traces: Any) -> None:
    """Remove the traces of an earlier demonstration, and nothing else."""
    for path in traces:
        if path.exists():
            if not (path / RUN_FILE).is_file():
                raise BadInput(f"{path} is in the way and is not a trace; name another directory with --out")
            shutil.rmtree(path)
    directory.mkdir(parents=True, exist_ok=True)


def _damage(original: Path, copy: Path, seed: int) -> None:
    """One node of the copy delivers an effect before its cause."""
    info, events = read_trace(original)
    mutant = MUTATORS[DAMAGE].apply(events, Random(seed))
    assert mutant is not None, "a conversation has causes and effects"
    with TraceWriter(copy, info) as writer:
        writer.write_all(mutant)


def _with_spark(traces: list[Path], master: str | None, report: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Each trace's verdict, and the metrics of all but the damaged one."""
    from cubecast.pipeline.metrics.measure import measure
    from cubecast.pipeline.session import LIGHT_JVM, spark_session
    from cubecast.pipeline.verify import verify
    from cubecast.report.build import write_trace_report

    spark = spark_session(master, jvm=LIGHT_JVM)  # a few thousand rows: compiling would cost more than it saves
    verification, metrics = verify(spark, traces), measure(spark, traces[:-1])
    write_trace_report("cubecast: the demonstration", verification, metrics, report)
    return {Path(one.run.directory).name: one.verdict for one in verification.runs}, metrics.to_json()
