"""What is stable is forgotten, and nothing else: found by its counters, or, where some are missing, by looking."""

from cubecast.ids import MessageId
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import Destinations
from cubecast.protocol.cubecast.dissemination import Dissemination
from cubecast.protocol.cubecast.parameters import Parameters
from cubecast.protocol.cubecast.publication_packets import Direct
from cubecast.protocol.cubecast.vocabulary import Life

SOURCE = Life(1, 0)
BOTH = Destinations(0b11, ())


def keeping(*batches: tuple[int, int]) -> Dissemination:
    """Node 0 received publications of node 1 with these first counters and numbers of messages, in this order."""
    kept = Dissemination(Context(0, 0, Parameters(1, founders=0b11), 0b11), "t")
    for first, count in batches:
        packet = Direct(0, (), "t", MessageId(*SOURCE, first), (b"x",) * count, BOTH.members, (), (), (), 0)
        assert kept.receive(1, SOURCE, packet, BOTH) is not None
    return kept


def firsts(kept: Dissemination) -> list[int]:
    return [copy.first for copy in kept.copies_of(SOURCE)]


def test_one_after_the_other():
    kept = keeping((1, 1), (2, 3), (5, 1))
    kept.settle_stable(SOURCE, 1)
    assert firsts(kept) == [2, 5]
    kept.settle_stable(SOURCE, 5)
    assert firsts(kept) == []


def test_across_one_that_never_came():
    kept = keeping((1, 1), (4, 1), (6, 2))
    kept.settle_stable(SOURCE, 4)
    assert firsts(kept) == [6]


def test_whatever_order_they_came_in():
    kept = keeping((5, 1), (2, 3), (1, 1))
    kept.settle_stable(SOURCE, 4)
    assert firsts(kept) == [5]


def test_not_a_publication_of_which_only_a_part_is_said_to_be_stable():
    kept = keeping((1, 1), (2, 3))
    kept.settle_stable(SOURCE, 3)
    assert firsts(kept) == [2]


def test_nor_what_was_stable_before():
    kept = keeping((1, 1), (2, 1))
    kept.settle_stable(SOURCE, 2)
    kept.settle_stable(SOURCE, 1)
    assert kept.stable[SOURCE] == 2 and firsts(kept) == []
