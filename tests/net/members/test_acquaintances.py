"""A cluster of nodes that have nothing but `join` lists: each remembers the others, so that it forms again when all of
them were down."""

import asyncio
import json
import logging

import pytest

from cubecast.api.node import Node
from cubecast.errors import Unreachable
from cubecast.net.members import joining
from cubecast.net.members import memory as acquaintances
from support.cluster import FAST as UNHURRIED
from support.ports import free_addresses
from support.running import run, until

FAST = UNHURRIED | {"patience": 2.0, "round_length": 0.5}
"""A node that is the first waits that long for the others before it takes part alone."""


@pytest.fixture
def places(tmp_path):
    """Three addresses; each node knows the other two."""
    addresses = free_addresses(3)

    def node(number: int, *, founds: bool = False) -> Node:
        join = [] if founds else [address for address in addresses if address != addresses[number]]
        return Node(listen=addresses[number], join=join, data=tmp_path / str(number), **FAST)

    return node


async def formed(nodes: list[Node]) -> None:
    await until(lambda: all(len(node._live.machine.living) == len(nodes) for node in nodes))


async def stopped(nodes: list[Node]) -> None:
    for node in nodes:
        await node.close()


def test_a_cluster_whose_nodes_were_all_down_forms_again_with_the_same_ids(places, caplog):
    async def main():
        nodes = [places(0, founds=True), places(1), places(2)]
        for node in nodes:
            await node.start()
        await formed(nodes)
        before = [(node.id, node._live.place.incarnation) for node in nodes]
        await stopped(nodes)
        again = [places(number) for number in (2, 0, 1)]
        for node in again:
            await node.start()
        await formed(again)
        after = {node.id: node._live.place.incarnation for node in again}
        assert after == {number: incarnation + 1 for number, incarnation in before}
        async with again[0].subscribe("t") as heard:
            await again[1].publish("t", "together", wait="stable")
            assert (await heard.next(30)).data == "together"
        await stopped(again)

    with caplog.at_level(logging.WARNING):
        run(main())
    assert caplog.text.count("begins again with those it remembers") == 1, "the first says so, the others join it"


LONG = UNHURRIED | {"patience": 600.0, "round_length": 0.5}
"""Nobody waits that out in a test."""


async def started(nodes: list[Node]) -> None:
    async with asyncio.timeout(60):
        await asyncio.gather(*(node.start() for node in nodes))


def test_nodes_of_a_fixed_set_that_start_at_once_do_not_wait_out_their_patience():
    addresses = free_addresses(3)

    def node(number: int) -> Node:
        return Node(peers=dict(enumerate(addresses)), node=number, **LONG)

    async def main():
        nodes = [node(number) for number in range(3)]
        await started(nodes)
        await formed(nodes)
        await stopped(nodes)

    run(main())


def test_nodes_with_join_lists_that_all_come_back_at_once_do_not_either(tmp_path):
    addresses = free_addresses(3)

    def node(number: int, join: list[str]) -> Node:
        return Node(listen=addresses[number], join=join, data=tmp_path / str(number), **LONG)

    async def main():
        nodes = [node(0, []), node(1, addresses[:1]), node(2, addresses[:1])]
        for one in nodes:
            await one.start()
        await formed(nodes)
        for one in nodes:
            await one._live._shut()
        again = [node(number, [at for at in addresses if at != addresses[number]]) for number in range(3)]
        await started(again)
        await formed(again)
        await stopped(again)

    run(main())


def test_a_fixed_set_waits_for_a_member_that_joined_it_and_may_take_part_still(tmp_path):
    addresses = free_addresses(3)

    def node(number: int) -> Node:
        return Node(peers=dict(enumerate(addresses[:2])), node=number, data=tmp_path / str(number), **LONG)

    async def main():
        nodes = [node(0), node(1)]
        await started(nodes)
        guest = Node(listen=addresses[2], join=addresses[:1], **LONG)
        await guest.start()
        await formed([*nodes, guest])
        for one in nodes:
            await one._live._shut()
        again = [node(0), node(1)]
        await started(again)
        await formed([*again, guest])
        assert guest._live.place.incarnation == 0, "it lived on"
        await guest.close()
        await stopped(again)

    run(main())


def test_a_node_that_nobody_remembers_says_that_no_member_answers(places):
    async def main():
        with pytest.raises(Unreachable, match="no member answers"):
            await places(1).start()

    run(main())


def test_a_member_that_never_answers_is_said_to_have_taken_too_long(monkeypatch):
    async def call(member, request, *, secure):
        raise TimeoutError

    monkeypatch.setattr(joining, "call", call)
    monkeypatch.setattr(joining, "PAUSE", 0.0)

    async def main():
        with pytest.raises(
            Unreachable, match=r"no member answers at 127\.0\.0\.1:1: it took too long; is a node running"
        ):
            await Node(listen="127.0.0.1:0", join=["127.0.0.1:1"]).start()

    run(main())


def test_an_id_that_went_to_another_node_meanwhile_is_not_insisted_on(places, tmp_path):
    async def main():
        founder, away = places(0, founds=True), places(1)
        await founder.start()
        await away.start()
        number = away.id
        await away.close()
        async with Node(join=[founder.address], node=number, **FAST), places(1) as back:
            assert back.id not in (number, founder.id)
        await founder.close()

    run(main())


@pytest.mark.parametrize("content", ["", "{}", '{"node": 1, "dimension": 3, "places": {"0": 7}}', "no JSON"])
def test_a_memory_that_is_damaged_is_said_and_done_without(places, tmp_path, content, caplog):
    async def main():
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "members").write_text(content)
        async with places(0, founds=True) as founder, places(1) as node:
            assert node.id != founder.id

    run(main())
    assert "does not tell the members" in caplog.text
    remembered = json.loads((tmp_path / "1" / "members").read_text())
    assert list(remembered["places"]) == ["0"]


def test_a_node_with_a_log_waits_a_little_for_members_it_knows_and_not_for_those_that_left(tmp_path, monkeypatch):
    waited: list[set[int]] = []

    async def main():
        monkeypatch.setattr(acquaintances, "EXPECTED_FOR", 0.05)
        appear = acquaintances.Acquaintances.appear

        async def watched(self, living):
            waited.append({*self._config.peers, *self._before} - set(living()))
            await appear(self, living)

        monkeypatch.setattr(acquaintances.Acquaintances, "appear", watched)
        options = FAST | {"data": tmp_path, "log": (">",)}
        async with Node(**FAST) as founder:
            other = Node(join=[founder.address], **FAST)
            await other.start()
            async with Node(join=[founder.address], node=6, **options) as node:
                await formed([founder, other, node])
                left = other.id
                await other.close()
                await until(lambda: left in node._live.life.peers.left)
                node._live.life.on_up(founder.id)
            async with Node(join=[founder.address], node=6, **options):
                pass
        async with Node(node=6, **options):
            pass
        assert waited == [set(), set(), {0}], "nobody new; one that left; the founder, which is not there"

    run(main())
