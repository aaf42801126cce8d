"""Thin clients of nodes in processes of their own, one of which is killed."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process

import cubecast
from support.running import run

COMMAND = "from cubecast.cli import main; main()"


async def _node(*arguments: str) -> tuple[Process, str]:
    program = (sys.executable, "-c", COMMAND, "node", "--json", *arguments)
    process = await asyncio.create_subprocess_exec(*program, stdout=PIPE)
    assert process.stdout is not None
    return process, json.loads(await process.stdout.readline())["address"]


async def _heard(subscription: cubecast.Subscription, wanted: str) -> list[str]:
    """Everything up to a text, gaps as `gap`."""
    events: list[str] = []
    while not events or events[-1] != wanted:
        event = await subscription.next(30)
        events.append(event.text() if isinstance(event, cubecast.Message) else "gap")
    return events


def test_clients_survive_the_kill_of_their_node():
    async def main():
        first, address = await _node()
        others = [await _node("--join", address) for _ in range(2)]
        doomed, doomed_address = others[0]
        try:
            async with cubecast.connect(doomed_address) as ann, cubecast.connect(others[1][1]) as bob:
                async with ann.subscribe("t") as of_ann, bob.subscribe("t") as of_bob:
                    await ann.publish("t", "before", wait="stable")
                    assert await _heard(of_ann, "before") == await _heard(of_bob, "before") == ["before"]
                    doomed.kill()
                    for _ in range(2):
                        assert await _heard(of_ann, "gap") == ["gap"]
                    await ann.publish("t", "after", wait="stable", timeout=30)
                    assert await _heard(of_bob, "after") == ["after"]
                    await bob.publish("t", "answer")
                    assert await _heard(of_ann, "answer") == ["after", "answer"]
                members = (await ann.status())["members"]
                assert len(members) == 3
        finally:
            for process in (first, *(one for one, _ in others)):
                if process.returncode is None:
                    process.kill()
                await process.wait()

    run(main())
