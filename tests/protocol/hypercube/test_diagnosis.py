"""VCube's diagnosis: the machine step by step, then its bounds in simulated worlds with crashes and returns."""

import pytest

from cubecast.errors import BadInput, LocalProtocolError, RemoteProtocolError
from cubecast.experiments.diagnosis import DiagnosisWorld, Start, measure
from cubecast.protocol.effects import CancelTimer, Observe, Send, SetTimer
from cubecast.protocol.hypercube.diagnosis import UNKNOWN, Diagnosis, DiagnosisParameters
from cubecast.protocol.hypercube.packets import PubAck, Test, TestReply
from cubecast.protocol.hypercube.topology import dimension_of

PARAMETERS = DiagnosisParameters(interval=100, timeout=10)


def machine(node: int = 0, incarnation: int = 0) -> Diagnosis:
    return Diagnosis(node, 2, PARAMETERS, incarnation=incarnation)


def test_a_round_tests_the_first_node_of_every_cluster():
    node = machine()
    assert node.on_start(5) == [SetTimer("round", 5)]
    assert node.on_timer(5, "round") == [
        SetTimer("round", 105),
        Send((1,), Test(1, UNKNOWN)),
        SetTimer(("test", 1), 15),
        Send((2,), Test(2, UNKNOWN)),
        SetTimer(("test", 2), 15),
    ]
    assert node.waiting() == [
        "node 0: cluster 1, waits for the reply of 1",
        "node 0: cluster 2, waits for the reply of 2",
    ]


def test_a_test_is_answered_with_everything_known():
    assert machine(1).on_packet(0, 0, Test(7, UNKNOWN)) == [Send((0,), TestReply(7, (-1, 0, -1, -1)))]


def test_a_reply_ends_the_test_and_brings_news():
    node = machine()
    node.on_timer(0, "round")
    assert node.on_packet(2, 2, TestReply(2, (0, -1, 0, 3))) == [
        CancelTimer(("test", 2)),
        Observe("suspect", peer=3, detail="event 3"),
    ]
    assert node.events == [0, -1, 0, 3]
    assert node.holds_correct(2) and node.holds_faulty(3)
    assert not node.holds_correct(1) and not node.holds_faulty(1)


def test_old_news_changes_nothing():
    node = machine()
    node.on_packet(0, 2, TestReply(9, (0, 4, 2, 2)))
    assert node.on_packet(1, 1, TestReply(9, (0, 4, 1, 0))) == []
    assert node.events == [0, 4, 2, 2]


def test_silence_means_faulty_and_the_next_of_the_cluster_is_tested():
    node = machine()
    node.on_timer(0, "round")
    node.on_packet(1, 2, TestReply(2, (0, -1, 0, 0)))
    node.on_timer(100, "round")  # cluster 1 has not answered yet: it is not tested twice
    assert node.on_timer(110, ("test", 2)) == [
        Observe("suspect", peer=2, detail="event 1"),
        Send((3,), Test(4, 0)),
        SetTimer(("test", 2), 120),
    ]
    assert node.on_timer(120, ("test", 2)) == [Observe("suspect", peer=3, detail="event 1")]
    assert node.events == [0, -1, 1, 1]


def test_a_node_never_heard_of_and_silent_is_faulty_for_the_first_time():
    node = machine()
    node.on_timer(0, "round")
    node.on_timer(10, ("test", 1))
    assert node.events[1] == 1
    node.on_timer(100, "round")
    assert node.on_timer(110, ("test", 1)) == [], "it was known already"
    assert node.events[1] == 1


def test_who_hears_it_is_held_faulty_becomes_a_new_incarnation():
    by_test, by_reply = machine(1), machine(1)
    new = Observe("view", peer=1, detail="new incarnation, event 2")
    assert by_test.on_packet(0, 0, Test(3, 1)) == [new, Send((0,), TestReply(3, (-1, 2, -1, -1)))]
    assert by_reply.on_packet(0, 0, TestReply(1, (-1, 1, -1, -1))) == [new]


def test_a_restarted_node_outranks_the_suspicion_of_its_last_life():
    assert machine(1, incarnation=1).events[1] == 2


def test_a_return_is_noted():
    node = machine()
    node.on_packet(0, 2, TestReply(1, (0, -1, -1, 1)))
    assert node.on_packet(0, 2, TestReply(1, (0, -1, -1, 2))) == [Observe("view", peer=3, detail="correct, event 2")]


def test_illegal_requests_and_packets():
    node = machine()
    with pytest.raises(RemoteProtocolError):
        node.on_packet(0, 1, TestReply(1, (0, 0)))
    with pytest.raises(RemoteProtocolError):
        node.on_packet(0, 1, PubAck("t", (0, 0, 1)))
    for request in (node.subscribe, node.unsubscribe):
        with pytest.raises(LocalProtocolError):
            request(0, "t")
    with pytest.raises(LocalProtocolError):
        node.publish(0, "t", [b""])
    with pytest.raises(LocalProtocolError):
        node.on_timer(0, "tea")
    with pytest.raises(BadInput):
        DiagnosisParameters(interval=10, timeout=10)
    assert node.on_peer_down(0, 1) == node.on_peer_up(0, 1) == []


# Worlds


@pytest.mark.parametrize("size", [8, 16, 32, 64])
@pytest.mark.parametrize("start", Start)
@pytest.mark.parametrize("share", [0, 4, 2])
def test_bounds_hold_for_crashes_and_returns(size: int, start: Start, share: int):
    """Several simultaneous faults too; `measure` itself insists that all fault-free nodes learn of every event."""
    d = dimension_of(size)
    result = measure(size, size // share if share else 1, seed=size + share, start=start)
    assert max(*result.crashes, *result.returns) <= d * d
    assert result.tests_per_round <= size * d
    if share == 0:
        assert sum(result.crashes) / len(result.crashes) <= d
        assert result.tests_per_round_with_faults <= size * d


@pytest.mark.parametrize("size", [128, 256])
def test_bounds_hold_in_large_cubes(size: int):
    d = dimension_of(size)
    result = measure(size, 1, seed=3, start=Start.TOGETHER)
    assert result.crashes[0] <= d + 1 <= d * d
    assert result.tests_per_round == size * d


def test_a_wrong_suspicion_is_put_right():
    """A pause longer than the time-out makes everybody suspect a correct node; its next counter clears it."""
    lab = DiagnosisWorld(8, seed=1, coded=True)
    lab.run_rounds(5)
    lab.world.pause(5)
    lab.run_rounds(4)
    assert all(lab.machine(node).holds_faulty(5) for node in range(8) if node != 5)
    lab.world.resume(5)
    lab.run_rounds(9)
    assert all(lab.machine(node).events[5] == 2 for node in range(8))


def test_everybody_crashes_but_one():
    lab = DiagnosisWorld(8, seed=2)
    lab.run_rounds(5)
    for node in range(1, 8):
        lab.world.crash(node)
    lab.run_rounds(3)
    assert [lab.machine(0).holds_faulty(node) for node in range(8)] == [False] + [True] * 7
