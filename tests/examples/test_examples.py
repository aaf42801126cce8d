"""The examples run as their first lines say."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process

import pytest

from support.running import run
from support.sources import ROOT

EXAMPLES = ROOT / "examples"


async def _started(name: str, *arguments: str) -> Process:
    program = str(EXAMPLES / name)
    return await asyncio.create_subprocess_exec(
        sys.executable, program, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def _line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def _type(process: Process, text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    await process.stdin.drain()


def test_three_people_chat():
    async def main():
        ann = await _started("chat.py", "ann")
        address = (await _line(ann)).rpartition(" ")[2]
        others = [await _started("chat.py", name, "--join", address) for name in ("bob", "cid")]
        for other, name in zip(others, ("bob", "cid"), strict=True):
            assert (await _line(other)).startswith(f"-- {name} is here")
        bob, cid = others
        everybody = (ann, bob, cid)
        await _type(bob, "lunch?")
        assert [await _line(one) for one in everybody] == ["bob: lunch?"] * 3
        await _type(cid, "yes")
        assert [await _line(one) for one in everybody] == ["cid: yes"] * 3
        ann.kill()
        await _type(bob, "where is ann?")
        assert [await _line(one) for one in others] == ["bob: where is ann?"] * 2
        for one in others:
            output, errors = await one.communicate(b"")
            assert (output, one.returncode) == (b"", 0)
            assert set(errors.splitlines()) <= {b"node 0 is held faulty"}  # if it got as far while they talked

    run(main())


def test_a_chat_that_cannot_be_joined_says_so_in_one_line():
    async def main():
        process = await _started("chat.py", "ann", "--join", "127.0.0.1:1")
        _, errors = await process.communicate()
        assert process.returncode == 1
        assert errors.count(b"\n") == 1 and b"127.0.0.1:1" in errors

    run(main())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("replicated_counter.py", "all three replicas say 100\n"),
        ("task_board.py", "all three boards agree on the owner: True\n"),
    ],
)
def test_examples_that_show_themselves(name, expected):
    async def main():
        process = await _started(name)
        output, errors = await process.communicate()
        assert (output.decode(), errors.decode(), process.returncode) == (expected, "", 0)

    run(main())
