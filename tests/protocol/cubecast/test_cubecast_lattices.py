"""Registry, view and destinations: order of arrival and repetition do not matter."""

from hypothesis import given
from hypothesis import strategies as st

from cubecast.protocol.cubecast.copies import Destinations
from cubecast.protocol.cubecast.registry import Registry
from cubecast.protocol.cubecast.views import View
from cubecast.protocol.cubecast.vocabulary import Entry, Member, bitmap, mask_from

nodes = st.integers(0, 3)
entries = st.lists(st.builds(Entry, nodes, st.integers(0, 2), st.integers(1, 3), st.booleans()))
lives = st.lists(st.tuples(nodes, st.integers(0, 3), st.booleans()))


def view_of(facts):
    view = View()
    for fact in facts:
        view.merge(fact)
    return view.entries()


@given(entries, st.randoms())
def test_views_merge_in_any_order(facts, rng):
    shuffled = facts + facts
    rng.shuffle(shuffled)
    assert view_of(facts) == view_of(shuffled)


def registry_of(facts):
    registry = Registry(4, 0, 0b1111)
    for node, incarnation, alive in facts:
        (registry.hold_alive if alive else registry.hold_faulty)(node, incarnation)
    return registry


@given(lives, st.randoms())
def test_registries_merge_in_any_order(facts, rng):
    shuffled = facts + facts
    rng.shuffle(shuffled)
    assert registry_of(facts).standings() == registry_of(shuffled).standings()


@given(lives)
def test_a_verdict_is_never_withdrawn(facts):
    registry = Registry(4, 0, 0b1111)
    dead = set()
    for node, incarnation, alive in facts:
        (registry.hold_alive if alive else registry.hold_faulty)(node, incarnation)
        dead |= {(node, incarnation)} if not alive else set()
        assert all(registry.is_dead(life) for life in dead)
        assert all(not registry.is_alive(*life) for life in dead)


members = st.dictionaries(nodes, st.tuples(st.integers(0, 1), st.integers(1, 2)))


def destinations(epochs):
    later = tuple(Member(node, *epochs[node]) for node in sorted(epochs) if epochs[node] != (0, 1))
    return Destinations(sum(1 << node for node in epochs), later)


@given(members, members)
def test_without_is_the_difference_of_members(here, there):
    expected = {node for node, epoch in here.items() if there.get(node) != epoch}
    mask = destinations(here).without(destinations(there))
    assert {node for node in range(4) if mask >> node & 1} == expected


@given(members, lives)
def test_living_are_those_of_the_right_incarnation(epochs, facts):
    registry = registry_of(facts)
    expected = {node for node, epoch in epochs.items() if registry.is_alive(node, epoch[0])}
    mask = registry.living(destinations(epochs))
    assert {node for node in range(4) if mask >> node & 1} == expected


@given(st.integers(0, 1 << 200))
def test_bit_maps_are_as_short_as_they_can_be(mask):
    assert mask_from(bitmap(mask)) == mask
    assert len(bitmap(mask)) == -(-mask.bit_length() // 8)
