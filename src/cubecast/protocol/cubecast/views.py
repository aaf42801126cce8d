"""A topic's view: a join-semilattice of entries, each written by its own node only; a newer epoch wins, then UNS."""

from cubecast.ids import NodeId
from cubecast.protocol.cubecast.copies import FIRST_EPOCH, Destinations
from cubecast.protocol.cubecast.registry import Registry
from cubecast.protocol.cubecast.vocabulary import Bitmap, Entry, Member
from cubecast.protocol.masks import ids_of


class View:
    __slots__ = ("_cache", "_entries", "_last_learned", "version")

    def __init__(self) -> None:
        self._entries: dict[NodeId, Entry] = {}
        self._cache: tuple[int, Destinations] | None = None
        self._last_learned: Destinations | None = None
        self.version = 0
        """Another one whenever something is news."""

    def merge(self, entry: Entry) -> bool:
        """True when that is news."""
        mine = self._entries.get(entry.node)
        if mine is not None and _age(mine) >= _age(entry):
            return False
        self._entries[entry.node] = entry
        self._cache = None
        self.version += 1
        return True

    def learn(self, members: Bitmap, epochs: tuple[Member, ...]) -> Destinations:
        """Being addressed is being subscribed. Publications repeat their destinations, so the last ones are kept."""
        last = self._last_learned
        if last is not None and last.members == members and last.epochs == epochs:
            return last
        self._last_learned = destinations = Destinations.carried(members, epochs)
        self.merge_destinations(destinations)
        return destinations

    def merge_destinations(self, destinations: Destinations) -> None:
        for node in ids_of(destinations.mask):
            self.merge(Entry(node, *destinations.epoch(node), True))

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries[node] for node in sorted(self._entries))

    def destinations(self, registry: Registry) -> Destinations:
        """The members minus those held faulty."""
        if self._cache is None or self._cache[0] != registry.alive:
            members = [one for one in self.entries() if one.subscribed and registry.is_alive(*one[:2])]
            mask = sum(1 << one.node for one in members)
            epochs = tuple(Member(*one[:3]) for one in members if one[1:3] != FIRST_EPOCH)
            self._cache = (registry.alive, Destinations(mask, epochs))
        return self._cache[1]

    def forget_cache(self) -> None:
        """A node lives in another incarnation now."""
        self._cache = None


def _age(entry: Entry) -> tuple[int, int, bool]:
    return (entry.incarnation, entry.number, not entry.subscribed)
