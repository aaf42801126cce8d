"""Finds contradictions between sequences: what no single order of everything can satisfy."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from cubecast.ids import MessageId


def left_in_circles(sequences: Iterable[Sequence[MessageId]]) -> set[MessageId]:
    """Messages on, or squeezed between, cycles of the union of these orders; empty when there are none."""
    after: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    before: defaultdict[MessageId, set[MessageId]] = defaultdict(set)
    left: set[MessageId] = set()
    for sequence in sequences:
        left.update(sequence)
        for a, b in pairwise(sequence):
            after[a].add(b)
            before[b].add(a)
    for into, out in ((before, after), (after, before)):
        degree = {message: len(into[message] & left) for message in left}
        free = [message for message, count in degree.items() if not count]
        while free:
            message = free.pop()
            left.discard(message)
            for following in out[message]:
                if following in left:
                    degree[following] -= 1
                    if not degree[following]:
                        free.append(following)
    return left
