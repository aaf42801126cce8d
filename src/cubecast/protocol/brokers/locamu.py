"""LoCaMu: causal multicast over a tree of brokers that survives f crashes on any path of 2f + 1 brokers.

No clock and no vector over all members: a broker orders what reaches it by numbers given within R = 2f + 1 hops.

`turn` counts the messages a broker processed; a message is known by the turns of the brokers that processed it, which
is how two copies that came different ways are recognised. Issuing a message to a target z gives it the next number of
`out[z]`; `got[x]` are the numbers of x that were processed here. A copy says, for targets nearby, how many messages
each broker had issued to them before (`past`); it is processed when those for this broker were. When a neighbour is
suspected, messages go to the next broker behind it, which may happen while the suspected one is alive: then its copies
come late, bring turns that no broker saw yet, and are recognised by the others.

Symbols of the paper (LoCaMu, section 5.2.1): neighbourhood within R is `near`, the sequence numbers are `out` and
`got`, the "past" of the paper's second variant is `past`. What differs is in docs/papers/locaps.md.
"""

from collections.abc import Callable
from typing import TypeAlias

from cubecast.errors import RemoteProtocolError
from cubecast.ids import NodeId
from cubecast.protocol.brokers.packets import Body, Copy, Header, Processed, Table, Tables, Unwant, Want
from cubecast.protocol.brokers.received import Received, first_of, life_of
from cubecast.protocol.brokers.records import MessageKey, Record, RecordLog, Ways
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.effects import CancelTimer, Effects, Observe, Send, SetTimer

Post: TypeAlias = tuple[Body, set[NodeId] | None]
"""A message that begins here, and whom it is for where that is not what the tables say of such a message."""
Handler: TypeAlias = Callable[[Body, NodeId | None, NodeId], tuple[set[NodeId], list[Post]]]
"""What a message does here: given its body, the neighbour it comes from (None: it begins here) and the broker it began
at, the brokers it is for, and the messages that follow from it."""


