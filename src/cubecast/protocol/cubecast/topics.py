"""One topic at one node: view, subscription, publications under way, and the wave that makes them known.

Follows decision 0014.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

from cubecast.ids import Counter, MessageId, NodeId, Topic
from cubecast.protocol.cubecast.barriers import Barrier
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.continuation import Continuation
from cubecast.protocol.cubecast.copies import FIRST_EPOCH, NOBODY, Copy, Destinations
from cubecast.protocol.cubecast.delivery import Delivery
from cubecast.protocol.cubecast.dissemination import Dissemination
from cubecast.protocol.cubecast.packets import Stable, Wave, WaveAck
from cubecast.protocol.cubecast.parameters import Aggregation
from cubecast.protocol.cubecast.publication_packets import Direct, Publication
from cubecast.protocol.cubecast.views import View
from cubecast.protocol.cubecast.vocabulary import Entry, Life, Start, bitmap
from cubecast.protocol.effects import Acknowledged, Published, Subscribed
from cubecast.protocol.masks import ids_of

DIRECT_BYTES: Final = 16 << 10
"""Larger publications are worth sharing the work of sending them."""


@dataclass(slots=True)
class _OpenWave:
    number: int
    entry: Entry | None
    missing: int
    """Mask of the nodes that have not answered."""
    doubting: int = 0
    """Mask of those that answered that not all this process knows of is accounted for there."""


class TopicState:
    def __init__(self, context: Context, topic: Topic, place: int) -> None:
        self._context = context
        self._topic = topic
        self.place = place
        """Among the topics of this life."""
        self.me = Life(context.node, context.by)
        self.continuation = Continuation(context, topic, self, context.process.ledger(topic))
        self.view = View()
        self.dissemination = Dissemination(context, topic)
        self.barrier = Barrier(self.dissemination)
        self.delivery: Delivery | None = None
        self.confirmed = False
        """The subscription is known to everybody."""
        self.registered = False
        """A wave of this node is complete: its view holds everybody somebody may have addressed before."""
        self.wave: _OpenWave | None = None
        self.queue: deque[bytes] = deque()
        self.queued_bytes = 0
        self.hurried = False
        """Somebody waits for the stability of what is queued."""
        self.is_pressed = False
        """Something had to wait for acknowledgements, and nothing since found everything before it stable."""
        self._waited = False
        """So did what is queued, or what left last."""
        self.counter: Counter = 0
        self._numbers = 0
        self._subscriptions = 0
        self._previous: Destinations = NOBODY
        self._starts: list[tuple[Counter, int]] = []
        self._firsts: list[tuple[Counter, int]] = []
        """Of all members, the first publication that addressed them."""
        self._noted = 0
        """The view in which it was last looked for subscribers that cannot be addressed."""
        self._owed = 0
        """Mask of the nodes that were not told yet that what they keep is stable."""
        self._hurry_from = context.parameters.hurry_from

    def found(self, members: int) -> None:
        """These nodes subscribed before the start, and everybody knows."""
        for node in ids_of(members):
            self.view.merge(Entry(node, *FIRST_EPOCH, True))
        self.registered = True
        if members >> self._context.node & 1:
            self._subscriptions = 1
            self.delivery = Delivery(self._context, self._topic, 1, self.barrier)
            self.confirmed = True
            self.continuation.founded()

    # Membership

    def subscribe(self) -> None:
        self._subscriptions += 1
        self.delivery = Delivery(self._context, self._topic, self._subscriptions, self.barrier)
        self.confirmed = False
        self.continuation.begin()
        self.start_wave(self._entry(True))

    def _entry(self, on: bool) -> Entry:
        return Entry(*self.me, self._subscriptions, on)

    def ask_again(self) -> None:
        """What others answered is not the last word."""
        was_registered = self.registered
        self.start_wave(self._entry(True))
        self.registered = was_registered

    def unsubscribe(self) -> None:
        """Nothing is delivered from here on; what is under way is still forwarded and acknowledged."""
        self.continuation.end()
        self.delivery = None
        self.confirmed = False
        self.start_wave(self._entry(False))

    def register(self) -> None:
        """A publisher that does not subscribe learns whom to address."""
        if self.wave is None and not self.registered:
            self.start_wave(None)

    def start_wave(self, entry: Entry | None) -> None:
        """Tell everybody, learn what they know. A newer wave says more than the one it replaces."""
        if entry is not None:
            self.view.merge(entry)
            self.registered = False
        self._numbers += 1
        self.wave = _OpenWave(self._numbers, entry, self._context.registry.others)
        self.continuation.wave_sets_out()
        self._context.stir(self._topic)
        self.send_wave()
        self.check_wave()

    def send_wave(self) -> None:
        wave, context = self.wave, self._context
        if wave is not None:
            packet = Wave(context.by, context.dead, self._topic, wave.number, wave.entry, bool(self.counter))
            if context.process.is_resumed:
                self.continuation.ask(packet, wave.missing | wave.doubting)
            else:
                context.send_to(wave.missing, packet)

    def wave_answered(self, sender: NodeId, packet: WaveAck) -> None:
        wave = self.wave
        if wave is not None and wave.number == packet.number:
            self.continuation.answered(Life(sender, packet.by), packet)
            wave.missing &= ~(1 << sender)
            wave.doubting = wave.doubting & ~(1 << sender) | (not packet.accounted) << sender
            self.check_wave()

    @property
    def is_asking(self) -> bool:
        """A node that was asked has not answered."""
        return self.wave is not None and bool(self.wave.missing)

    def check_wave(self) -> None:
        """The living who were asked have answered: from now on nobody addresses without knowing us, nor we them."""
        wave = self.wave
        if wave is None or wave.missing:
            return
        if not wave.doubting:
            self.wave = None
            self.registered = True
            self._context.ripe[self._topic] = None
        if self.delivery is not None and not self.confirmed:
            self.confirmed = True
            self._context.emit(Subscribed(self._topic))
            self.continuation.confirmed()

    # Publishing

    def pump(self) -> None:
        """Publish what the window and our own wave allow."""
        if self.is_pressed and not self._waited and not self.unstable:
            self.is_pressed = False
        while self.queue and self.registered:
            if not self._may_publish():
                self.is_pressed = self._waited = True
                break
            self._publish(self._next_batch())
        else:
            self._waited = False
        self.hurried = self.hurried and bool(self.queue)

    def _may_publish(self) -> bool:
        """While a few are under way the next one should be worth it: small ones wait and become one large one."""
        parameters, unstable = self._context.parameters, self.unstable
        few = parameters.eager if self.is_pressed else max(parameters.eager, parameters.calm)
        if unstable < few or not parameters.eager:
            return unstable < parameters.window
        return self.has_full_batch and unstable < parameters.window

    @property
    def has_full_batch(self) -> bool:
        parameters = self._context.parameters
        return len(self.queue) >= parameters.max_batch or self.queued_bytes >= parameters.max_batch_bytes

    def enqueue(self, payloads: Collection[bytes]) -> None:
        """What the application wants to publish."""
        self._context.ripe[self._topic] = None
        self.queue.extend(payloads)
        self.queued_bytes += sum(map(len, payloads))

    def _next_batch(self) -> tuple[bytes, ...]:
        """From the head of the queue, as much as one publication may hold; at least one message."""
        parameters, queue = self._context.parameters, self.queue
        if len(queue) == 1:
            self.queued_bytes = 0
            return (queue.popleft(),)
        batch = tuple(islice(queue, parameters.max_batch))
        size = sum(map(len, batch))
        crumb = parameters.max_batch_bytes // 8  # rather a little more in one than so little left
        if size > parameters.max_batch_bytes + crumb:
            fitting = bisect_right(list(accumulate(map(len, batch))), parameters.max_batch_bytes)
            batch = batch[: max(1, fitting)]
            size = sum(map(len, batch))
        for _ in batch:
            queue.popleft()
        self.queued_bytes -= size
        return batch

    def envelope_bytes(self) -> int:
        """What the next publication says besides its messages takes at most about so many bytes."""
        self.barrier.prune()
        destinations, set_of_nodes = self.view.destinations(self._context.registry), self._context.parameters.size // 8
        rest = 512 + 24 * (len(destinations.epochs) + len(self._context.dead)) + len(destinations.members)
        return rest + (len(self._starts) + 1) * (16 + set_of_nodes) + self.barrier.most_bytes(destinations)

    @property
    def unstable(self) -> int:
        return self.dissemination.count(self.me)

    def _publish(self, payloads: tuple[bytes, ...]) -> None:
        context, first = self._context, self.counter + 1
        self.counter += len(payloads)
        destinations = self.view.destinations(context.registry)
        self._note_starts(first, destinations)
        if self.view.version != self._noted:
            self._noted = self.view.version
            self.continuation.note_absent(first)
        named, direct = self.barrier.dependencies(self.me, destinations)
        kind = Publication if self.is_pressed or not self._is_small(payloads, destinations) else Direct
        packet = kind(
            context.by,
            context.dead,
            self._topic,
            MessageId(context.node, context.by, first),
            payloads,
            destinations.members,
            destinations.epochs,
            tuple([Start(counter, bitmap(members)) for counter, members in self._starts]),
            named,
            self.stable,
            self.hurried or self.is_pressed or self.unstable + 1 >= self._hurry_from,
        )
        context.emit(Published(self._topic, first, len(payloads), direct, payloads))
        self._owed &= ~destinations.mask
        copy = self.dissemination.originate(packet, destinations)
        self.barrier.published(copy)
        self.dissemination.advance(copy)
        if self.delivery is not None:
            self.delivery.deliver_own(copy)
        if not self.dissemination.missing(copy):
            self.check_stable()  # there is nobody else; whatever left earlier was looked at when it was answered

    def _is_small(self, payloads: tuple[bytes, ...], destinations: Destinations) -> bool:
        """Are both the publication and the group so small that a tree would only add hops?"""
        parameters = self._context.parameters
        if not parameters.direct or parameters.aggregation is Aggregation.ON:
            return False
        others = (destinations.mask & ~(1 << self._context.node)).bit_count()
        return others <= parameters.direct and sum(map(len, payloads)) <= DIRECT_BYTES

    def _note_starts(self, first: Counter, destinations: Destinations) -> None:
        """A member's starting counter is repeated until the publication that first addressed it is stable."""
        if destinations is self._previous and not self._starts:
            return  # the usual case
        joined = destinations.without(self._previous)
        self._previous = destinations
        if joined:
            before = [(counter, members & ~joined) for counter, members in self._firsts if members & ~joined]
            self._firsts = [*before, (first, joined)]
        self._starts = [
            (counter, members & ~joined)
            for counter, members in self._starts
            if counter > self.stable and members & ~joined
        ]
        if joined:
            self._starts.append((first, joined))

    def start_for(self, entry: Entry) -> Counter:
        """The first publication that is for this subscription."""
        known = self._previous
        if known.mask >> entry.node & 1 and known.epoch(entry.node) == entry[1:3]:
            for counter, members in self._firsts:
                if members >> entry.node & 1:
                    return counter
        return self.counter + 1

    def addressed(self) -> list[tuple[Entry, Counter]]:
        """All members that were addressed last, and the first publication that did."""
        members = self._previous
        return [
            (Entry(node, *members.epoch(node), True), counter)
            for counter, mask in self._firsts
            for node in ids_of(mask & members.mask)
        ]

    # Stability of own publications

    @property
    def stable(self) -> Counter:
        return self.dissemination.stable.get(self.me, 0)

    def check_stable(self) -> None:
        """Own publications that reached everybody, in order, are stable."""
        stable = self.stable
        reached: list[Copy] = []
        for copy in self.dissemination.copies_of(self.me):
            if self.dissemination.missing(copy):
                break
            reached.append(copy)
        if reached:
            for copy in reached:
                self._owed |= copy.destinations.mask
            self._owed &= ~(1 << self._context.node)
            stable = reached[-1].last
            self._context.ripe[self._topic] = None
            self.dissemination.settle_stable(self.me, stable)
            self._context.emit(Acknowledged(self._topic, stable))

    def tell_stable(self) -> None:
        """Nothing was published for a while that would have carried it."""
        owed, self._owed = self._owed & self._context.registry.others, 0
        self._context.send_to(owed, Stable(self._context.by, self._context.dead, self._topic, self.stable))

    # Faults and time

    def depends_on_faulty(self) -> bool:
        return self.delivery is not None and self.delivery.depends_on_faulty()

    def peer_died(self, life: Life) -> None:
        node = life.node
        self.view.forget_cache()
        if self._previous.mask >> node & 1:
            entry = Entry(node, *self._previous.epoch(node), True)
            self.continuation.ledger.note(entry, self._context.by, self.start_for(entry))
        self.continuation.peer_died(life)
        if self.wave is not None:
            self.wave.missing &= ~(1 << node)
            self.wave.doubting &= ~(1 << node)
            self.check_wave()
        self.dissemination.peer_died(node)
        self.check_stable()

    def forget_closed(self) -> None:
        """What faulty sources left is settled."""
        self.dissemination.forget_closed()
        self.barrier.prune()
        self.continuation.closed()
        if self.delivery is not None:
            self.delivery.forget_closed()
        self.continuation.after_closing()

    def tick(self) -> None:
        self.send_wave()
        self.dissemination.tick()
        if self._owed:
            self.tell_stable()

    @property
    def busy(self) -> bool:
        """Is anything under way but what is queued? Topics for which there is are looked after, and shown first."""
        holds = self.delivery is not None and self.delivery.holds
        return bool(self.wave or self._owed or holds or self.dissemination.sources())

    def invariants(self) -> None:
        assert self.unstable <= self._context.parameters.window, "more is outstanding than the window allows"
        self.dissemination.invariants()
        stable = self.dissemination.stable
        for copy in self.dissemination.copies():
            assert copy.last > stable.get(copy.source, 0), "something stable is still kept"
            assert not self._context.is_closed(copy.source), "something of a closed source is kept"
        if self.delivery is not None:
            for source, counter, _ in self.delivery.held():
                assert self.delivery.last_delivered(source) < counter, "something held has what it waits for"

    def waiting(self) -> list[str]:
        lines = []
        if self.wave is not None:
            waits = sorted(ids_of(self.wave.missing | self.wave.doubting))
            lines.append(f"{self._topic}: a wave waits for nodes {waits}")
        if self.queue:
            lines.append(f"{self._topic}: {len(self.queue)} messages wait for the window or the wave")
        for copy in self.dissemination.copies():
            missing = sorted(ids_of(self.dissemination.missing(copy)))
            lines.append(f"{self._topic}: keeps {tuple(copy.packet.message)}, not known at {missing}")
        if self.delivery is not None:
            lines += [
                f"{self._topic}: holds {tuple(copy.packet.message)} until ({source.node}, {source.incarnation}, "
                f"{counter}) is delivered"
                for source, counter, copy in self.delivery.held()
            ]
        return lines
