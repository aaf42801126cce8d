"""Where ids are drawn: nodes find each other by what packets mention; others make a node call few."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import cubecast
from cubecast.errors import BadInput
from cubecast.ids import ID_LIMIT
from cubecast.net.links.calling import call
from cubecast.net.links.handshake import (
    LAST_INCARNATION,
    MAGIC,
    OLDEST_VERSION,
    VERSION,
    Accepted,
    Greeting,
    Place,
    Refused,
)
from cubecast.net.members.directory import CALLS_IN_A_ROW, CONTACTS, LOOKED_AT, TOLD_AT_ONCE, Directory, Introductions
from cubecast.net.members.peers import CONTROL, _encode_places
from support.running import run, until

ME = Place(1 << 62, 0, b"me", "127.0.0.1:1")
SETTINGS = {"protocol": "brisa", "listen": "127.0.0.1:0"}


def place(number: int, incarnation: int = 0, port: int = 9) -> Place:
    return Place((1 << 61) + number, incarnation, b"%d" % number, f"127.0.0.1:{port}")


def book(connected: set[int] | None = None, most: int = 100) -> Directory:
    made = Directory(6, lambda node: node in (connected or ()), draws_ids=True, everybody=False, most=most)
    made.settle(ME)
    return made


def test_what_was_not_used_for_longest_is_forgotten_but_no_link_and_not_this_node():
    held = {place(0).node}
    known = book(held, most=10)
    known.meet(place(0))
    known.learn([place(number) for number in range(1, 9)])
    known.use(place(1).node)
    known.learn([place(number) for number in (20, 21)])
    assert len(known.places) == 10 and {ME.node, place(0).node, place(1).node} <= set(known.places)
    assert not {place(2).node, place(3).node} & set(known.places)


def test_places_that_are_all_in_use_make_no_room_for_what_others_tell():
    held = {place(number).node for number in range(2 * LOOKED_AT)}
    known = book(held, most=len(held) + 1)
    for number in range(2 * LOOKED_AT):
        known.meet(place(number))
    assert known.learn([place(1000)]) == [] and len(known.places) == len(held) + 1


def test_a_nodes_own_word_counts_more_than_what_others_say():
    connected: set[int] = set()
    known = book(connected)
    known.learn([place(1, LAST_INCARNATION, port=666)])
    assert known.objection(place(1)) is None, "nobody is kept out because of what others say"
    assert known.offer(0.0, b"x", place(1).node, 0) == (place(1).node, 0)
    known.meet(place(1))
    connected.add(place(1).node)
    assert known.learn([place(1, 7, port=666)]) == [] and known.places[place(1).node] == place(1)
    other = Place(place(1).node, 0, b"other", "127.0.0.1:5")
    refused = known.objection(other)
    assert isinstance(refused, Refused) and "in use by the node at 127.0.0.1:9" in refused.reason


@pytest.mark.parametrize("address", ["127.0.0.1:0", "nobody", ":7", "x:99999"])
def test_what_nobody_can_dial_is_not_remembered(address: str):
    assert book().learn([Place(5, 0, b"x", address)]) == []


def test_ids_have_63_bits():
    known = book()
    assert known.learn([Place(-1, 0, b"x", "127.0.0.1:9")]) == []
    for wrong in (-1, ID_LIMIT):
        refused = known.offer(0.0, b"x", wrong, 0)
        assert isinstance(refused, Refused) and "2^63" in refused.reason
    assert known.offer(0.0, b"x", ID_LIMIT - 1, 0) == (ID_LIMIT - 1, 0)


def test_a_newcomer_is_told_of_some_that_are_there():
    connected = {place(number).node for number in range(0, 100, 2)}
    known = book(connected)
    known.learn([place(number) for number in range(1, 100, 2)])
    for number in range(0, 100, 2):
        known.meet(place(number))
    told = {one.node for one in known.for_newcomers()}
    assert len(told) == CONTACTS and told <= {ME.node, *connected}


def test_one_link_tells_so_much_and_each_place_once():
    known = book(most=10_000)
    introductions = Introductions(known)
    introductions.opened(0.0, 7)
    many = [place(number) for number in range(3 * TOLD_AT_ONCE)]
    taken = introductions.heard(0.0, 7, many)
    assert len(taken) == TOLD_AT_ONCE and introductions.heard(0.0, 7, many) == []
    assert 0 < len(introductions.heard(1.0, 7, many)) < 100
    assert introductions.heard(0.0, 8, many) == [], "no link, no word"
    known.learn(taken)
    named = [place(number).node for number in range(5)]
    assert introductions.to_tell(7, named) == taken[:5] and introductions.to_tell(7, named) == []
    known.meet(place(2, incarnation=1))
    assert introductions.to_tell(7, named) == [place(2, incarnation=1)]
    assert introductions.to_tell(named[0], named[:1]) == [], "it knows where it lives"


def test_what_others_tell_makes_a_node_call_only_so_many():
    known = book(most=10_000)
    introductions = Introductions(known)
    known.learn([place(number) for number in range(CALLS_IN_A_ROW + 10)])
    made = sum(introductions.may_call(0.0, place(number).node) for number in range(CALLS_IN_A_ROW + 10))
    assert made == CALLS_IN_A_ROW and introductions.ignored == 10
    known.meet(place(3))
    assert introductions.may_call(0.0, place(3).node), "who spoke for itself is called"


def test_nodes_that_were_never_told_of_each_other_meet():
    """A chain of joins: each newcomer is told of one contact and those it has links to, the rest by introduction."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[cubecast.Node] = []
            for _ in range(6):
                join = [str(nodes[-1].address)] if nodes else []
                nodes.append(await stack.enter_async_context(cubecast.Node(**SETTINGS, join=join)))
            assert all(0 <= node.id < ID_LIMIT for node in nodes) and max(node.id for node in nodes) > 1 << 53
            heard = [await stack.enter_async_context(node.subscribe("t")) for node in nodes]
            apart = [(one, other.id) for one in range(6) for other in nodes[one + 2 :]]
            await until(lambda: any(nodes[one]._live.life.peers.is_connected(other) for one, other in apart))
            await until(lambda: all(node._live.machine.overlay.active for node in nodes))
            await nodes[2].publish("t", "all")
            assert {(await one.next()).source for one in heard} == {nodes[2].id}

    run(main())


