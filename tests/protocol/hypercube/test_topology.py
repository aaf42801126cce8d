"""The cube's closed forms against the definition followed word by word, and the worked examples."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecast.errors import BadInput
from cubecast.protocol.hypercube.topology import (
    MAX_DIMENSION,
    block,
    children,
    cluster,
    cluster_members,
    dimension_of,
    first_child,
    tree,
)
from cubecast.protocol.masks import ids_of, mask_of


def dumb_cluster(i: int, s: int) -> list[int]:
    """c(i, s): the neighbour across dimension s, then that neighbour's own smaller clusters."""
    j = i ^ 2 ** (s - 1)
    return [j] + [k for smaller in range(1, s) for k in dumb_cluster(j, smaller)]


def dumb_first(i: int, s: int, live: Iterable[int]) -> int | None:
    alive = set(live)
    return next((j for j in dumb_cluster(i, s) if j in alive), None)


def dumb_children(i: int, h: int, live: Iterable[int]) -> tuple[int, ...]:
    alive = set(live)
    found = (dumb_first(i, s, alive) for s in range(1, h + 1))
    return tuple(j for j in found if j is not None)


@st.composite
def cubes(draw: st.DrawFn, most: int = 7) -> tuple[int, int, set[int]]:
    """(dimension, a node, live ids with that node among them)."""
    d = draw(st.integers(1, most))
    node = draw(st.integers(0, 2**d - 1))
    live = draw(st.one_of(st.just(set(range(2**d))), st.sets(st.integers(0, 2**d - 1))))
    return d, node, live | {node}


@given(cubes())
def test_clusters_agree_with_the_definition(cube):
    d, i, _ = cube
    for s in range(1, d + 1):
        assert cluster_members(i, s) == dumb_cluster(i, s)
        assert list(ids_of(block(i, s))) == sorted(dumb_cluster(i, s))
        assert all(cluster(i, j) == s == cluster(j, i) for j in dumb_cluster(i, s))


@given(cubes())
def test_children_agree_with_the_definition(cube):
    d, i, live = cube
    for h in range(d + 1):
        assert children(i, h, mask_of(live)) == dumb_children(i, h, live)


@given(st.integers(0, 2**MAX_DIMENSION - 1), st.integers(1, MAX_DIMENSION), st.integers(0, 60), st.randoms())
def test_first_child_of_the_largest_cube_agrees_with_the_closed_list(i, s, count, rng):
    live = {rng.randrange(2**MAX_DIMENSION) for _ in range(count)}
    expected = next((j for j in cluster_members(i, s) if j in live), None)
    assert first_child(i, s, mask_of(live)) == expected


@pytest.mark.parametrize("i", [0, 1, 4095, 8191, 5461])
def test_largest_clusters_agree_with_the_definition(i):
    assert cluster_members(i, MAX_DIMENSION) == dumb_cluster(i, MAX_DIMENSION)


@given(cubes(most=9))
def test_a_tree_reaches_every_live_node_exactly_once(cube):
    d, root, live = cube
    forwards = tree(root, d, mask_of(live))
    reached = [child for targets in forwards.values() for child in targets]
    assert sorted([root, *reached]) == sorted(live)


@given(cubes(most=9), st.data())
def test_whoever_receives_covers_the_rest_of_its_block(cube, data):
    """Even a node that is not the first of its block: height cluster − 1 spans exactly the block, and no more."""
    d, i, live = cube
    s = data.draw(st.integers(1, d))
    member = data.draw(st.sampled_from(cluster_members(i, s)))
    alive = mask_of(live | {member})
    reached, worklist = [], [(member, s - 1)]
    while worklist:
        node, h = worklist.pop()
        reached.append(node)
        worklist += [(child, cluster(node, child) - 1) for child in children(node, h, alive)]
    assert sorted(reached) == sorted(ids_of(alive & block(i, s)))


@pytest.mark.parametrize("d", range(1, MAX_DIMENSION + 1))
def test_the_full_tree_is_binomial(d):
    root = 5 % 2**d
    forwards = tree(root, d, (1 << 2**d) - 1)
    depth = {root: 0}
    for node in forwards:  # parents come before their children
        depth |= dict.fromkeys(forwards[node], depth[node] + 1)
    assert len(forwards[root]) == d == max(depth.values())
    assert all(depth[i] == (i ^ root).bit_count() for i in range(2**d))


def test_full_tree_of_the_largest_cube_covers_it():
    forwards = tree(4711, MAX_DIMENSION, (1 << 2**MAX_DIMENSION) - 1)
    assert sorted(forwards) == list(range(2**MAX_DIMENSION))


EVERYONE = mask_of(range(8))


def test_worked_examples():
    assert cluster_members(0, 3) == [4, 5, 6, 7]
    assert cluster_members(1, 3) == [5, 4, 7, 6]
    assert cluster_members(2, 3) == [6, 7, 4, 5]
    assert cluster_members(5, 3) == [1, 0, 3, 2]
    assert set(children(0, 3, EVERYONE)) == {1, 2, 4}
    assert set(children(4, 2, EVERYONE)) == {5, 6}
    assert tree(2, 3, EVERYONE)[4] == (5,)
    odd = mask_of({0, 1, 3, 5, 7})
    assert set(children(0, 3, odd)) == {1, 3, 5}
    assert tree(0, 3, odd)[5] == (7,)
    few = mask_of({0, 3, 4})
    assert set(children(0, 3, few)) == {3, 4}
    assert children(4, 2, few) == ()
    some = mask_of({0, 2, 3, 5, 7})
    assert children(2, 3, some) == (3, 0, 7)
    assert tree(2, 3, some)[7] == (5,)


@pytest.mark.parametrize("size", [2, 4, 1024, 8192])
def test_powers_of_two_are_cubes(size):
    assert 2 ** dimension_of(size) == size


@pytest.mark.parametrize("size", [-8, 0, 1, 3, 6, 100, 16384])
def test_other_sizes_are_refused(size):
    with pytest.raises(BadInput, match="power of two"):
        dimension_of(size)


@given(st.sets(st.integers(0, 300)))
def test_masks_and_ids_are_each_others_inverse(ids):
    assert list(ids_of(mask_of(ids))) == sorted(ids)
