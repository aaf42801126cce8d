"""Two nodes that call each other end up with one connection, whoever called first, and tell of themselves."""

import asyncio

from cubecast.errors import BadInput
from cubecast.net.config import NodeConfig
from cubecast.net.node import LiveNode
from support.cluster import FAST, cluster
from support.running import run, until


def test_everybody_joins_at_once_and_the_links_settle():
    async def main():
        founder = LiveNode(NodeConfig(**FAST))
        await founder.start()
        others = [LiveNode(NodeConfig(join=(founder.address,), **FAST)) for _ in range(7)]
        await asyncio.gather(*(node.start() for node in others))
        nodes = [founder, *others]
        assert sorted(node.place.node for node in nodes) == list(range(8))
        assert all(node.place.incarnation == 0 for node in nodes)

        def settled() -> bool:
            return all(sum(one["connected"] for one in node.status()["members"]) == 8 for node in nodes)

        await until(settled, 20)
        await asyncio.gather(*(node.close() for node in nodes))

    run(main(), 60)


def test_who_is_refused_leaves_no_journal(tmp_path):
    async def main():
        founder = LiveNode(NodeConfig(journal=tmp_path, **FAST))
        await founder.start()
        second = LiveNode(NodeConfig(join=(founder.address,), node=0, journal=tmp_path, **FAST))
        try:
            await second.start()
            raise AssertionError("somebody took an id that is held")
        except BadInput as error:
            assert "id 0 is in use" in str(error)
        await founder.close()
        assert len(list(tmp_path.iterdir())) == 1

    run(main(), 30)


def test_status_tells_what_is_held_back_and_who_lives():
    async def main():
        async with cluster(2) as (ann, bob), bob.subscribe("t", budget=200) as heard:
            await ann.publish_batch("t", [bytes(100)] * 20)

            async def held_back() -> bool:
                return "t" in (await bob.status())["held_back"]

            async with asyncio.timeout(10):
                while not await held_back():
                    await asyncio.sleep(0)
            status = await ann.status()
            assert [one["alive"] for one in status["members"]] == [True, True]
            assert status["topics"]["t"]["members"] == [bob.id]
            assert status["topics"]["t"]["published"] == 20
            for _ in range(20):
                await heard.next(10)

    run(main(), 60)
