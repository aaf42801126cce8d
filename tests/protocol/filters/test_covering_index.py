"""The covering index gives what a comparison with every filter gives."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cubecast.protocol.filters import Filter, MatchingIndex, parse
from cubecast.protocol.filters.covering import CoveringIndex, witness
from protocol.filters.test_filters import FILTERS


def indexed(filters: list[Filter]) -> CoveringIndex[int]:
    matching: MatchingIndex[int] = MatchingIndex()
    index = CoveringIndex(matching)
    for key, wanted in enumerate(filters):
        matching.add(key, wanted)
        index.add(key, wanted)
    return index


@given(st.lists(FILTERS, max_size=12), FILTERS, st.sets(st.integers(0, 11)))
def test_the_index_finds_what_a_scan_finds(filters: list[Filter], asked: Filter, removed: set[int]):
    index = indexed(filters)
    for key in removed:
        index.discard(key)
    here = {key: one for key, one in enumerate(filters) if key not in removed}
    assert set(index.covering(asked)) == {key for key, one in here.items() if one.covers(asked)}
    # A filter whose first conjunction matches nothing may be passed over: it waits for its marker, like all the others.
    wanted = {key for key, one in here.items() if asked.covers(one) and not one.alternatives[0].empty}
    assert wanted <= set(index.covered(asked)) <= {key for key, one in here.items() if asked.covers(one)}


@given(FILTERS)
def test_a_witness_matches(wanted: Filter):
    event: dict[str, Any] | None = witness(wanted.alternatives[0])
    assert event is None or wanted.alternatives[0].matches(event)


def test_few_are_compared(monkeypatch):
    filters = [parse(f"topic = 't' and group = {n % 50} and price >= {n // 50}") for n in range(500)]
    index = indexed(filters)
    compared = []
    covers = Filter.covers
    monkeypatch.setattr(Filter, "covers", lambda one, other: compared.append(other) or covers(one, other))
    assert len(index.covering(filters[499])) == 10 and len(index.covered(filters[0])) == 10
    assert len(compared) == 20
