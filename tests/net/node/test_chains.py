"""Held messages explained, on a machine that is told by hand what arrives."""

from types import SimpleNamespace
from typing import Any

import pytest

from cubecast.ids import MessageId
from cubecast.net.node.status import MOST_LINKS, Chains
from cubecast.protocol.cubecast.family import CubecastInspector
from cubecast.protocol.cubecast.inspection import describe_held
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Start, bitmap

ALL = 0b1111


def machine() -> Cubecast:
    one = Cubecast(0, Parameters(2, founders=ALL, ids=ALL, window=4, retry=0.5, patience=3.0), initial={"t": ALL})
    one.on_start(0.0)
    return one


def publication(message: MessageId, *depends: MessageId, messages: int = 1) -> Publication:
    starts = (Start(1, bitmap(ALL)),)
    named = tuple(Dependency(*one, b"", starts) for one in depends)
    packet = Publication(0, (), "t", message, (b"abc",) * messages, bitmap(ALL), (), starts, named, 0)
    packet.born = 1.0
    return packet


def explained(one: Cubecast, connected: bool = True, most: int = 100) -> list[dict[str, Any]]:
    peers: Any = SimpleNamespace(is_connected=lambda node: connected)
    driver: Any = SimpleNamespace(inspector=CubecastInspector(one))
    return Chains(describe_held(one.life, 3.0, ["t"]), peers, driver).explained(most)


def test_a_chain_is_followed_to_what_is_missing():
    one = machine()
    first, second, third = (MessageId(source, 0, 1) for source in (2, 1, 3))
    one.on_packet(1.0, 3, publication(third, second))
    one.on_packet(1.0, 1, publication(second, first, messages=2))
    chains = {tuple(held["message"]): held["chain"] for held in explained(one)}
    assert [(link["message"], link["state"]) for link in chains[3, 0, 1]] == [
        ([1, 0, 1], "held"),
        ([2, 0, 1], "missing"),
    ]
    (missing,) = chains[1, 0, 1]
    assert chains[3, 0, 1][-1] == missing
    assert (missing["source"], missing["source_state"], missing["connected"], missing["via"]) == (2, "alive", True, 2)
    assert missing["next"] == "node 2 lives and keeps it; until this node acknowledges it comes every 0.5 s"


def test_the_first_missing_of_a_source_comes_before_the_one_that_is_named():
    one = machine()
    one.on_packet(1.0, 1, publication(MessageId(1, 0, 1), MessageId(2, 0, 7)))
    one.on_packet(1.0, 2, publication(MessageId(2, 0, 1), messages=4))
    one.on_packet(1.0, 2, publication(MessageId(2, 0, 6), messages=2))
    chains = {tuple(held["message"]): held["chain"] for held in explained(one)}
    assert [link["message"] for link in chains[1, 0, 1]] == [[2, 0, 5]]
    assert [link["message"] for link in chains[2, 0, 6]] == [[2, 0, 5]]


@pytest.mark.parametrize(
    ("is_faulty", "connected", "state", "said"),
    [
        (False, True, "alive", "lives and keeps it"),
        (False, False, "alive", "the link to node 2 is lost; it is dialled again, and after 3 s"),
        (True, False, "faulty", "what nobody has is announced as a gap (what faulty nodes left is not settled"),
    ],
)
def test_what_comes_next_depends_on_the_source(is_faulty, connected, state, said):
    one = machine()
    one.on_packet(1.0, 1, publication(MessageId(1, 0, 1), MessageId(2, 0, 1)))
    if is_faulty:
        one.on_peer_down(2.0, 2)
    ((missing,),) = (held["chain"] for held in explained(one, connected))
    assert missing["source_state"] == state and said in missing["next"]


def test_chains_and_lists_have_an_end():
    one = machine()
    for counter in range(40, 0, -1):
        one.on_packet(1.0, 1, publication(MessageId(1, 0, counter), MessageId(2, 0, 1)))
    assert len(explained(one, most=10)) == 10
    assert all(len(held["chain"]) <= MOST_LINKS for held in explained(one))
    assert [held["chain"][-1]["message"] for held in explained(one)][-1] == [2, 0, 1]
