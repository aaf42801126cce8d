"""The index finds what a scan of all filters finds, whatever was added and removed before."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cubecast.protocol.filters import ALL, Filter, MatchingIndex, parse
from protocol.filters.test_filters import EVENTS, FILTERS

CHANGES = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), FILTERS)), max_size=30)


@given(CHANGES, st.lists(EVENTS, min_size=4, max_size=4))
def test_the_index_finds_what_a_scan_finds(changes: list[tuple[int, Filter | None]], events: list[dict[str, Any]]):
    index: MatchingIndex[int] = MatchingIndex()
    filters: dict[int, Filter] = {}
    for key, wanted in changes:
        if wanted is None:
            index.discard(key)
            filters.pop(key, None)
        else:
            index.add(key, wanted)
            filters[key] = wanted
        assert len(index) == len(filters)
    for event in events:
        expected = [key for key, wanted in filters.items() if wanted.matches(event)]
        assert index.matching(event) == expected


def test_nothing_is_left_of_what_was_removed():
    index: MatchingIndex[int] = MatchingIndex()
    texts = ("a = 1", "a in (1, 'x')", "a ^= 'ab'", "a > 1", "a < 1", "a > 1 and a < 5", "exists(a)", "not exists(a)")
    filters = [*map(parse, texts), ALL, parse("a = 1 and a = 2")]
    for _ in range(2):
        for key, wanted in enumerate(filters):
            index.add(key, wanted)
        for key in range(len(filters)):
            index.discard(key)
    kept = {name: value for name, value in vars(index).items() if name != "_added"}
    assert not any(kept.values()), kept


def test_the_attribute_that_all_share_is_passed_over():
    """A thousand filters demand the same topic and each its own user: an event is compared with few of them."""
    index: MatchingIndex[int] = MatchingIndex()
    for number in range(1000):
        index.add(number, parse(f"topic = 'orders' and user = 'u{number}'"))
    event = {"topic": "orders", "user": "u7"}
    assert index.matching(event) == [7]
    assert len(list(index._candidates(event))) <= 2


def test_intervals_far_apart_are_not_compared():
    index: MatchingIndex[int] = MatchingIndex()
    for number in range(1000):
        index.add(number, parse(f"price >= {number} and price < {number + 1}"))
    assert index.matching({"price": 500.5}) == [500]
    assert len(list(index._candidates({"price": 500.5}))) <= 4
