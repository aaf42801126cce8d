"""The run of the demonstration: a conversation, a member killed in the middle of it, a newcomer, and a rest."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cubecast import __version__
from cubecast.experiments.members import Member, MemberGroup, RunFailed
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
