"""Whom a node tests, and whom it suspects."""

from cubecast.protocol.cubecast.detector import Detector
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.masks import ids_of

ALL = 0b11111111


def a_detector(node: int) -> Detector:
    return Detector(node, Parameters(dimension=3, patience=300.0, round_length=100.0))


def test_the_first_of_every_cluster_is_tested() -> None:
    tested, suspects = a_detector(4).round(0.0, ALL & ~(1 << 4))
    assert (tested, suspects) == ((5, 6, 0), ())


def test_behind_a_newcomer_the_first_that_takes_part_is_tested_too() -> None:
    tested, _ = a_detector(4).round(0.0, ALL & ~(1 << 4), idle=1 << 0 | 1 << 1)
    assert tested == (5, 6, 0, 2)


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