def test_a_node_keeps_its_id_with_its_data_directory(tmp_path: Path):
    async def main() -> None:
        async with cubecast.Node(**SETTINGS) as hub:
            settings = {**SETTINGS, "join": [str(hub.address)], "data": tmp_path / "data"}
            lives = []
            for _ in range(2):
                async with cubecast.Node(**settings) as node:
                    lives.append((node.id, (await node.status())["incarnation"]))
            assert lives == [(lives[0][0], 0), (lives[0][0], 1)]
            async with cubecast.Node(**SETTINGS, join=[str(hub.address)]) as other:
                assert other.id != lives[0][0]
            (tmp_path / "data" / "id").write_text("-7")
            with pytest.raises(BadInput, match="does not hold the id of a node; remove it"):
                await cubecast.Node(**settings).start()

    run(main())


def test_an_id_that_lives_is_not_taken_twice(tmp_path: Path):
    async def main() -> None:
        async with cubecast.Node(**SETTINGS) as hub:
            joining = {**SETTINGS, "join": [str(hub.address)]}
            async with cubecast.Node(**joining, node=77) as node:
                await until(lambda: 77 in hub._live.life.peers.queued)
                with pytest.raises(BadInput, match="id 77 is in use by the node at"):
                    await cubecast.Node(**joining, node=77).start()
                assert node.id == 77

    run(main())


def test_a_flood_of_places_and_a_liar_change_little():
    """A member tells of thousands of nodes that do not exist, and that another member lives at its own address."""

    async def main() -> None:
        async with cubecast.Node(**SETTINGS) as hub, cubecast.Node(**SETTINGS, join=[str(hub.address)]) as other:
            live = hub._live
            await until(lambda: other.id in live.life.peers.queued)
            me = Place(99, 0, b"liar", "127.0.0.1:1")
            greeting = Greeting(MAGIC, OLDEST_VERSION, VERSION, "cubecast", me, live.config.signature)
            connection, answer = await call(live.address, greeting)
            assert isinstance(answer, Accepted) and answer.places == [], "no need to know everybody"
            lies = [Place(other.id, 9, b"x", "127.0.0.1:1"), *(place(number) for number in range(3000))]
            connection.send(bytes([CONTROL]) + _encode_places(lies))
            await until(lambda: live.life.peers.ignored > 0)
            known = live.life.directory.places
            assert len(known) <= TOLD_AT_ONCE + 3 and known[other.id].address == str(other.address)
            assert not live.life.peers._dials, "to know of somebody is no reason to call"
            connection.close()
            async with other.subscribe("t") as heard:
                await hub.publish("t", "still here")
                assert (await heard.next()).text() == "still here"

    run(main())


def test_who_answers_in_anothers_place_is_not_taken_for_it():
    async def main() -> None:
        async with cubecast.Node(**SETTINGS) as hub, cubecast.Node(**SETTINGS) as stranger:
            live = hub._live
            live.life.directory.learn([Place(5, 0, b"x", str(stranger.address))])
            live.life.peers.reach([5])
            await until(lambda: 5 not in live.life.directory.places)
            assert not live.life.peers.is_connected(5) and not live.life.peers.is_connected(stranger.id)

    run(main())
