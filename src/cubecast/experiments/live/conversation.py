"""The run of the demonstration: a conversation, a member killed in the middle of it, a newcomer, and a rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.experiments.live.crew import Crew, Member, RunFailed
from cubecast.protocol.families import find
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import collect

MEMBER = "cubecast.experiments.live.talker"
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
    async with Crew(MEMBER, directory / "logs") as crew:
        say(f"starting {members} nodes")
        await _assemble(crew, members, common)
        say("they talk")
        await _talk(crew, questions, questions)
        victim = list(crew)[members // 2]
        say(f"node {_id(victim)} is killed while they talk")
        victim.kill()
        await crew.until(lambda: victim.code is not None, PATIENCE, "the killed member to be gone")
        await _talk(crew, 2 * questions, questions)
        say("another node joins, and they go on")
        helper = crew.living[-1].latest["ready"]["address"]
        newcomer = await crew.start("newcomer", join=[helper], **common)
        await crew.until_all("ready", PATIENCE)
        await _talk(crew, 3 * questions, questions)
        say("they fall silent, and everything under way arrives")
        counted = await _rest(crew)
        await _leave(crew)
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


async def _assemble(crew: Crew, members: int, common: dict[str, Any]) -> None:
    founder = await crew.start("0", node=0, join=[], **common)
    await crew.until_all("ready", PATIENCE)
    for number in range(1, members):
        await crew.start(str(number), node=number, join=[founder.latest["ready"]["address"]], **common)
    await crew.until_all("ready", PATIENCE)


async def _talk(crew: Crew, questions: int, of_newcomer: int) -> None:
    """Until the first members asked that many questions each since the beginning, and a newcomer as many as told."""
    partners = [_id(member) for member in crew.living]
    for member in crew.living:
        member.order("talk", partners=partners)

    def enough(member: Member) -> bool:
        asked: int = member.latest.get("asked", {"questions": 0})["questions"]
        return asked >= (questions if _is_first(member) else of_newcomer)

    await crew.until(lambda: all(map(enough, crew.living)), PATIENCE, f"{questions} questions of everybody")


def _is_first(member: Member) -> bool:
    return member.name.isdecimal()


def _id(member: Member) -> int:
    node: int = member.latest["ready"]["node"]
    return node


async def _rest(crew: Crew) -> dict[str, Any]:
    """Nobody asks any more; then everybody has what anybody said, twice in a row, so nothing is under way."""
    await crew.ask_all("hush", "hushed", PATIENCE)
    before: dict[str, Any] = {}
    while True:
        reports = await crew.ask_all("report", "report", PATIENCE)
        if reports == before and _all_agree(crew, reports):
            break
        before = reports
    counted = await crew.ask_all("rest", "rested", PATIENCE)
    return {str(_id(member)): counted[member.name] for member in crew.living}


def _all_agree(crew: Crew, reports: dict[str, Any]) -> bool:
    """Is everybody as far with each member that lives as that member with itself?"""
    living = [f"{_id(member)}." for member in crew.living]
    lasts = [report["last"] for report in reports.values()]
    told = {source for last in lasts for source in last if source.startswith(tuple(living))}
    return all(len({last.get(source) for last in lasts}) == 1 for source in told)


async def _leave(crew: Crew) -> None:
    members = crew.living
    for member in members:
        member.may_end = True
        member.order("leave")
    await crew.until(lambda: not crew.living, PATIENCE, "everybody to leave")
    failed = [member.name for member in members if member.code]
    if failed:
        raise RunFailed(f"members {failed} did not leave in good order")
