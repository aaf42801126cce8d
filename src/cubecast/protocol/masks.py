"""Sets of node ids as bit masks: bit i is set when id i is in it."""

from collections.abc import Iterable, Iterator

from cubecast.ids import NodeId


def mask_of(ids: Iterable[NodeId]) -> int:
    mask = 0
    for i in ids:
        mask |= 1 << i
    return mask


def ids_of(mask: int) -> Iterator[NodeId]:
    """The ids in a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
