"""Whatever stands in a greeting, a node adopts nothing that it, or anybody after it, could not live with."""

import logging
import random
from typing import Any

import msgspec
import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.net.links.handshake import (
    LAST_INCARNATION,
    MAGIC,
    VERSION,
    Accepted,
    ClientGreeting,
    Greeting,
    JoinRequest,
    Place,
    Refused,
    decode_answer,
    decode_opening,
    encode,
)
from cubecast.net.live_node import LiveNode
from cubecast.net.members.memory import last_incarnation
from cubecast.net.settings.config import NodeConfig
from support.cluster import FAST
from support.running import run, until
from support.secured import Raw

SEED = 13
NUMBERS = [0, 1, -1, -2, 255, 256, 1 << 16, 1 << 31, (1 << 31) - 1, (1 << 31) - 2, 1 << 32, 1 << 63, (1 << 64) - 1]
NUMBERS += [-(1 << 31), -(1 << 63)]
TEXTS = ["", "x", "\x00", "\u202e", "x" * 257, "x" * 5000, "127.0.0.1:0", "nowhere", ":", "[::1]:99999"]
BLOBS = [b"", b"\x00", b"x" * 64, b"x" * 65, b"\xff" * 9000]
OTHERS: list[Any] = [None, True, 1.5, float("nan"), [], {}, [[[]]], {"a": 1}]
PLACE = ["place", 5, 0, b"somebody", "127.0.0.1:1"]
OPENINGS: list[list[Any]] = [
    ["node", MAGIC, VERSION, VERSION, "cubecast", PLACE[1:]],
    ["join", MAGIC, VERSION, VERSION, "cubecast", b"somebody", None, 0],
    ["client", MAGIC, VERSION, VERSION, "cubecast", "visitor", None, None],
]


def mutations(opening: list[Any]) -> list[list[Any]]:
    """Each field with each value of its own kind at its edges, and of other kinds; fields missing and too many."""
    found: list[list[Any]] = [opening[:length] for length in range(len(opening))]
    found += [[*opening, 0], [*opening, [[]] * 9]]
    for place, value in enumerate(opening):
        values = [*NUMBERS, *TEXTS, *BLOBS, *OTHERS]
        if isinstance(value, list):
            values += mutations(value)
        found += [[*opening[:place], other, *opening[place + 1 :]] for other in values]
    return found


def test_what_is_read_is_in_range_or_refused():
    read = 0
    for opening in OPENINGS:
        for mutant in mutations(opening):
            try:
                found = decode_opening(msgspec.msgpack.encode(mutant))
            except RemoteProtocolError:
                continue
            read += 1
            if isinstance(found, Greeting):
                assert 0 <= found.place.incarnation <= LAST_INCARNATION and 1 <= len(found.place.instance) <= 64
            if isinstance(found, JoinRequest):
                assert 1 <= len(found.instance) <= 64
    assert read > 50, "most of the valid greetings are no longer understood"


@pytest.mark.parametrize("newest", [1 << 31, 1 << 63, -2])
def test_answers_are_checked_as_well(newest):
    with pytest.raises(RemoteProtocolError):
        decode_answer(encode(Refused("gone", retry=True, newest_incarnation=newest)))
    with pytest.raises(RemoteProtocolError):
        decode_answer(encode(Accepted(VERSION, Place(0, newest, b"x", "127.0.0.1:1"), 3, [])))
    with pytest.raises(RemoteProtocolError):
        decode_answer(encode(Accepted(VERSION, Place(0, 0, b"x", "127.0.0.1:1"), 3, [], (1, newest))))


@pytest.mark.parametrize("kind", range(len(OPENINGS)), ids=["node", "join", "client"])
def test_a_node_survives_every_mutant_and_starts_again(kind, tmp_path, caplog):
    """Seeded: a greeting of each kind, mutated field by field, to a living node with a memory."""
    print(f"seed {SEED}")
    mutants = mutations(OPENINGS[kind])
    chosen = random.Random(SEED).sample(mutants, min(150, len(mutants)))

    async def main():
        config = NodeConfig(data=tmp_path, **FAST | {"patience": 0.5})
        node = LiveNode(config)
        await node.start()
        for mutant in chosen:
            caller = await Raw.open(node.address)
            caller.send(msgspec.msgpack.encode(mutant))
            await caller.frame()
            caller.close()
        await until(lambda: node.reception.unauthenticated == 0)
        places = node.life.directory.places.values()
        assert all(0 <= one.node < 8 and -1 <= one.incarnation <= LAST_INCARNATION for one in places)
        honest = await Raw.open(node.address)
        honest.send(encode(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "honest")))
        assert isinstance(decode_answer(await honest.frame()), Accepted)
        honest.close()
        await node.close()
        assert last_incarnation(config) >= 0
        again = LiveNode(config)
        await again.start()
        await again.close()

    with caplog.at_level(logging.ERROR):
        run(main())
    assert not [record for record in caplog.records if record.exc_info], caplog.text


def test_a_node_whose_id_is_used_up_keeps_its_memory_readable(tmp_path):
    """Somebody greeted in its name with the last incarnation there is."""

    async def main():
        config = NodeConfig(data=tmp_path, node=0, **FAST | {"patience": 0.5})
        node = LiveNode(config)
        await node.start()
        node.life.on_refused(Refused("too late", retry=True, newest_incarnation=LAST_INCARNATION))
        assert node.place.incarnation == 0
        await node.close()
        assert last_incarnation(config) == 0

    run(main())
