"""A subscription that goes on in a process's next incarnation: what it missed is named before anything later.

The process knows what it was handed (its ledger). Each node that answers the wave of a new incarnation tells where its
own messages for it begin, and how far lives that are over published: what lies between is missing. Until everybody has
answered, nothing is handed over, because it might follow from something that is not named yet.

A process also brings what it knows: what it read, and what it published that no other node has. Those that it comes to
must have that, or name it, before they read what it publishes now. So its wave says how far everything reached that it
knows of, everybody answers whether all of it is accounted for there, and it publishes when all of them say so.

Follows decision 0069.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from cubecast.ids import Counter, Incarnation, MessageRun, NodeId, Topic
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.ledger import Ledger
from cubecast.protocol.cubecast.packets import Wave, WaveAck
from cubecast.protocol.cubecast.vocabulary import Entry, Life, Reach, Since
from cubecast.protocol.effects import Gap
from cubecast.protocol.masks import ids_of

if TYPE_CHECKING:
    from cubecast.protocol.cubecast.topics import TopicState


class Continuation:
    """Of one topic in one incarnation."""

    def __init__(self, context: Context, topic: Topic, state: "TopicState", ledger: Ledger) -> None:
        self._context = context
        self._topic = topic
        self._state = state
        self.ledger = ledger
        self._told: dict[Life, Counter] = {}
        """Who answered a wave of the subscription, and where its messages for it begin."""
        self._foreign: set[Life] = set()
        """Lives that were over before they answered: nothing of them is for this incarnation's subscription."""
        self._begun: set[Life] = set()
        """Lives that asked here before they published: all of theirs is for this subscription."""
        self._deaths = 0
        """How many verdicts this incarnation knew when the wave set out."""
        self.may_come: Callable[[Topic, Life, Counter, Counter], bool] = lambda topic, life, first, last: True
        """May messages of a faulty life still arrive? Settlement knows."""
        self._doubts: dict[NodeId, Wave] = {}
        """Waves whose senders' knowledge is not accounted for here."""
        self._answered: dict[NodeId, tuple[Incarnation, int]] = {}
        """Of each node, the newest wave that was answered: a late copy of it says nothing about what was published."""

    # This node's waves

    def begin(self) -> None:
        """The subscription begins in this incarnation."""
        self._told, self._foreign, self._begun = {}, set(), set()
        assert self._state.delivery is not None
        if self._context.process.is_resumed:
            self._state.delivery.hold_back(self._foreign)
            self._context.opening[self._topic] = None
        if not self.ledger.is_ready:
            self.ledger.begun = self._context.by, self._state.delivery.number

    def founded(self) -> None:
        """The subscription is one that everybody knew from the start."""
        ledger = self.ledger
        ledger.begun, ledger.is_ready = (0, 1), True
        for life in self._context.registry.known.values():
            ledger.claim(life)

    def ask(self, packet: Wave, nodes: int) -> None:
        """A wave of a process that lived before."""
        packet.resumed, packet.reached = True, self.ledger.reached()
        packet.entries = tuple(self.ledger.subscribers[node] for node in sorted(self.ledger.subscribers))
        for node in ids_of(nodes):
            since = tuple(self.ledger.since.get(node, ()))
            self._context.send((node,), replace(packet, since=since) if since else packet)

    def wave_sets_out(self) -> None:
        self._deaths = self._context.deaths

    def answered(self, sender: Life, packet: WaveAck) -> None:
        if packet.start:
            self._told[sender] = packet.start
            self.ledger.learn(sender, packet.start - 1)  # what comes may follow from that
        for node, incarnation, counter in packet.reached:
            self.ledger.learn(Life(node, incarnation), counter)
        if self.ledger.is_ready:
            self._meet(sender, packet.since)

    def confirmed(self) -> None:
        """Everybody answered: from now on nothing is missed."""
        self._begin_claims()

    def open(self, *, settled: bool) -> None:
        """Hand over what was held back, as soon as everything before it is known.

        Who was held faulty in the meantime may have published what others still read after they had answered: they are
        asked again when that cannot happen any more (`settled`). So are those who were not asked.
        """
        state, registry = self._state, self._context.registry
        delivery = state.delivery
        if delivery is None:
            self._context.opening.pop(self._topic, None)
        elif state.confirmed and not state.is_asking:
            if any(registry.known[node] not in self._told for node in ids_of(registry.others)):
                state.ask_again()
            elif self._deaths == self._context.deaths:
                del self._context.opening[self._topic]
                self._account_for_all()
                delivery.hand_over()
                self._look_again()
            elif settled:
                state.ask_again()

    def peer_died(self, life: Life) -> None:
        self._doubts.pop(life.node, None)
        if self._is_opening and not self._state.confirmed and life not in self._told:
            self._foreign.add(life)
            self._begun.discard(life)

    # Others' waves

    def answer(self, sender: NodeId, packet: Wave) -> None:
        accounted = True
        if packet.resumed:
            for node, incarnation, counter in packet.reached:
                self.ledger.learn(Life(node, incarnation), counter)
            for entry in packet.entries:
                if entry.node != self._context.node and not self._context.registry.is_alive(*entry[:2]):
                    self.ledger.note(entry, self._context.by, self._state.counter + 1)
            if self.ledger.is_ready:
                self._meet(Life(sender, packet.by), packet.since)
            accounted = self._is_accounted(packet)
            if accounted:
                self._doubts.pop(sender, None)
            else:
                self._doubts[sender] = packet
        else:
            self.ledger.forget(sender, packet.by)
        context, state = self._context, self._state
        if (packet.by, packet.number) > self._answered.get(sender, (-1, 0)):
            self._answered[sender] = packet.by, packet.number
            if state.delivery is not None and not packet.published:
                self._begins(Life(sender, packet.by), resumed=packet.resumed)
        start: Counter = 0
        reached: tuple[Reach, ...] = ()
        if packet.entry is not None and packet.entry.subscribed:
            start, reached = state.start_for(packet.entry), self._reached(packet)
        since = self._since(sender, packet.entry, start) if packet.resumed else ()
        entries = state.view.entries()
        told = WaveAck(
            *(context.by, context.dead, self._topic, packet.by, packet.number, entries, accounted),
            *(start, reached, since),
        )
        context.send((sender,), told)

    def _begins(self, life: Life, *, resumed: bool) -> None:
        """It publishes after this answer only, and to this subscription."""
        if self._is_opening:
            self._begun.add(life)
        if not resumed:
            self.ledger.claim(life)

    def _since(self, sender: NodeId, entry: Entry | None, start: Counter) -> tuple[Since, ...]:
        known = tuple(self.ledger.since.get(sender, ()))
        if entry is not None and start:
            known += (Since(entry.incarnation, entry.number, self._context.by, start),)
        return known

    def _reached(self, packet: Wave) -> tuple[Reach, ...]:
        """How far lives that are over published: what is settled, and what is about to be."""
        registry, state = self._context.registry, self._state
        known = {life: counter for life, counter in self.ledger.known.items() if not registry.is_alive(*life)}
        more = self._progress()
        more += [(copy.source, copy.last) for copy in state.dissemination.copies()]
        for life, counter in more:
            if not registry.is_alive(*life):
                known[life] = max(counter, known.get(life, 0))
        for node, incarnation, counter in packet.reached:
            if known.get(Life(node, incarnation), 0) <= counter:
                known.pop(Life(node, incarnation), None)
        return tuple(Reach(*life, counter) for life, counter in sorted(known.items()) if counter)

    def _is_accounted(self, packet: Wave) -> bool:
        state = self._state
        if state.delivery is None:
            return True
        if self._is_opening or not state.confirmed:
            return False
        missing = [one for one in packet.reached if not self._account_for(Life(*one[:2]), one.counter)]
        return not missing

    def _look_again(self) -> None:
        """What was in the way of accounting for what others know may be gone."""
        for sender, packet in list(self._doubts.items()):
            if self._context.registry.is_alive(sender, packet.by):
                self.answer(sender, packet)
            else:
                del self._doubts[sender]

    # The ledger

    @property
    def _is_opening(self) -> bool:
        return self._topic in self._context.opening

    def _account_for(self, life: Life, counter: Counter) -> bool:
        """Name as missing what will not come; False while more of it may come."""
        first = self._accounted(life) + 1
        if life.node == self._context.node or first > counter:
            return True
        if self._context.registry.is_alive(*life):
            return not self.ledger.is_claimed(life)
        if self._may_come(life, first, counter):
            return False
        self._name(life, counter)
        return True

    def _may_come(self, life: Life, first: Counter, last: Counter) -> bool:
        is_settling = self._context.registry.is_dead(life) and not self._context.is_closed(life)
        return is_settling and self.may_come(self._topic, life, first, last)

    def _accounted(self, life: Life) -> Counter:
        delivery = self._state.delivery
        return max(self.ledger.accounted(life), 0 if delivery is None else delivery.last_delivered(life))

    def _name(self, life: Life, last: Counter) -> None:
        """Without a claim it is accounted for all the same: one that is told of later would name causes after what
        followed from them."""
        first = self._accounted(life) + 1
        if first > last or life.node == self._context.node:
            return
        self.ledger.learn(life, last)
        self.ledger.account(life, last)
        if not self.ledger.is_claimed(life):
            return
        missing = MessageRun(*life, first, last)
        self._context.emit(Gap(self._topic, missing, "published while this node was cut off"))
        self._context.report(self._topic, life, first, last)
        if life not in self._told and self._state.delivery is not None:
            self._state.delivery.is_named(life, last)

    def _meet(self, publisher: Life, since: tuple[Since, ...]) -> None:
        """Who did not answer before says since when it knows of the subscription: what it published since is owed."""
        ledger, node = self.ledger, publisher.node
        if node in ledger.claims:
            return
        known = [(one.incarnation, one.counter) for one in since if (one.epoch, one.number) >= ledger.begun]
        known += [(life.incarnation, 1) for life, _ in self._progress() if life.node == node]
        incarnation, counter = min(known, default=(publisher.incarnation, 1))
        ledger.claim(Life(node, incarnation))
        ledger.account(Life(node, incarnation), counter - 1)

    def _begin_claims(self) -> None:
        """The first confirmation: nothing before it is owed."""
        ledger, registry = self.ledger, self._context.registry
        if not ledger.is_ready:
            ledger.is_ready = True
            for life, _ in self._progress():
                ledger.claim(life)
            for life, start in self._told.items():
                ledger.account(life, start - 1)
                ledger.claim(life)
            for life, counter in ledger.known.items():
                if not registry.is_alive(*life) and not self._accounted(life):
                    ledger.account(life, counter)

    def _account_for_all(self) -> None:
        for life, start in sorted(self._told.items()):
            self._name(life, start - 1)
        registry = self._context.registry
        for life, counter in sorted(self.ledger.known.items()):
            if life not in self._told and life not in self._begun and not registry.is_alive(*life):
                self._name(life, counter)

    def closed(self) -> None:
        """What lives that are over left behind is settled."""
        is_closed = self._context.is_closed
        self._write_down([(life, last) for life, last in self._progress() if is_closed(life)])

    def after_closing(self) -> None:
        self._look_again()

    def end(self) -> None:
        """Of the incarnation, or of the subscription: keep what it knew."""
        state = self._state
        if self.ledger.is_ready:
            self._write_down(self._progress())
        else:
            self._forget_claims()
        if state.counter:
            self.ledger.learn(state.me, state.counter)
            self.ledger.has_published = True
        for entry, counter in state.addressed():
            self.ledger.note(entry, self._context.by, counter)
        for entry in state.view.entries():
            if entry.node != self._context.node:
                self.ledger.note(entry, self._context.by, state.counter + 1)
                self.ledger.subscribers[entry.node] = entry

    def _progress(self) -> list[tuple[Life, Counter]]:
        delivery = self._state.delivery
        return [] if delivery is None else delivery.progress()

    def note_absent(self, counter: Counter) -> None:
        """Subscribers that are held faulty and cannot be addressed: what they miss begins with the next message."""
        for entry in self._state.view.entries():
            if not self._context.registry.is_alive(*entry[:2]):
                self.ledger.note(entry, self._context.by, counter)

    def _forget_claims(self) -> None:
        """The subscription was never confirmed: its claims begin in a later life, and nothing before that is named."""
        for life, last in self._progress():
            self.ledger.learn(life, last)
        self.ledger.left()

    def _write_down(self, progress: list[tuple[Life, Counter]]) -> None:
        for life, last in progress:
            self.ledger.learn(life, last)
            self.ledger.account(life, last)
            self.ledger.claim(life)
