"""Two nodes that call each other end up with one connection, whoever called first, and tell of themselves."""

import asyncio

import pytest

from cubecast.addresses import Address
from cubecast.errors import BadInput, Unreachable
from cubecast.net.links.handshake import Place, Refused
from cubecast.net.live_node import LiveNode
from cubecast.net.members.directory import Directory
from cubecast.net.members.joining import Admission, apply_for_a_place
from cubecast.net.settings.config import NodeConfig
from support.cluster import FAST, cluster
from support.ports import free_addresses
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

        await until(settled)
        await asyncio.gather(*(node.close() for node in nodes))

    run(main())


def test_a_cluster_file_lets_everybody_start_at_once():
    async def main():
        peers = {node: Address.parse(address) for node, address in enumerate(free_addresses(4))}
        nodes = [LiveNode(NodeConfig(peers=peers, node=node, **FAST | {"patience": 3.0})) for node in peers]
        await asyncio.gather(*(node.start() for node in nodes))
        assert [node.place.incarnation for node in nodes] == [0] * 4
        await until(lambda: all(sum(one["alive"] for one in node.status()["members"]) == 4 for node in nodes))
        await asyncio.gather(*(node.close() for node in nodes))

    run(main())


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

    run(main())


def test_an_id_whose_process_has_just_ended_is_asked_for_again(monkeypatch):
    """Its link to the one that is asked may take a moment longer: a restart does not end there."""

    async def main():
        founder = LiveNode(NodeConfig(**FAST))
        await founder.start()
        node, held = founder.place.node ^ 1, iter([True, True])
        founder.life.directory.learn([Place(node, 4, b"earlier one", free_addresses(1)[0])])
        monkeypatch.setattr(founder.life.directory, "_is_held", lambda place: place.node != node or next(held, False))
        second = LiveNode(NodeConfig(join=(founder.address,), node=node, **FAST))
        await second.start()
        assert (second.place.node, second.place.incarnation) == (node, 5)
        await second.close()
        await founder.close()

    run(main())


@pytest.mark.parametrize("wrong", [{"join": (Address("no..host", 1),)}, {"listen": Address("no..host", 0)}])
def test_what_is_no_host_is_bad_input(wrong):
    async def main():
        with pytest.raises((BadInput, Unreachable), match=r"no\.\.host"):
            await LiveNode(NodeConfig(**wrong, **FAST)).start()

    run(main())


def test_who_lives_where_somebody_lived_does_not_call_itself(caplog):
    async def main():
        ann = LiveNode(NodeConfig(**FAST))
        await ann.start()
        bob = LiveNode(NodeConfig(join=(ann.address,), **FAST))
        await bob.start()
        await bob.close()
        former = bob.address
        caplog.set_level("INFO")
        cid = LiveNode(NodeConfig(join=(ann.address,), listen=former, **FAST))
        await cid.start()
        assert cid.place.node not in (ann.place.node, bob.place.node)
        assert "claims to be" not in caplog.text
        await asyncio.gather(ann.close(), cid.close())

    run(main())


def test_who_loses_an_id_to_somebody_else_keeps_no_link_under_it(monkeypatch):
    async def main():
        ann = LiveNode(NodeConfig(**FAST))
        await ann.start()
        bob = LiveNode(NodeConfig(join=(ann.address,), **FAST))
        await bob.start()
        lost: list[int] = []
        fair = Directory.objection

        def taken(self: Directory, place: Place) -> Refused | None:
            """Bob has accepted the newcomer when Ann finds that somebody else holds the id."""
            assert self.me is not None
            if self.me.node != ann.place.node or place.node == bob.place.node or (lost and place.node != lost[0]):
                return fair(self, place)
            if bob.link_to(place.node) is None:
                return Refused("not yet", retry=True)
            lost.append(place.node)
            return Refused("somebody else was faster", retry=False)

        cid = LiveNode(NodeConfig(join=(ann.address,), **FAST))
        kept: list[bool] = []

        async def apply(config: NodeConfig, instance: bytes, attempt: int, secure: None) -> Admission:
            kept.append(any(cid.link_to(peer.place.node) for peer in (ann, bob)))
            return await apply_for_a_place(config, instance, attempt, secure)

        monkeypatch.setattr(Directory, "objection", taken)
        monkeypatch.setattr("cubecast.net.node.life.apply_for_a_place", apply)
        await cid.start()
        assert lost and cid.place.node != lost[0] and kept == [False, False]
        await until(lambda: bob.link_to(cid.place.node) is not None and lost[0] not in bob.machine.living)
        await asyncio.gather(*(node.close() for node in (ann, bob, cid)))

    run(main())


def test_who_hangs_up_before_a_call_began_can_call_again():
    async def main():
        ann, bob = LiveNode(NodeConfig(**FAST)), LiveNode(NodeConfig(**FAST))
        await ann.start()
        await bob.start()
        peers, place = ann.life.peers, Place(5, 0, bob.instance, str(bob.address))
        ann.life.directory.learn([place])
        peers.send((5,), b"\x00")
        peers.hang_up()
        await asyncio.sleep(0)
        assert peers._dials == {}, "nothing is left of the call that was given up"
        peers.send((5,), b"\x00")
        (dial,) = peers._dials.values()
        assert not dial.task.done()
        await asyncio.gather(ann.close(), bob.close())

    run(main())


def test_status_tells_what_is_held_back_and_who_lives():
    async def main():
        async with cluster(2) as (ann, bob), bob.subscribe("t", budget=200, patience=60) as heard:
            await ann.publish_batch("t", [bytes(100)] * 20)

            async def held_back() -> bool:
                return "t" in (await bob.status())["held_back"]

            async with asyncio.timeout(30):
                while not await held_back():
                    await asyncio.sleep(0)
            status = await ann.status()
            assert [one["alive"] for one in status["members"]] == [True, True]
            assert status["topics"]["t"]["members"] == [bob.id]
            assert status["topics"]["t"]["published"] == 20
            for _ in range(20):
                await heard.next(30)

    run(main())
