"""The virtual hypercube: clusters, spanning trees, blocks. Pure functions, nothing remembered.

A set of ids is an int used as a bit mask (bit i set = id i is in it): intersection, emptiness and the first live id of
a block cost a few word operations even with 8,192 ids, and a mask travels in a packet as it is.

Symbols of the papers: i, j, k nodes · s cluster number, 1 … d · d dimension · h height of a subtree · c(i, s) the
s-th cluster of i, an ordered list of 2^(s−1) ids. `docs/papers/vcube.md` maps the papers' functions to these.
"""

from cubecast.errors import BadInput
from cubecast.ids import NodeId

MAX_DIMENSION = 13


def dimension_of(size: int) -> int:
    """d for a cube of `size` ids; refuses what is not a power of two between 2 and 2^13."""
    if size < 2 or size & (size - 1) or size > 1 << MAX_DIMENSION:
        raise BadInput(f"a hypercube has 2, 4, 8 … {1 << MAX_DIMENSION} ids, not {size}; round up to a power of two")
    return size.bit_length() - 1


def cluster(i: NodeId, j: NodeId) -> int:
    """Number of the cluster of i that holds j (and of the cluster of j that holds i)."""
    return (i ^ j).bit_length()


def cluster_members(i: NodeId, s: int) -> list[NodeId]:
    """c(i, s) in the papers' order: its k-th element is i XOR 2^(s−1) XOR k."""
    start = i ^ (1 << (s - 1))
    return [start ^ k for k in range(1 << (s - 1))]


def block(i: NodeId, s: int) -> int:
    """The ids of c(i, s) as a mask; they are 2^(s−1) neighbours, aligned."""
    size = 1 << (s - 1)
    base = (i ^ size) & ~(size - 1)
    return ((1 << size) - 1) << base


def first_child(i: NodeId, s: int, live: int) -> NodeId | None:
    """The first element of c(i, s) that is live, or None.

    The list is ordered by XOR distance from its first element, so the first live one is found by halving the block
    s − 1 times, keeping to the nearer half whenever it holds a node.
    """
    size = 1 << (s - 1)
    nearest = i ^ size
    if live >> nearest & 1:
        return nearest
    base = nearest & ~(size - 1)
    rest = live >> base & (1 << size) - 1
    if not rest:
        return None
    while size > 1:
        size >>= 1
        low, high = rest & (1 << size) - 1, rest >> size
        upper = bool(nearest & size)
        if not (high if upper else low):
            upper = not upper
        rest = high if upper else low
        base += size if upper else 0
    return base


def children(i: NodeId, h: int, live: int) -> tuple[NodeId, ...]:
    """First live node of each cluster 1 … h of i: its children in a subtree of height h.

    A root uses h = d; a node that received from j uses h = cluster(i, j) − 1, which covers exactly the rest of the
    block even when i was not the first id of it.
    """
    # DEVIATION vcube algorithm 1: the printed range 1 < s leaves out cluster 1; every example includes it.
    found = (first_child(i, s, live) for s in range(1, h + 1))
    return tuple(child for child in found if child is not None)


def tree(root: NodeId, d: int, live: int) -> dict[NodeId, tuple[NodeId, ...]]:
    """Who forwards to whom when `root` broadcasts to `live`, for people, tests and checks of small cubes."""
    result = {}
    worklist = [(root, d)]
    while worklist:
        i, h = worklist.pop()
        result[i] = children(i, h, live)
        worklist += [(k, cluster(i, k) - 1) for k in result[i]]
    return result
