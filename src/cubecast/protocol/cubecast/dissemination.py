"""Carrying publications to their destinations and keeping them until they are stable.

A node that received a publication from j answers for the block of ids j handed it: itself and clusters 1 … s − 1, s the
cluster of j it lies in. It picks one child per cluster among the destinations that still miss the publication, and
acknowledges to j when no living destination of the block misses it. When a child is held faulty the next one of its
block is picked by the same rule. The source answers for everybody; so does every holder once the source is faulty.
Small groups need no tree while little is under way: a `Direct` publication goes from its source to each destination,
which answers for itself alone. Follows decisions 0013 and 0027.
"""

from collections.abc import Callable, Iterator
from typing import Final

from cubecast.ids import Counter, MessageId, NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import EVERYBODY, Copy, Destinations
from cubecast.protocol.cubecast.packets import Ask
from cubecast.protocol.cubecast.parameters import Aggregation
from cubecast.protocol.cubecast.postponing import Postponing
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.vocabulary import Life
from cubecast.protocol.hypercube.topology import block, cluster, first_child
from cubecast.protocol.masks import ids_of, mask_of

MOST_PLANS: Final = 64


class Dissemination:
    """All publications of one topic that this node keeps."""

    def __init__(self, context: Context, topic: Topic) -> None:
        self._context = context
        self._topic = topic
        self._own = 1 << context.node
        self.closed = context.closed
        """Of whom everything is settled; mostly of nobody, which saves asking."""
        self._copies: dict[Life, dict[Counter, Copy]] = {}
        self._plans: dict[int, tuple[tuple[NodeId, ...], int]] = {}
        self._last_ids: tuple[int, tuple[NodeId, ...]] = (0, ())
        self._known_blocks: dict[NodeId, tuple[int, int]] = {}
        self.stable: dict[Life, Counter] = {}
        """Per source, up to where everything is known to be everywhere it belongs."""
        self.may_push: Callable[[Copy, NodeId], bool] = lambda copy, node: True
        """Whether to push a faulty source's publication to a node at once; settlement decides."""
        self._postponing = Postponing(context, self) if context.parameters.aggregation is Aggregation.ON else None

    # Looking

    def copies(self) -> Iterator[Copy]:
        for per_source in self._copies.values():
            yield from per_source.values()

    def copies_of(self, source: Life) -> list[Copy]:
        return list(self._copies.get(source, {}).values())

    def count(self, source: Life) -> int:
        return len(self._copies.get(source, ()))

    def sources(self) -> list[Life]:
        return [source for source, copies in self._copies.items() if copies]

    def missing(self, copy: Copy) -> int:
        """Mask of the living destinations not known to have it."""
        return self._context.registry.living(copy.destinations) & ~copy.covered

    def is_stable(self, source: Life, counter: Counter) -> bool:
        return counter <= self.stable.get(source, 0) or self._context.is_closed(source)

    def find(self, source: Life, counter: Counter) -> Copy | None:
        """The kept publication with this message in it."""
        for copy in self._copies.get(source, {}).values():
            if copy.first <= counter <= copy.last:
                return copy
        return None

    # Steps

    def originate(self, packet: Publication, destinations: Destinations) -> Copy:
        """An own publication sets out."""
        copy = self._keep(self._context.registry.known[self._context.node], packet, destinations)
        copy.duty = EVERYBODY
        return copy

    def receive(self, sender: NodeId, source: Life, packet: Publication, destinations: Destinations) -> Copy | None:
        """Take over a part of the work; the copy when it is new here."""
        counter, context, is_direct = packet.message[2], self._context, type(packet) is Direct
        if packet.hurry:
            context.hurry(source.node, self._topic)
        if counter <= self.stable.get(source, 0) or (self.closed and context.is_closed(source)):
            context.acknowledge(sender, self._topic, packet.message, packet.hurry)
            return None
        copies = self._copies.get(source)
        copy = None if copies is None else copies.get(counter)
        new = copy is None
        if copy is None:
            copy = self._keep(source, packet, destinations)
            if context.registry.known.get(source[0]) is not source and context.registry.is_dead(source):
                copy.orphaned()
        copy.covered |= 1 << sender
        if is_direct and not copy.duty:
            context.acknowledge(sender, self._topic, packet.message, packet.hurry)
        else:
            copy.parents[sender] = part = self._own if is_direct else self._blocks(sender)[1]
            copy.duty |= part
            self.advance(copy)
        if new and self._postponing is not None:
            self._wake(source)
        return copy if new else None

    def advance(self, copy: Copy, *, again: bool = False) -> None:
        """Acknowledge what is done, hand on what is not; `again` repeats what was not answered."""
        missing = self.missing(copy)
        if copy.parents:
            self._answer_parents(copy, missing)
        postponed, copy.postponed = copy.postponed, 0
        wanted = missing & copy.duty
        if wanted:
            self._spread(copy, wanted, again)
        if postponed & ~copy.postponed:
            self._wake(copy.source)

    def _answer_parents(self, copy: Copy, missing: int) -> None:
        answered = [parent for parent, part in copy.parents.items() if not missing & part]
        for parent in answered:
            del copy.parents[parent]
            self._context.acknowledge(parent, self._topic, copy.packet.message, copy.packet.hurry)

    def acknowledged(self, sender: NodeId, message: MessageId) -> Copy | None:
        """A child answers for its block; the copy, when it is one we keep."""
        node, incarnation, counter = message
        copies: dict[Counter, Copy] | None
        copies = self._copies.get((node, incarnation))  # type: ignore[call-overload]  # cheaper than making a Life
        copy = None if copies is None else copies.get(counter)
        if copy is None or not copy.tried >> sender & 1:
            return None
        copy.covered |= 1 << sender if copy.is_direct else self._blocks(sender)[0]
        if self._postponing is not None or self._context.registry.is_dead(copy.source):
            self.advance(copy)
        elif copy.parents:
            self._answer_parents(copy, self.missing(copy))  # the other children are at work already
        return copy

    def settle_stable(self, source: Life, counter: Counter) -> None:
        """The source says so: forget."""
        before = self.stable.get(source, 0)
        if counter <= before:
            return
        self.stable[source] = counter
        copies = self._copies.get(source)
        if copies:
            self._forget(copies, before + 1, counter)
        if self._postponing is not None:
            self._wake(source)

    def _forget(self, copies: dict[Counter, Copy], first: Counter, last: Counter) -> None:
        """Each publication begins where the one before it ended; only where one is missing all are looked at."""
        while first <= last:
            copy = copies.get(first)
            if copy is None or copy.last > last:
                for counter in [counter for counter, copy in copies.items() if copy.last <= last]:
                    del copies[counter]
                break
            del copies[first]
            first = copy.last + 1

    def source_died(self, source: Life) -> None:
        """Whoever holds something of a faulty source answers for it from now on."""
        for copy in self.copies_of(source):
            copy.orphaned()

    def peer_died(self, node: NodeId) -> None:
        if self._postponing is not None:
            self._postponing.forget()
        for copy in list(self.copies()):
            copy.parents.pop(node, None)
            self.advance(copy)

    def forget_closed(self) -> None:
        """Drop what is kept of faulty sources about which everything is settled."""
        closed = self._context.is_closed
        self._copies = {source: copies for source, copies in self._copies.items() if not closed(source)}
        self.stable = {source: counter for source, counter in self.stable.items() if not closed(source)}
        if self._postponing is not None:
            self._postponing.forget()
            for copy in [copy for copy in self.copies() if copy.postponed]:
                self.advance(copy)

    def tick(self) -> None:
        """Time passed: repeat what was not answered, ask sources whether we may forget."""
        asked: dict[Life, Counter] = {}
        for copy in list(self.copies()):
            copy.age += 1
            if copy.age > 1:
                self.advance(copy, again=True)  # what was postponed leaves now at the latest
            if copy.age > 2 and copy.source != (self._context.node, self._context.by):
                asked[copy.source] = max(copy.last, asked.get(copy.source, 0))
        context = self._context
        for source, counter in asked.items():
            if context.registry.is_alive(*source):
                ask = Ask(context.by, context.dead, self._topic, source.incarnation, counter)
                context.send((source.node,), ask)

    def _keep(self, source: Life, packet: Publication, destinations: Destinations) -> Copy:
        copy = Copy(source, packet, destinations, self._own)
        copies = self._copies.get(source)
        if copies is None:
            copies = self._copies[source] = {}
        copies[copy.first] = copy
        self._context.stir(self._topic)
        return copy

    def _spread(self, copy: Copy, wanted: int, again: bool) -> None:
        if copy.is_direct:
            targets = wanted if again else wanted & ~copy.tried
            copy.try_children(targets)
            self._context.send(self._ids(targets), self._context.restamped(copy.packet))
            return
        me, orphan = self._context.node, self._context.registry.is_dead(copy.source)
        if self._postponing is None and not orphan and not copy.tried and not again:
            self._begin(copy, wanted)
            return
        chosen: list[NodeId] = []
        while wanted:
            s = cluster(me, wanted.bit_length() - 1)
            part = wanted & block(me, s)
            wanted ^= part
            if part & copy.tried:
                if again:
                    chosen += ids_of(part & copy.tried)
                continue
            if orphan and not again:
                part = sum(1 << node for node in ids_of(part) if self.may_push(copy, node))
            if self._postponing is not None and not again and self._postponing.postpones(copy, s, part):
                continue
            child = first_child(me, s, part)
            if child is not None:
                copy.try_children(1 << child)
                chosen.append(child)
        self._context.send(tuple(chosen), self._context.restamped(copy.packet))

    def _begin(self, copy: Copy, wanted: int) -> None:
        """Nothing of it is under way: one child per cluster. Destinations seldom change: the choice is remembered."""
        plan = self._plans.get(wanted)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            children = tuple(self._one_per_cluster(wanted))
            plan = self._plans[wanted] = children, mask_of(children)
        copy.try_children(plan[1])
        self._context.send(plan[0], self._context.restamped(copy.packet))

    def _ids(self, mask: int) -> tuple[NodeId, ...]:
        if mask != self._last_ids[0]:
            self._last_ids = mask, tuple(ids_of(mask))
        return self._last_ids[1]

    def _one_per_cluster(self, wanted: int) -> Iterator[NodeId]:
        me = self._context.node
        while wanted:
            s = cluster(me, wanted.bit_length() - 1)
            part = wanted & block(me, s)
            wanted ^= part
            child = first_child(me, s, part)
            if child is not None:
                yield child

    def _blocks(self, peer: NodeId) -> tuple[int, int]:
        """What the peer answers for when we hand it something, and what we answer for when it does."""
        blocks = self._known_blocks.get(peer)
        if blocks is None:
            me = self._context.node
            s = cluster(me, peer)
            blocks = self._known_blocks[peer] = (block(me, s), block(peer, s))
        return blocks

    def _wake(self, source: Life) -> None:
        """Something of this source moved: whoever waited for that looks again."""
        for copy in () if self._postponing is None else self._postponing.wake(source):
            if self.find(copy.source, copy.first) is copy:
                self.advance(copy)

    def invariants(self) -> None:
        for copy in self.copies():
            if copy.postponed:
                waits = self._postponing is not None and self._postponing.is_waiting(copy)
                assert waits, f"{copy.packet.message} is postponed and waits for nothing"
