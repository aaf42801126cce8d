"""Postponing what a child could not deliver yet anyway, so that it leaves in one packet with what it waits for.

A forwarder i that is to hand publication m to its block s puts that off while a publication e that m names as a
dependency (or the previous one of m's source) is missing here and i itself will hand e to that block: whoever is in it
gets both from i, and delivers e first. When e arrives, e and m leave together; if e has to wait itself, m waits on.

Whom e is for is not known before it is here. Taken for it are those m is for, without the ones m excuses from e; a
block with excused members is never made to wait. Members that left between e and m can make this wrong. Then somebody
else brings e to the block and m waited for nothing, until e arrives here, which is a destination of e like the block.

Nothing waits for ever: only sources held alive are waited for, and a verdict about anybody, stability, the closing of
what faulty nodes left and the second retry tick each end the wait.
"""

from collections.abc import Iterator
from typing import Protocol

from cubecast.ids import Counter, NodeId
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import Copy
from cubecast.protocol.cubecast.vocabulary import Life, mask_from
from cubecast.protocol.hypercube.topology import cluster, first_child


class Kept(Protocol):
    """What dissemination knows."""

    def is_stable(self, source: Life, counter: Counter) -> bool: ...

    def find(self, source: Life, counter: Counter) -> Copy | None: ...


class Postponing:
    def __init__(self, context: Context, kept: Kept) -> None:
        self._context = context
        self._kept = kept
        self._waiting: dict[Life, dict[Copy, None]] = {}
        """By the source of what they wait for."""

    def postpones(self, copy: Copy, s: int, part: int) -> bool:
        """Is `part` of the own block s to get this later? The copy is woken when that may have changed."""
        awaited = self._awaited(copy, s, part)
        if awaited is None:
            return False
        copy.postponed |= part
        self._waiting.setdefault(awaited, {})[copy] = None
        return True

    def wake(self, source: Life) -> list[Copy]:
        """All that wait for something of this source; they no longer do."""
        return list(self._waiting.pop(source, ()))

    def forget(self) -> None:
        """All will be looked at again."""
        self._waiting.clear()

    def is_waiting(self, copy: Copy) -> bool:
        return any(copy in copies for copies in self._waiting.values())

    def _awaited(self, copy: Copy, s: int, part: int) -> Life | None:
        """The source of something that has to come first."""
        registry = self._context.registry
        if not registry.is_alive(*copy.source):
            return None
        concerned = part | 1 << self._context.node
        for source, counter, excused in _causes(copy):
            if excused & concerned or not registry.is_alive(*source) or self._kept.is_stable(source, counter):
                continue
            cause = self._kept.find(source, counter)
            if cause is not None:
                if cause.postponed & part:
                    return source
            elif self._hands_on(source.node, s, registry.living(copy.destinations) & ~excused):
                return source
        return None

    def _hands_on(self, root: NodeId, s: int, destinations: int) -> bool:
        """Does this node get the root's publications to these destinations by way of a cluster beyond s?"""
        me, holder = self._context.node, root
        while holder != me:
            reached = cluster(holder, me)
            child = first_child(holder, reached, destinations)
            if child is None:
                return False
            if child == me:
                return s < reached
            holder = child
        return False


def _causes(copy: Copy) -> Iterator[tuple[Life, Counter, int]]:
    """(source, counter, mask of the excused) of what the publication depends on."""
    if copy.first > 1:
        newcomers = 0
        for start in copy.packet.starts:
            if start.counter == copy.first:
                newcomers |= mask_from(start.members)
        yield copy.source, copy.first - 1, newcomers
    for dependency in copy.packet.dependencies:
        yield Life(dependency.source, dependency.incarnation), dependency.counter, mask_from(dependency.excused)
