"""Places: the newest incarnation wins, and nobody takes an id that somebody living holds."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cubecast.net.links.handshake import Place, Refused
from cubecast.net.members.directory import RESERVED_FOR, Directory

ME = Place(0, 0, b"me", "127.0.0.1:1")
BOB = Place(1, 0, b"bob", "127.0.0.1:2")


def directory(is_connected: Callable[[int], bool] = lambda node: False) -> Directory:
    made = Directory(2, is_connected)
    made.settle(ME)
    return made


def test_what_is_newer_is_news_once():
    places = directory()
    again = Place(1, 1, b"bob", "127.0.0.1:3")
    assert places.learn([BOB, again]) == [BOB, again]
    assert places.learn([again, BOB, ME, Place(4, 0, b"outside", "127.0.0.1:4")]) == []
    assert places.places[1] == again


def test_an_id_that_is_held_is_neither_offered_nor_accepted():
    places = directory(lambda node: node == 1)
    places.learn([BOB])
    assert places.offer(0.0, b"x", None, 0) == (2, 0)
    assert "is in use" in refusal(places.offer(0.0, b"x", 1, 0)).reason
    assert "is in use" in refusal(places.objection(Place(1, 0, b"impostor", "127.0.0.1:9"))).reason
    assert places.objection(BOB) is None


def test_an_id_whose_holder_is_gone_is_offered_as_the_next_incarnation():
    places = directory()
    places.learn([BOB])
    assert places.offer(0.0, b"x", 1, 0) == (1, 1)
    stale = refusal(places.objection(Place(1, 0, b"x", "127.0.0.1:9")))
    assert stale.retry and stale.newest_incarnation == 0


def test_an_offer_is_reserved_for_a_while():
    places = directory()
    assert places.offer(0.0, b"x", None, 0) == (1, 0)
    assert places.offer(0.0, b"y", None, 0) == (2, 0)
    assert places.offer(0.0, b"x", None, 0) == (1, 0), "whoever asks again gets the same"
    assert places.offer(RESERVED_FOR + 0.1, b"z", None, 0) == (1, 0)


def test_there_are_only_so_many_ids():
    places = directory(lambda node: True)
    places.learn([Place(node, 0, b"%d" % node, "127.0.0.1:2") for node in (1, 2, 3)])
    assert "all 4 ids are taken" in refusal(places.offer(0.0, b"x", None, 0)).reason
    assert "does not exist" in refusal(places.offer(0.0, b"x", 4, 0)).reason


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-2, 3), st.binary(min_size=1, max_size=2)), max_size=12))
def test_learning_in_any_order_keeps_the_newest(found: list[tuple[int, int, bytes]]):
    places = directory()
    places.learn([Place(*one, "127.0.0.1:5") for one in found])
    newest = {
        node: max(incarnation for other, incarnation, _ in found if other == node)
        for node, incarnation, _ in found
        if 1 <= node < 4
    }
    known = {node: place.incarnation for node, place in places.places.items() if node}
    assert known == {node: incarnation for node, incarnation in newest.items() if incarnation >= -1}


def refusal(answer: object) -> Refused:
    assert isinstance(answer, Refused)
    return answer
