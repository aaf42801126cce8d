"""The demonstration: a live conversation with a crash and a newcomer, its trace judged twice, a damaged copy caught."""

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from cubecast import __version__
from cubecast.check import check_directory
from cubecast.check.mutate import MUTATORS
from cubecast.errors import BadInput
from cubecast.experiments.members import Member, MemberGroup, RunFailed
from cubecast.net.links.loop import run
from cubecast.protocol.families import find
from cubecast.report.document import require_drawing
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect
from cubecast.trace.reader import read_trace
from cubecast.trace.writer import TraceWriter

MEMBER = "cubecast.experiments.demo_talker"
MEMBERS = 8
DIMENSION = 4
QUESTIONS = 40
"""Questions each member asks before the crash, and again after the newcomer arrived."""
PATIENCE = 180.0
"""Seconds for each stage; it usually takes a few."""

Say = Callable[[str], None]


async def converse(
    directory: Path, seed: int, say: Say, *, members: int = MEMBERS, questions: int = QUESTIONS
) -> dict[str, Any]:
    """Journals and logs go below `directory`; what the members counted."""
    cluster = f"demo-{seed}"
    common = {"cluster": cluster, "dimension": DIMENSION, "journal": str(directory / "journals"), "seed": seed}
    async with MemberGroup(MEMBER, directory / "logs") as group:
        say(f"starting {members} nodes")
        await _assemble(group, members, common)
        say("they talk")
        await _talk(group, questions, questions)
        victim = list(group)[members // 2]
        say(f"node {_id(victim)} is killed while they talk")
        victim.kill()
        await group.until(lambda: victim.code is not None, PATIENCE, "the killed member to be gone")
        await _talk(group, 2 * questions, questions)
        say("another node joins, and they go on")
        helper = group.living[-1].latest["ready"]["address"]
        newcomer = await group.start("newcomer", join=[helper], **common)
        await group.until_all("ready", PATIENCE)
        await _talk(group, 3 * questions, questions)
        say("they fall silent, and everything under way arrives")
        counted = await _rest(group)
        await _leave(group)
    return {"members": members, "killed": _id(victim), "joined": _id(newcomer), "counted": counted}


def collect_conversation(directory: Path, seed: int) -> Path:
    """The journals as a trace dataset."""
    trace = directory / "trace"
    info = RunInfo(
        f"live-conversation-{seed}",
        "cubecast",
        find("cubecast").promises,
        seed=seed,
        code_version=__version__,
        parameters={"driver": "live", "workload": "conversation", "members": MEMBERS, "questions": QUESTIONS},
    )
    collect(directory / "journals", trace, info)
    return trace


async def _assemble(group: MemberGroup, members: int, common: dict[str, Any]) -> None:
    founder = await group.start("0", node=0, join=[], **common)
    await group.until_all("ready", PATIENCE)
    for number in range(1, members):
        await group.start(str(number), node=number, join=[founder.latest["ready"]["address"]], **common)
    await group.until_all("ready", PATIENCE)


async def _talk(group: MemberGroup, questions: int, of_newcomer: int) -> None:
    """Until the first members asked that many questions each since the beginning, and a newcomer as many as told."""
    partners = [_id(member) for member in group.living]
    for member in group.living:
        member.order("talk", partners=partners)

    def enough(member: Member) -> bool:
        asked: int = member.latest.get("asked", {"questions": 0})["questions"]
        return asked >= (questions if _is_first(member) else of_newcomer)

    await group.until(lambda: all(map(enough, group.living)), PATIENCE, f"{questions} questions of everybody")


def _is_first(member: Member) -> bool:
    return member.name.isdecimal()


def _id(member: Member) -> int:
    node: int = member.latest["ready"]["node"]
    return node


async def _rest(group: MemberGroup) -> dict[str, Any]:
    """Nobody asks any more; then everybody has what anybody said, twice in a row, so nothing is under way."""
    await group.ask_all("hush", "hushed", PATIENCE)
    before: dict[str, Any] = {}
    while True:
        reports = await group.ask_all("report", "report", PATIENCE)
        if reports == before and _all_agree(group, reports):
            break
        before = reports
    counted = await group.ask_all("rest", "rested", PATIENCE)
    return {str(_id(member)): counted[member.name] for member in group.living}


def _all_agree(group: MemberGroup, reports: dict[str, Any]) -> bool:
    """Is everybody as far with each member that lives as that member with itself?"""
    living = [f"{_id(member)}." for member in group.living]
    lasts = [report["last"] for report in reports.values()]
    told = {source for last in lasts for source in last if source.startswith(tuple(living))}
    return all(len({last.get(source) for last in lasts}) == 1 for source in told)


async def _leave(group: MemberGroup) -> None:
    members = group.living
    for member in members:
        member.may_end = True
        member.order("leave")
    await group.until(lambda: not group.living, PATIENCE, "everybody to leave")
    failed = [member.name for member in members if member.code]
    if failed:
        raise RunFailed(f"members {failed} did not leave in good order")


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
    verified, measured = _verify_and_measure(traces, master, conf, directory / REPORT, f"cubecast demo --seed {seed}")
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
    traces: dict[str, Path], master: str | None, conf: Iterable[tuple[str, str]], report: Path, command: str
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
    write_trace_report("cubecast: the demonstration", verified[TRACE], metrics, report, command)
    return {name: one.to_json() for name, one in verified.items()}, metrics.to_json()["runs"][0]


def _quietly(text: str) -> None:
    """The demonstration tells its own stages."""