class Substrate:
    """LoCaMu at one broker. Methods append what is to be sent to `effects`, which the machine takes after each step."""

    def __init__(
        self,
        me: NodeId,
        tree: BrokerTree,
        faults: int,
        handler: Handler,
        *,
        ack_delay: float,
        patience: float,
        life: int = 0,
    ) -> None:
        self.me = me
        self.tree = tree
        self.faults = faults
        self.reach = 2 * faults + 1
        self.near = tree.within(me, self.reach)
        self.ways = Ways(me, tree, faults)
        self.effects: Effects = []
        self.now = 0.0
        self.suspects: set[NodeId] = set()
        self.received = Received(me, life)
        self.removed = self.received.removed
        self.turn = first_of(life)
        self.repeated: list[Body] = []
        """What came once more, since the machine looked last."""
        self._handler = handler
        self._ack_delay = ack_delay
        self._patience = patience
        self._out: Table = {}
        self._past: Tables = {}
        self._log = RecordLog(me, self.near, self.received.life_of)
        self._blocked: dict[NodeId, list[Copy]] = {}
        self._in_inbox: set[tuple[object, ...]] = set()
        self._wants: dict[NodeId, Table] = {}
        """By broker whose messages are wanted: who wants them, and after which number."""
        self._unacknowledged: set[NodeId] = set()
        """Brokers of whose numbers some were processed since the others were told."""
        self._is_telling = False
        """Will they be, when a timer is due?"""
        self._asking: set[NodeId] = set()

    # -- messages that begin here, and those that arrive -----------------------------------------------------------

    def post(self, *posts: Post) -> None:
        """Process messages that begin here, and what follows from them."""
        queue = list(posts)
        for body, wanted in queue:
            targets, further = self._handler(body, None, self.me)
            self._issue((self.me, self.turn + 1), body, {}, {}, {}, targets if wanted is None else set(wanted))
            queue.extend(further)

    def receive(self, copy: Copy) -> None:
        if self.received.is_of_the_past(copy.header):
            return
        if copy.header.identity not in self._in_inbox:
            self._take([copy])

    def _take(self, arrived: list[Copy]) -> None:
        """Process what can be, and then what waited for it."""
        ready = list(arrived)
        while ready:
            copy = ready.pop(0)
            header = copy.header
            self._in_inbox.discard(header.identity)
            if self.received.is_duplicate(header, self.turn):
                self.repeated.append(copy.body)
                grown = self._absorb(copy)
            else:
                missing = self.received.missing(header)
                if missing is not None:
                    self._block(missing, copy)
                    continue
                grown = self._process(copy)
            for broker in grown:
                ready.extend(self._unblock(broker))

    def _block(self, missing: NodeId, copy: Copy) -> None:
        self._in_inbox.add(copy.header.identity)
        self.received.leave_behind(copy.header)
        self._blocked.setdefault(missing, []).append(copy)
        if missing not in self._asking:
            self._asking.add(missing)
            self.effects.append(SetTimer(("missing", missing), self.now + self._patience))

    def _unblock(self, broker: NodeId) -> list[Copy]:
        waiting = self._blocked.pop(broker, [])
        if waiting:
            self._asking.discard(broker)
            self.effects.append(CancelTimer(("missing", broker)))
        return waiting

    def _process(self, copy: Copy) -> list[NodeId]:
        header = copy.header
        self.received.note_turns(header)
        grown = self._mark_numbers(header)
        self._merge_past(header)
        side = self.tree.side(self.me, header.origin)
        targets, further = self._handler(copy.body, side, header.origin)
        targets |= self.ways.owed((header.stamps, header.labels))
        self._issue(header.message, copy.body, header.turns, header.stamps, header.labels, targets)
        self.post(*further)
        return grown

    def _mark_numbers(self, header: Header) -> list[NodeId]:
        grown = []
        for broker, numbers in header.stamps.items():
            number = numbers.get(self.me)
            if number is not None:
                self._unacknowledged.add(broker)
                if self.received.add(broker, number):
                    grown.append(broker)
        for broker, numbers in header.labels.items():
            number = numbers.get(self.me)
            if number is not None and self.received.add(broker, number):
                self._unacknowledged.add(broker)
                grown.append(broker)
        if self._unacknowledged and not self._is_telling:  # set anew with each message it would never be due
            self._is_telling = True
            self.effects.append(SetTimer("processed", self.now + self._ack_delay))
        return grown

    def _merge_past(self, header: Header) -> None:
        for target, table in header.past.items():
            if target in self.near:
                for broker, number in table.items():
                    self._raise_past(target, broker, number)
        for broker, table in header.stamps.items():
            for target, number in table.items():
                if target in self.near:
                    self._raise_past(target, broker, number)

    def _raise_past(self, target: NodeId, broker: NodeId, number: int) -> None:
        if number > self._log.acknowledged(target, broker):
            table = self._past.setdefault(target, {})
            if number > table.get(broker, 0):
                table[broker] = number

    # -- sending ---------------------------------------------------------------------------------------------------

    def _issue(
        self, key: MessageKey, body: Body, turns: Table, stamps: Tables, labels: Tables, targets: set[NodeId]
    ) -> None:
        self.turn += 1
        targets -= self.removed
        numbers: Table = {}
        for target in sorted(targets):
            numbers[target] = self._next_number(target)
        record = Record(
            key,
            body,
            {**turns, self.me: self.turn},
            {**stamps, self.me: numbers} if numbers else stamps,
            labels,
            {target: dict(table) for target, table in self._past.items() if table},
            numbers,
        )
        for target, number in numbers.items():
            self._past.setdefault(target, {})[self.me] = number
        for broker, table in record.stamps.items():
            for target, number in table.items():
                self._log.keep(record, broker, target, number)
        if record.open:
            self._transmit(record)
            self._serve_wants(record)
        else:
            self._log.closed.append(record)

    def _next_number(self, target: NodeId) -> int:
        first = first_of(self.received.lives_with(target))
        number = self._out[target] = max(self._out.get(target, 0), first) + 1
        return number

    def _transmit(self, record: Record) -> None:
        for neighbour in self.tree.neighbours[self.me]:
            if neighbour in self.removed:
                self._bypass(record, neighbour)
            elif neighbour in record.numbers:
                self._push(record, neighbour)

    def _push(self, record: Record, neighbour: NodeId) -> None:
        if neighbour not in self.suspects:
            if neighbour not in record.sent:
                self._send(record, neighbour)
            return
        record.held.add(neighbour)
        self._bypass(record, neighbour)

    def _bypass(self, record: Record, suspect: NodeId) -> None:
        """To the next brokers behind a suspected one, as far as f crashes in a row may reach."""
        for target in self.tree.beyond(self.me, suspect):
            if self.tree.distance(self.me, target) > self.faults + 1:
                continue
            if target in self.suspects and target in record.numbers:
                record.held.add(target)
            if target in self.suspects or target not in record.numbers:
                self._bypass(record, target)
            elif target not in record.sent:
                self._send(record, target)

    def _send(self, record: Record, target: NodeId) -> None:
        record.sent.add(target)
        record.held.discard(target)
        self.effects.append(Send((target,), self.ways.copy(record, target)))

    # -- copies that come late -------------------------------------------------------------------------------------

    def _absorb(self, copy: Copy) -> list[NodeId]:
        """Another copy of what was processed. If it passed a broker that had not been heard from, or one that has
        promised it to others since, its numbers are news."""
        header = copy.header
        record = self._log.find(header.message)
        self.received.note_turns(header)
        grown = self._mark_numbers(header)
        if record is not None:
            news = {x: table for x in {**header.stamps, **header.labels} if (table := record.lacks(x, header))}
            if news or not header.turns.keys() <= record.turns.keys():
                self._spread_late(record, header, news)
        return grown

    def _spread_late(self, record: Record, header: Header, news: Tables) -> None:
        record.turns = {**header.turns, **record.turns}
        for broker, numbers in news.items():
            record.labels = {**record.labels, broker: {**record.labels.get(broker, {}), **numbers}}
        owed = self.ways.owed((news,)) - self.removed
        for target in sorted(owed):
            if target not in record.numbers:
                number = self._next_number(target)
                record.numbers = {**record.numbers, target: number}
                record.stamps = {**record.stamps, self.me: record.numbers}
                self._past.setdefault(target, {})[self.me] = number
                self._log.keep(record, self.me, target, number)
        for broker, numbers in news.items():
            for target, number in numbers.items():
                self._log.keep(record, broker, target, number)
        record.sent -= owed.union(*(self.tree.path(self.me, target) for target in owed), *news.values())
        self._transmit(record)
        self._serve_wants(record)

    # -- suspicion, trust, removal ---------------------------------------------------------------------------------

    def suspect(self, broker: NodeId) -> None:
        if broker not in self.near or broker in self.suspects or broker in self.removed:
            return
        self.suspects.add(broker)
        self.effects.append(Observe("suspect", peer=broker))
        for record in self._log.records():
            if any(self._log.lacks(record, z) and self.tree.between(self.me, broker, z) for z in record.numbers):
                self._transmit(record)
        for other in sorted(self.near):
            if other != broker and self.tree.between(self.me, broker, other):
                self._send_packet(other, Want(other, self.received.numbers(other).prefix, standing=False))
        for other in sorted(self.near - {broker}):
            self._send_packet(other, Want(broker, self.received.numbers(broker).prefix, standing=True))

    def trust(self, broker: NodeId) -> None:
        """It answers again; also after a connection was lost and made anew."""
        if broker not in self.near or broker in self.removed:
            return
        if broker in self.suspects:
            self.suspects.discard(broker)
            for other in sorted(self.near - {broker}):
                self._send_packet(other, Unwant(broker))
        for record in self._log.records():
            if broker in record.held:
                self._send(record, broker)
        self._send_packet(broker, Processed(self.received.prefixes()))
        self._send_packet(broker, Want(broker, self.received.numbers(broker).prefix, standing=False))
        for suspect in sorted(self.suspects):
            self._send_packet(broker, Want(suspect, self.received.numbers(suspect).prefix, standing=True))

    def remove(self, broker: NodeId) -> None:
        """It will not come back: of what it issued, nothing waits for what is not here, and the rest is processed in
        its order."""
        self.removed.add(broker)
        self.suspects.discard(broker)
        self._wants.pop(broker, None)
        for wanted in self._wants.values():
            wanted.pop(broker, None)
        self._log.forget(broker)
        life = self.received.lives.get(broker, 0)
        lives = {**self.received.lives, self.me: self.received.life}
        # Others may have taken it back already, and issued to its next life.
        later = {x: n for x, n in self._past.pop(broker, {}).items() if life_of(n) > lives.get(x, 0) + life}
        if later:
            self._past[broker] = later
        for copies in self._blocked.values():
            for copy in copies:
                self.received.leave_behind(copy.header)
        self._take(self._unblock(broker))

    def admit(self, broker: NodeId, life: int) -> None:
        """Take a broker back that was removed, in a new life: it counts from its beginning, and so do its peers."""
        self.received.admit(broker, life)
        self._log.readmit(broker)
        self._take(self._unblock(broker))

    def learn_life(self, broker: NodeId, life: int) -> bool:
        """It is in this life; False where something of an earlier one has to be given up first."""
        known = self.received.lives.get(broker, 0)
        if life <= known:
            return True
        if broker in self._out or broker in self.removed:
            return False
        self.received.lives[broker] = life
        self._take(self._unblock(broker))
        return True

    def closed(self) -> list[Record]:
        """Messages that all brokers nearby have by now, since this was asked last."""
        closed, self._log.closed = self._log.closed, []
        return closed

    @property
    def is_new(self) -> bool:
        """Has it processed nothing yet in this life?"""
        return self.turn == first_of(self.received.life)

    def on_missing(self, broker: NodeId) -> None:
        """Something has waited for it for the patience: ask it, and those between."""
        if broker in self._blocked:
            for other in (*self.tree.path(self.me, broker)[:-1], broker):
                if other in self.near:
                    self._send_packet(other, Want(broker, self.received.numbers(broker).prefix, standing=False))
            self.effects.append(SetTimer(("missing", broker), self.now + self._patience))

    # -- what others want ------------------------------------------------------------------------------------------

    def on_want(self, sender: NodeId, want: Want) -> None:
        if sender not in self.near:
            return
        if want.broker == self.me:
            for record in self._log.records():
                if record.numbers.get(sender, 0) > want.after:
                    self._send(record, sender)
            return
        if want.standing:
            self._wants.setdefault(want.broker, {})[sender] = want.after
        for record in self._log.records():
            if record.number(want.broker, sender) > want.after:
                self._send(record, sender)

    def _serve_wants(self, record: Record) -> None:
        for broker, wanted in self._wants.items():
            for target, after in sorted(wanted.items()):
                if record.number(broker, target) > after and target not in record.sent:
                    self._send(record, target)

    def on_unwant(self, sender: NodeId, packet: Unwant) -> None:
        wanted = self._wants.get(packet.broker)
        if wanted is not None:
            wanted.pop(sender, None)
            if not wanted:
                del self._wants[packet.broker]

    # -- acknowledgements ------------------------------------------------------------------------------------------

    def tell_processed(self) -> None:
        news = {broker: self.received.numbers(broker).prefix for broker in sorted(self._unacknowledged)}
        self._unacknowledged.clear()
        self._is_telling = False
        if news:
            peers = tuple(broker for broker in sorted(self.near) if broker not in self.removed)
            self.effects.append(Send(peers, Processed(news)))

    def on_processed(self, sender: NodeId, packet: Processed) -> None:
        if sender not in self.near:
            return
        said = packet.got.get(self.me, 0)
        now = self.received.lives_with(sender)
        if life_of(said) == now and said > max(self._out.get(sender, 0), first_of(now)):
            raise RemoteProtocolError("a broker says that it processed what was never issued to it")
        past = self._past.get(sender, {})
        for broker, number in packet.got.items():
            if past.get(broker, number + 1) <= number:
                del past[broker]
            self._log.acknowledge(sender, broker, number)

    def _send_packet(self, peer: NodeId, packet: object) -> None:
        self.effects.append(Send((peer,), packet))

    def _last_of(self, broker: NodeId) -> int:
        """How many of its messages were processed here without a hole."""
        prefix = self.received.numbers(broker).prefix
        return prefix - first_of(life_of(prefix))

    def waiting(self) -> list[str]:
        return [
            f"{len(copies)} copies wait for what broker {broker} issued after {self._last_of(broker)}"
            for broker, copies in sorted(self._blocked.items())
        ]

    def invariants(self) -> None:
        for missing, copies in self._blocked.items():
            for copy in copies:
                waits = self.received.missing(copy.header) is not None
                assert waits or missing in self.removed, "a copy waits for nothing"
        for record in self._log.records():
            assert record.open > 0, "a record is kept that everybody acknowledged"
            assert set(record.numbers) <= self.near, "a message was issued to a broker that is not near"
        for target, number in self._out.items():
            processed = self._log.acknowledged(target, self.me)
            assert processed <= max(number, first_of(life_of(processed))), "more was processed than was issued"
