"""Agreeing on what faulty sources left behind.

Whenever this node holds another incarnation faulty it tells everybody what it has of faulty sources, and whom it holds
faulty. An announcement counts only if its verdicts include ours: its sender then accepts nothing from any of them any
more, so what it does not name it can get only from somebody who names it. Once the announcements of all living nodes
count, what nobody names is lost for good. Once, besides, everybody knows all destinations to have what is left
(*done*), the faulty are closed: their state is forgotten and nothing of them is accepted again. Follows decision 0015.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cubecast.ids import Counter, NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import Copy
from cubecast.protocol.cubecast.packets import Settle, SettlePart
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.cubecast.vocabulary import Holding, Life
from cubecast.protocol.masks import ids_of

# Announcements that are too large for one packet: cut by who sends them, put together by who gets them.
#
# A node with very many topics may have something of a faulty source on each of them. Nothing is concluded from a part
# of an announcement: what it does not name would count as lost.

MOST_PARTS = 4096


def split(packet: Settle, most_bytes: int) -> list[Settle | SettlePart]:
    """The announcement as it is, or in pieces of so many bytes of holdings, as `_weight` estimates.

    Only the last piece asks for an answer.
    """
    shares = list(_shares(packet.holdings, most_bytes))
    if len(shares) == 1:
        return [packet]
    last = len(shares) - 1
    return [
        SettlePart(
            packet.by,
            packet.dead,
            packet.version,
            packet.asking and part == last,
            packet.faulty,
            part,
            len(shares),
            share,
        )
        for part, share in enumerate(shares)
    ]


def _shares(holdings: Sequence[Holding], most_bytes: int) -> Iterator[tuple[Holding, ...]]:
    start, size = 0, 0
    for index, holding in enumerate(holdings):
        more = _weight(holding)
        if size + more > most_bytes and index > start:
            yield tuple(holdings[start:index])
            start, size = index, 0
        size += more
    yield tuple(holdings[start:])


def _weight(holding: Holding) -> int:
    """Bytes it takes at most, if its counters are as large as they can be."""
    return 32 + 4 * len(holding.topic) + 20 * len(holding.ranges)


class Pieces:
    """Per node, those of its newest announcement."""

    def __init__(self) -> None:
        self._pieces: dict[NodeId, dict[int, SettlePart]] = {}

    def add(self, sender: NodeId, packet: SettlePart) -> Settle | None:
        """The announcement, when this was the last piece that was missing."""
        pieces = self._pieces.setdefault(sender, {})
        known = next(iter(pieces.values()), packet)
        if (packet.by, packet.version) < (known.by, known.version):
            return None
        if (packet.by, packet.version, packet.parts) != (known.by, known.version, known.parts):
            pieces.clear()
        pieces[packet.part] = packet
        if len(pieces) < packet.parts:
            return None
        del self._pieces[sender]
        holdings = tuple(holding for part in range(packet.parts) for holding in pieces[part].holdings)
        asking = any(piece.asking for piece in pieces.values())
        return Settle(packet.by, packet.dead, packet.version, asking, packet.faulty, holdings)

    def clear(self) -> None:
        self._pieces.clear()


# Settling.


class Settlement:
    def __init__(self, context: Context, topics: Mapping[Topic, TopicState], version: int) -> None:
        self._context = context
        self._topics = topics
        self._heard: dict[NodeId, Settle] = {}
        self.version = version
        """Of the last announcement: only the newest one of a node counts. What is said again keeps its version, or the
        pieces of a large announcement could overtake those of the one before, and none would ever be complete."""
        self._said: tuple[tuple[Life, ...], tuple[Holding, ...]] | None = None
        """What it said."""
        self._announced: tuple[Holding, ...] = ()
        self.pieces = Pieces()
        """Of announcements that are not complete yet."""
        self.open = False
        """Something about faulty nodes is not settled."""
        self.must_announce = False

    # Steps

    def node_died(self, life: Life) -> None:
        self.open = self.must_announce = True
        self._context.busy = True
        verdicts = dict(self._context.dead) | {life.node: life.incarnation}
        self._context.dead = tuple(Life(*one) for one in sorted(verdicts.items()))
        for topic in self._topics.values():
            for source in topic.dissemination.sources():
                if self._context.registry.is_dead(source):
                    topic.dissemination.source_died(source)

    def receive(self, sender: NodeId, packet: Settle) -> None:
        heard = self._heard.get(sender)
        if heard is not None and (heard.by, heard.version) > (packet.by, packet.version):
            return
        self._heard[sender] = packet
        for topic, copy in self._orphans():
            if _names(packet, topic, copy.source, copy.first):
                copy.covered |= 1 << sender
            self._topics[topic].dissemination.advance(copy)

    def announce(self) -> None:
        """To everybody: our verdicts or what we have changed."""
        self.must_announce = False
        self._announced = self._holdings()
        self._send(tuple(ids_of(self._context.registry.others)), asking=False)

    def answer(self, sender: NodeId) -> None:
        self._send((sender,), asking=False)

    def echo(self, sender: NodeId, packet: Settle) -> None:
        """A joining node has nothing of anybody and accepts nothing: it agrees with whoever asks."""
        self.version, self._said = self.version + 1, None
        answer = Settle(self._context.by, (), self.version, False, packet.faulty, ())
        self._context.send((sender,), answer)

    def tick(self) -> None:
        if not self.open:
            return
        if self._holdings() != self._announced:
            self.announce()
        slow = [node for node in ids_of(self._context.registry.others) if not self._is_done(node)]
        self._send(tuple(slow), asking=True)

    def conclude(self) -> None:
        """Draw what conclusions the announcements allow."""
        if not self.open or not all(self._counts(node) for node in ids_of(self._context.registry.others)):
            return
        for name, topic in self._topics.items():
            if topic.delivery is not None:
                topic.delivery.declare_lost(self._existence(name))
        here = all(holding.done for holding in self._holdings())
        here = here and not any(topic.depends_on_faulty() for topic in self._topics.values())
        if here and all(self._is_done(node) for node in ids_of(self._context.registry.others)):
            self._close()

    def may_push(self, copy: Copy, node: NodeId) -> bool:
        """One holder is enough to push at once, to those who said that they miss it: the lowest id known to have it."""
        living_holders = copy.covered & self._context.registry.living(copy.destinations)
        lowest = living_holders & -living_holders
        return self._counts(node) and lowest >= 1 << self._context.node

    @property
    def is_agreed(self) -> bool:
        """No living node accepts anything from the faulty any more."""
        return not self.open or all(self._counts(node) for node in ids_of(self._context.registry.others))

    def may_come(self, topic: Topic, source: Life, first: Counter, last: Counter) -> bool:
        """May anything of a faulty source between these still arrive here?"""
        if not self.is_agreed:
            return True
        mine = self._topics[topic].dissemination
        if mine.stable.get(source, 0) >= first:
            return True
        held = [(copy.first, copy.last) for copy in mine.copies_of(source)]
        for node in ids_of(self._context.registry.others):
            for holding in self._heard[node].holdings:
                if holding.topic == topic and (holding.source, holding.incarnation) == source:
                    held += holding.ranges
        return any(begin <= last and first <= end for begin, end in held)

    # Inside

    def _close(self) -> None:
        context = self._context
        context.closed.update(context.registry.faulty())
        context.dead = ()
        self.open = False
        self._announced = ()
        self.pieces.clear()
        for topic in self._topics.values():
            topic.forget_closed()

    def _send(self, peers: tuple[NodeId, ...], *, asking: bool) -> None:
        context, faulty, holdings = self._context, self._context.registry.faulty(), self._holdings()
        if self._said != (faulty, holdings):
            self.version, self._said = self.version + 1, (faulty, holdings)
        whole = Settle(context.by, context.dead, self.version, asking, faulty, holdings)
        for packet in split(whole, context.parameters.announcement_bytes):
            context.send(peers, packet)

    def _holdings(self) -> tuple[Holding, ...]:
        holdings = []
        for name in sorted(self._topics):
            topic = self._topics[name]
            held = topic.depends_on_faulty()
            for source in sorted(topic.dissemination.sources()):
                if self._context.registry.is_dead(source):
                    copies = topic.dissemination.copies_of(source)
                    done = not held and not any(topic.dissemination.missing(copy) for copy in copies)
                    ranges = tuple(sorted((copy.first, copy.last) for copy in copies))
                    holdings.append(Holding(name, *source, done, ranges))
        return tuple(holdings)

    def _orphans(self) -> Iterable[tuple[Topic, Copy]]:
        dead = self._context.registry.is_dead
        for name, topic in self._topics.items():
            for copy in list(topic.dissemination.copies()):
                if dead(copy.source):
                    yield name, copy

    def _counts(self, node: NodeId) -> bool:
        """Does its announcement rest on verdicts that include ours?"""
        heard, registry = self._heard.get(node), self._context.registry
        if heard is None or not registry.is_alive(node, heard.by):
            return False
        if heard.faulty == registry.faulty():
            return True
        theirs = dict(heard.faulty)
        return all(theirs.get(other, -1) >= incarnation for other, incarnation in registry.faulty())

    def _is_done(self, node: NodeId) -> bool:
        return self._counts(node) and all(holding.done for holding in self._heard[node].holdings)

    def _existence(self, topic: Topic) -> Callable[[Life, Counter], bool]:
        """Does anybody living have it?"""
        announcements = [self._heard[node] for node in ids_of(self._context.registry.others)]
        mine = self._topics[topic].dissemination

        def exists(source: Life, counter: Counter) -> bool:
            return (
                mine.is_stable(source, counter)
                or any(copy.first <= counter <= copy.last for copy in mine.copies_of(source))
                or any(_names(one, topic, source, counter) for one in announcements)
            )

        return exists

    def waiting(self) -> list[str]:
        if not self.open:
            return []
        slow = [node for node in ids_of(self._context.registry.others) if not self._is_done(node)]
        return [f"what faulty nodes left is not settled: waits for nodes {slow}, has {self._holdings()}"]


def _names(packet: Settle, topic: Topic, source: Life, counter: Counter) -> bool:
    return any(
        holding.topic == topic
        and (holding.source, holding.incarnation) == source
        and any(first <= counter <= last for first, last in holding.ranges)
        for holding in packet.holdings
    )
