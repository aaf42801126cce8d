"""The barrier: what the next publication depends on, with the members that need not wait for it.

An entry that a delivered publication depends on itself is *covered* by it and would be superfluous in the barrier, but
it is dropped only once it is stable: if the covering publication is lost with crashed nodes, nobody could name what it
covered, and a gap would go unannounced. Follows decision 0012.
"""

from operator import itemgetter
from typing import Final

from cubecast.ids import Counter, MessageId
from cubecast.protocol.cubecast.copies import Copy, Destinations
from cubecast.protocol.cubecast.dissemination import Dissemination
from cubecast.protocol.cubecast.vocabulary import Dependency, Life, Start, bitmap, mask_from

ENTRY_BYTES, START_BYTES = 40, 16
"""Their numbers when they are as large as they can be."""


_source: Final = itemgetter(0)


class _Entry:
    __slots__ = ("counter", "covered", "destinations", "starts", "witness")

    def __init__(
        self, counter: Counter, destinations: Destinations, starts: tuple[Start, ...], witness: tuple[Life, Counter]
    ) -> None:
        self.counter = counter
        self.destinations = destinations
        self.starts = starts
        self.witness = witness
        """The publication whose stability makes the entry superfluous: itself, or, for a lost one, its dependant."""
        self.covered = False


class Barrier:
    """One entry per source incarnation at most: its last publication delivered (or published) here."""

    def __init__(self, dissemination: Dissemination) -> None:
        self._dissemination = dissemination
        self._closed = dissemination.closed
        self._entries: dict[Life, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def delivered(self, copy: Copy) -> None:
        entries = self._entries
        for node, incarnation, counter, _, _ in copy.packet.dependencies:
            entry: _Entry | None
            entry = entries.get((node, incarnation))  # type: ignore[call-overload]  # cheaper than making a Life
            if entry is not None and entry.counter <= counter:
                entry.covered = True
        entries[copy.source] = _Entry(copy.last, copy.destinations, copy.packet.starts, (copy.source, copy.last))

    def lost(self, dependency: Dependency, dependant: Copy) -> None:
        """A dependency of what is being delivered was declared lost: it stays nameable as long as the dependant may."""
        source = Life(*dependency[:2])
        mine = self._entries.get(source)
        if mine is None or mine.counter < dependency.counter:
            known = dependant.destinations.keeping(~mask_from(dependency.excused))
            entry = _Entry(dependency.counter, known, dependency.starts, (dependant.source, dependant.last))
            entry.covered = True
            self._entries[source] = entry

    def published(self, copy: Copy) -> None:
        """An own publication depends on everything so far."""
        for entry in self._entries.values():
            entry.covered = True
        self._entries[copy.source] = _Entry(copy.last, copy.destinations, copy.packet.starts, (copy.source, copy.last))

    def dependencies(
        self, me: Life, destinations: Destinations
    ) -> tuple[tuple[Dependency, ...], tuple[MessageId, ...]]:
        """What a publication to these destinations must name, and which of them are direct dependencies."""
        self.prune()
        named, direct, members, epochs = [], [], destinations.members, destinations.epochs
        for source, entry in sorted(self._entries.items(), key=_source):
            if source == me:
                continue  # the own previous publication is implied by the counter
            node, incarnation = source
            known, counter = entry.destinations, entry.counter
            is_same = known.members == members and known.epochs == epochs
            excused = b"" if is_same else bitmap(destinations.without(known))
            named.append(Dependency(node, incarnation, counter, excused, entry.starts))
            if not entry.covered:
                direct.append(MessageId(node, incarnation, counter))
        return tuple(named), tuple(direct)

    def most_bytes(self, destinations: Destinations) -> int:
        """What a publication to these destinations takes at most to name all of it."""
        return sum(
            ENTRY_BYTES
            + destinations.without(entry.destinations).bit_length() // 8
            + sum(START_BYTES + len(start.members) for start in entry.starts)
            for entry in self._entries.values()
        )

    def prune(self) -> None:
        """Forget what is covered and stable: no later publication needs to name it."""
        stable, is_stable = self._dissemination.stable, self._dissemination.is_stable
        superfluous = []
        for source, entry in self._entries.items():
            if entry.covered:
                witness, counter = entry.witness
                if counter <= stable.get(witness, 0) or (self._closed and is_stable(witness, counter)):
                    superfluous.append(source)
        for source in superfluous:
            del self._entries[source]
