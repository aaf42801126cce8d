"""The tree that brokers form: paths, distances, neighbourhoods.

All brokers of a run share one object; it never changes. Rooted once, so that a path costs its length.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from cubecast.errors import BadInput
from cubecast.ids import NodeId

Path = tuple[NodeId, ...]


class BrokerTree:
    def __init__(self, edges: Iterable[tuple[NodeId, NodeId]], brokers: Iterable[NodeId] = ()) -> None:
        neighbours: dict[NodeId, list[NodeId]] = {broker: [] for broker in brokers}
        count = 0
        for a, b in edges:
            if a == b:
                raise BadInput(f"broker {a} is linked to itself")
            neighbours.setdefault(a, []).append(b)
            neighbours.setdefault(b, []).append(a)
            count += 1
        if not neighbours:
            raise BadInput("a tree of brokers has at least one")
        self.neighbours: Mapping[NodeId, tuple[NodeId, ...]] = {
            broker: tuple(sorted(of)) for broker, of in sorted(neighbours.items())
        }
        self._parent, self._depth = _rooted(self.neighbours)
        missing = self.neighbours.keys() - self._depth.keys()
        if missing:
            raise BadInput(
                f"no link leads from broker {min(self.neighbours)} to broker {min(missing)}; brokers form one tree"
            )
        if count != len(self.neighbours) - 1:
            raise BadInput(
                f"{len(self.neighbours)} brokers need {len(self.neighbours) - 1} links, not {count}: they form a cycle"
            )
        self.path = lru_cache(maxsize=1 << 16)(self._path)
        self.distance = lru_cache(maxsize=1 << 16)(self._distance)
        self.within = lru_cache(maxsize=1 << 12)(self._within)

    def __len__(self) -> int:
        return len(self.neighbours)

    def _path(self, start: NodeId, end: NodeId) -> Path:
        """The brokers behind `start` up to and including `end`."""
        up, down = [], []
        parent, depth = self._parent, self._depth
        while start != end:
            if depth[start] >= depth[end]:
                start = parent[start]
                up.append(start)
            else:
                down.append(end)
                end = parent[end]
        return tuple(up + down[::-1])

    def _distance(self, a: NodeId, b: NodeId) -> int:
        return len(self.path(a, b))

    def _within(self, centre: NodeId, radius: int) -> frozenset[NodeId]:
        """Everybody at most so many hops from `centre`, without it."""
        found, frontier = {centre}, [centre]
        for _ in range(radius):
            frontier = [near for broker in frontier for near in self.neighbours[broker] if near not in found]
            found.update(frontier)
        return frozenset(found - {centre})

    def side(self, me: NodeId, other: NodeId) -> NodeId | None:
        """The neighbour of `me` that `other` is behind; None for `me` itself."""
        return self.path(me, other)[0] if other != me else None

    def farthest(self, broker: NodeId) -> NodeId:
        return max(self.neighbours, key=lambda one: (self.distance(broker, one), -one))

    def between(self, a: NodeId, broker: NodeId, b: NodeId) -> bool:
        """Is the broker on the path from a to b, ends included?"""
        return self.distance(a, broker) + self.distance(broker, b) == self.distance(a, b)

    def beyond(self, me: NodeId, neighbour: NodeId) -> tuple[NodeId, ...]:
        """The next brokers behind `neighbour`, seen from `me`, which may be farther away than one hop."""
        back = self.path(neighbour, me)[0]
        return tuple(broker for broker in self.neighbours[neighbour] if broker != back)


def _rooted(neighbours: Mapping[NodeId, Sequence[NodeId]]) -> tuple[dict[NodeId, NodeId], dict[NodeId, int]]:
    root = next(iter(neighbours))
    parent, depth, stack = {root: root}, {root: 0}, [root]
    while stack:
        broker = stack.pop()
        for near in neighbours[broker]:
            if near not in depth:
                parent[near], depth[near] = broker, depth[broker] + 1
                stack.append(near)
    return parent, depth


def read_links(text: str) -> BrokerTree:
    """A tree as people write it: pairs of ids, such as `0-1 0-2 1-3`, with spaces or commas between them."""
    edges = []
    for link in text.replace(",", " ").split():
        one, dash, other = link.partition("-")
        if not (dash and one.isdecimal() and other.isdecimal()):
            raise BadInput(f"links: {link!r} is no pair of brokers; write 0-1 0-2 1-3")
        edge = int(one), int(other)
        if edge in edges or edge[::-1] in edges:
            raise BadInput(f"links: {link} is there twice; brokers form a tree")
        edges.append(edge)
    try:
        return BrokerTree(edges, [0] if not edges else ())
    except BadInput as error:
        raise BadInput(f"links: {error}") from None


def check_faults(tree: BrokerTree, faults: int) -> None:
    """f faults are survived on any path of 2f + 1 brokers; where no path is as long, fewer are meant."""
    longest = 1 + max(tree.distance(tree.farthest(tree.farthest(min(tree.neighbours))), one) for one in tree.neighbours)
    if 2 * faults + 1 > max(longest, 1):
        raise BadInput(
            f"faults = {faults} speaks of paths of {2 * faults + 1} brokers, and the longest path of this tree has "
            f"{longest}; at most faults = {(longest - 1) // 2} is possible"
        )


def at_most(tree: BrokerTree, faults: int, faulty: Collection[NodeId]) -> bool:
    """Are at most f of the brokers on any path of 2f + 1 among the faulty?"""
    for one in faulty:
        for other in tree.within(one, 2 * faults):
            path = (one, *tree.path(one, other))
            if sum(broker in faulty for broker in path) > faults:
                return False
    return faults > 0 or not faulty


def line(count: int) -> BrokerTree:
    return BrokerTree(((broker, broker + 1) for broker in range(count - 1)), range(count))


def binary(depth: int) -> BrokerTree:
    """A complete binary tree: the root 0, the children of b are 2b + 1 and 2b + 2."""
    count = (1 << depth + 1) - 1
    return BrokerTree((((broker - 1) // 2, broker) for broker in range(1, count)), range(count))
