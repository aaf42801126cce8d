"""What a node tells of itself: who lives, what is under way, what is held and why."""

import pytest

from cubecast.ids import MessageId
from cubecast.protocol.cubecast import Cubecast, Parameters, inspection
from cubecast.protocol.cubecast.publication_packets import Publication
from cubecast.protocol.cubecast.vocabulary import Dependency, Start, bitmap

ALL = 0b1111


def node(i: int) -> Cubecast:
    machine = Cubecast(i, Parameters(2, founders=ALL, ids=ALL, window=4), initial={"t": ALL})
    machine.on_start(0.0)
    return machine


def answer_to(question: MessageId, source: int, topic: str = "t") -> Publication:
    starts = (Start(1, bitmap(ALL)),)
    depends = Dependency(*question, b"", starts)
    return Publication(0, (), topic, MessageId(source, 0, 1), (b"x", b"y"), bitmap(ALL), (), starts, (depends,), 0)


def test_a_held_publication_names_what_it_waits_for_and_how_long():
    machine = node(0)
    packet = answer_to(MessageId(2, 0, 1), source=1)
    packet.born = 10.0
    machine.on_packet(10.0, 1, packet)
    told = machine.describe(12.5)
    names = {"topic": "t", "message": [1, 0, 1], "waits_for": [2, 0, 1], "first_missing": [2, 0, 1]}
    assert (
        told["held"]
        == inspection.describe_held(machine.life, 12.5, ["t"])
        == [names | {"messages": 2, "bytes": 2, "source": "alive", "for": 2.5}]
    )
    assert told["topics"]["t"]["publishers"] == [{"node": 1, "incarnation": 0, "delivered": 0, "lag": 2}]


def test_members_and_whom_a_publication_reaches():
    machine = node(0)
    machine.on_peer_down(1.0, 3)
    assert {one: standing.alive for one, standing in inspection.standings(machine.life).items()} == {
        0: True,
        1: True,
        2: True,
        3: False,
    }
    assert inspection.destinations(machine.life, "t") == inspection.destinations(machine.life, None) == [0, 1, 2]
    assert inspection.destinations(machine.life, "never heard of") == []
    assert set(machine.life.topics) == {"t"}, "asking makes no topics"


def test_own_publications_fill_the_window_until_they_are_stable():
    machine = node(0)
    machine.publish(1.0, "t", [b"abc"])
    topic = machine.describe(1.0)["topics"]["t"]
    assert topic["window"] == {"used": 1, "size": 4}
    assert (topic["published"], topic["unstable"], topic["kept"], topic["kept_bytes"]) == (1, 1, 1, 3)
    assert topic["members"] == [0, 1, 2, 3] and topic["subscribed"] and topic["confirmed"]


def test_the_dead_are_listed_as_such():
    machine = node(0)
    machine.on_peer_down(1.0, 3)
    told = machine.describe(1.0)
    assert told["active"] and not told["settled"]
    assert [(one["node"], one["alive"]) for one in told["standings"]] == [(0, True), (1, True), (2, True), (3, False)]
    assert told["topics"]["t"]["members"] == [0, 1, 2]


@pytest.mark.interpreted
def test_of_very_many_topics_those_with_something_under_way_come_first(monkeypatch: pytest.MonkeyPatch):
    names = [f"topic.{number:04}" for number in range(3000)]
    machine = Cubecast(0, Parameters(2, founders=ALL, ids=ALL, window=4), initial=dict.fromkeys(names, ALL))
    machine.on_start(0.0)
    machine.publish(1.0, "topic.2500", [b"x"])
    machine.on_packet(1.0, 1, answer_to(MessageId(2, 0, 1), source=1, topic="topic.2700"))
    described = []
    look_at = inspection._topic
    monkeypatch.setattr(inspection, "_topic", lambda life, topic: described.append(topic) or look_at(life, topic))
    told = machine.describe(1.0, 100)
    assert list(told["topics"]) == [*names[:98], "topic.2500", "topic.2700"] and told["topics_in_all"] == 3000
    assert len(described) == 100, "what is not told is not looked at"
    assert told["held"] == machine.describe(1.0)["held"] and len(told["held"]) == 1
    assert told["waiting"] == machine.waiting() and told["waiting"]


def test_looking_changes_nothing():
    machine = node(0)
    machine.publish(1.0, "t", [b"abc"])
    assert machine.describe(1.0) == machine.describe(1.0)
    machine.invariants()
