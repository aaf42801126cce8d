"""Whom a node tests, and whom it suspects."""

from cubecast.protocol.cubecast import Cubecast
from cubecast.protocol.cubecast.packets import Welcome
from cubecast.protocol.cubecast.parameters import Detection, Parameters, Timer
from cubecast.protocol.cubecast.registry import Detector
from cubecast.protocol.cubecast.vocabulary import Standing
from cubecast.protocol.masks import ids_of

ALL = 0b11111111


def a_detector(node: int) -> Detector:
    return Detector(node, Parameters(dimension=3, patience=300.0, round_length=100.0))


def test_the_first_of_every_cluster_is_tested() -> None:
    tested, suspects = a_detector(4).round(0.0, ALL & ~(1 << 4))
    assert (tested, suspects) == ((5, 6, 0), ())


def test_the_first_of_a_cluster_that_takes_part_is_tested_and_every_newcomer() -> None:
    tested, _ = a_detector(4).round(0.0, ALL & ~(1 << 4), idle=1 << 0 | 1 << 1 | 1 << 3)
    assert tested == (5, 6, 2, 0, 1, 3)


def test_a_newcomer_alone_in_its_cluster_hides_nobody() -> None:
    others = 1 << 0 | 1 << 5
    tested, _ = a_detector(4).round(0.0, others, idle=1 << 0)
    assert set(tested) & set(ids_of(others)) == {5, 0}


def test_a_silent_node_behind_a_newcomer_is_suspected_after_the_patience() -> None:
    detector, idle = a_detector(4), 1 << 0
    others = 1 << 0 | 1 << 3
    suspects: list[int] = []
    for now in (0.0, 100.0, 200.0, 300.0):
        assert not suspects
        detector.heard[0] = now
        _, found = detector.round(now, others, idle=idle)
        suspects += found
    assert suspects == [3]


def test_a_newcomer_behind_others_is_suspected_by_whom_it_told() -> None:
    """It crashed before the others had heard of it: those before it in its cluster would never test it."""
    detector, others = a_detector(4), 1 << 0 | 1 << 3
    for now in (0.0, 100.0, 200.0, 300.0):
        detector.heard[0] = now
        _, suspects = detector.round(now, others, idle=1 << 3)
    assert suspects == (3,)


def test_a_joining_node_suspects_whom_it_waits_for() -> None:
    """Node 2 welcomes it, node 3, behind node 2 in its cluster, said hello and crashed."""
    parameters = Parameters(
        2, founders=0b1111, ids=0b1111, detection=Detection.DIAGNOSIS, patience=300.0, round_length=100.0
    )
    machine = Cubecast(0, parameters, incarnation=1)
    machine.on_start(0.0)
    everybody = (Standing(0, 1, True), Standing(2, 0, True), Standing(3, 1, True))
    for now in (100.0, 200.0, 300.0, 400.0, 500.0):
        machine.on_packet(now, 2, Welcome(0, (), 1, True, everybody))
        machine.on_timer(now, Timer.ROUND)
    assert machine.is_active and machine.living == [0, 2]
