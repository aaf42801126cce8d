"""Nodes and clients of different releases: they speak the newest version both know, or part with both ranges named."""

import pytest

from cubecast.errors import RemoteProtocolError
from cubecast.net.links import handshake
from cubecast.net.links.calling import call
from cubecast.net.links.handshake import (
    MAGIC,
    OLDEST_VERSION,
    VERSION,
    Accepted,
    ClientGreeting,
    Greeting,
    JoinRequest,
    Place,
    Refused,
    decode_answer,
    encode,
)
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from support.cluster import FAST
from support.running import run

NEWER = VERSION + 3


def openings(oldest, newest):
    place = Place(5, 0, b"somebody", "127.0.0.1:1")
    return (
        ClientGreeting(MAGIC, oldest, newest, "cubecast", "visitor"),
        JoinRequest(MAGIC, oldest, newest, "cubecast", b"somebody", None),
        Greeting(MAGIC, oldest, newest, "cubecast", place),
    )


def answers(oldest, newest):
    """What a node says to each kind of caller that speaks these versions."""

    async def main():
        node = LiveNode(NodeConfig(**FAST))
        await node.start()
        found = []
        for opening in openings(oldest, newest):
            connection, answer = await call(node.address, opening)
            connection.close()
            found.append(answer)
        await node.close()
        return found

    return run(main())


def test_a_newer_caller_that_knows_our_version_is_answered_in_it():
    assert [type(one) for one in answers(OLDEST_VERSION, NEWER)] == [Accepted] * 3
    assert {one.version for one in answers(OLDEST_VERSION, NEWER)} == {VERSION}


def test_one_that_knows_only_newer_versions_is_refused_with_both_ranges():
    for answer in answers(VERSION + 1, NEWER):
        assert isinstance(answer, Refused) and not answer.retry
        assert f"you speak {VERSION + 1} to {NEWER}, this node {OLDEST_VERSION} to {VERSION}" in answer.reason


def test_an_older_caller_is_answered_in_its_version(monkeypatch):
    monkeypatch.setattr(handshake, "VERSION", NEWER)
    assert {one.version for one in answers(OLDEST_VERSION, VERSION)} == {VERSION}


def test_an_answer_in_a_version_that_was_not_offered_is_refused():
    place = Place(0, 0, b"", "127.0.0.1:1")
    with pytest.raises(RemoteProtocolError, match="was not offered"):
        decode_answer(encode(Accepted(NEWER, place, 3, [])))
