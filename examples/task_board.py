"""A task board kept by its users' own processes: tasks are opened, claimed, commented and closed.

Causal order does the work: whoever claims a task has seen it opened, so nobody ever hears of a claim for a task it
does not know. Only two claims made at the same time need a rule, and the rule needs no vote: the smaller node id gets
the task.

    python examples/task_board.py
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import cubecast

TOPIC = "board.tasks"


@dataclass
class Task:
    title: str
    claimed_by: set[int] = field(default_factory=set)
    comments: list[str] = field(default_factory=list)
    is_done: bool = False

    @property
    def owner(self) -> int | None:
        return min(self.claimed_by, default=None)


class Board:
    def __init__(self, node: cubecast.Node) -> None:
        self._node = node
        self.tasks: dict[str, Task] = {}
        self.is_ready = asyncio.Event()
        self._changed = asyncio.Event()

    async def say(self, verb: str, title: str, text: str = "") -> None:
        await self._node.publish(TOPIC, {"verb": verb, "title": title, "text": text})

    async def follow(self) -> None:
        """Runs until cancelled. A gap would mean that the board may be wrong, so it is raised."""
        async with self._node.subscribe(TOPIC, gaps="raise") as heard:
            self.is_ready.set()
            async for message in heard:
                self._apply(message.data, message.source)
                self._changed.set()

    def _apply(self, said: dict[str, str], by: int) -> None:
        title = said["title"]
        if said["verb"] == "open":
            self.tasks.setdefault(title, Task(title))
            return
        task = self.tasks[title]  # there, because the speaker had seen it
        match said["verb"]:
            case "claim":
                task.claimed_by.add(by)
            case "comment":
                task.comments.append(said["text"])
            case "close":
                task.is_done = True

    async def until(self, condition: Callable[["Board"], bool]) -> None:
        while not condition(self):
            self._changed.clear()
            await self._changed.wait()


async def use(boards: list[Board]) -> None:
    """The first opens a task, the others claim it at the same time, and one of them closes it."""
    first, *others = boards
    await first.say("open", "write docs")
    for board in others:
        await board.until(lambda board: "write docs" in board.tasks)
    await asyncio.gather(*(board.say("claim", "write docs") for board in others))
    for board in boards:
        await board.until(lambda board: len(board.tasks["write docs"].claimed_by) == 2)
    await others[0].say("comment", "write docs", "half done")
    await others[0].say("close", "write docs")
    for board in boards:
        await board.until(lambda board: board.tasks["write docs"].is_done)
        assert board.tasks["write docs"].comments == ["half done"]
    owners = {board.tasks["write docs"].owner for board in boards}
    print("all three boards agree on the owner:", len(owners) == 1)


async def main() -> None:
    async with AsyncExitStack() as stack:
        ann = await stack.enter_async_context(cubecast.Node())
        others = [await stack.enter_async_context(cubecast.Node(join=[ann.address])) for _ in range(2)]
        boards = [Board(node) for node in (ann, *others)]
        following = [asyncio.create_task(board.follow()) for board in boards]
        for board in boards:
            await board.is_ready.wait()
        await use(boards)
        for task in following:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
