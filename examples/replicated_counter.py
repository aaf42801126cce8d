"""A counter that every replica may add to, and that all agree on once they have heard each other.

Each replica publishes its own total, never a difference: whoever missed a message is right again with the next one,
and a replica that joins late asks the others to repeat theirs.

    python examples/replicated_counter.py
"""

import asyncio

import cubecast

TOPIC = "counter.visits"
QUESTION = "what are your totals?"


class ReplicatedCounter:
    def __init__(self, node: cubecast.Node) -> None:
        self._node = node
        self._totals: dict[int, int] = {}
        self._own = 0
        self._changed = asyncio.Event()

    @property
    def value(self) -> int:
        return sum(self._totals.values())

    async def add(self, amount: int = 1) -> None:
        self._own += amount
        await self._node.publish(TOPIC, {"total": self._own})

    async def follow(self) -> None:
        """Runs until cancelled."""
        async with self._node.subscribe(TOPIC) as heard:
            await self._node.publish(TOPIC, QUESTION)
            async for event in heard:
                if isinstance(event, cubecast.Gap):
                    await self._node.publish(TOPIC, QUESTION)
                elif event.data == QUESTION:
                    await self._node.publish(TOPIC, {"total": self._own})
                else:
                    self._totals[event.source] = event.data["total"]
                    self._changed.set()

    async def reaches(self, value: int) -> None:
        while self.value != value:
            self._changed.clear()
            await self._changed.wait()


async def main() -> None:
    async with cubecast.Node() as ann, cubecast.Node(join=[ann.address]) as bob, asyncio.TaskGroup() as tasks:
        counters = [ReplicatedCounter(ann), ReplicatedCounter(bob)]
        following = [tasks.create_task(counter.follow()) for counter in counters]
        for _ in range(10):
            await counters[0].add()
            await counters[1].add(10)
        for counter in counters:
            await counter.reaches(110)

        async with cubecast.Node(join=[bob.address]) as cid:
            late = ReplicatedCounter(cid)
            following.append(tasks.create_task(late.follow()))
            await late.reaches(110)
            await late.add(-10)
            for counter in (*counters, late):
                await counter.reaches(100)
            print("all three replicas say", late.value)
            for task in following:
                task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
