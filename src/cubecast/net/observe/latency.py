"""How long publications take to be delivered elsewhere, without synchronised clocks and without a word in any message.

Every second a node picks one of its own publications. Once it is stable it asks some of the members it was for
when they delivered it; they answer with the time on their own clock, and with what that clock shows now. Each such
exchange also tells how far apart the two clocks are, to within half its round trip. The closest exchange of the last
minute is trusted, so the error is that of the fastest round trip, not that of a busy one. Members that hold the
publication are asked again, so that what takes long is not left out. Follows decision 0024.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from time import monotonic

import msgspec

from cubecast.errors import RemoteProtocolError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.observe.meter import Histogram, Meter

EVERY = 1.0
"""Seconds between two publications that are followed."""
MOST_ASKED = 2
"""Members asked about one publication, others each time."""
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before a member that has not delivered it yet is asked again; then it is given up."""
DRIFT = 1e-4
"""How much two clocks may drift apart, seconds in a second."""
MOST_OPEN = 256
ANSWER_WITHIN = 30.0
"""Seconds after which a member that was asked is given up: it does not observe, or it is gone."""


class Question(msgspec.Struct, frozen=True, array_like=True, tag=1):
    number: int
    topic: Topic
    incarnation: int
    counter: int


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=2):
    number: int
    now: float
    """On the clock of the member that answers."""
    delivered: float | None
    """On the same clock; None while it is not delivered."""
    forgotten: bool = False
    """It was delivered, and the member does not remember when."""


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Question | Answer] = msgspec.msgpack.Decoder(Question | Answer)


@dataclass
class _Open:
    peer: NodeId
    topic: Topic
    message: MessageId
    published: float
    asked: float
    again: int = 0


class Latency:
    def __init__(
        self, meter: Meter, send: Callable[[NodeId, bytes], bool], members: Callable[[Topic], list[NodeId]]
    ) -> None:
        self._meter, self._send, self._members = meter, send, members
        self._loop = asyncio.get_running_loop()
        self.histogram, self.uncertainty = Histogram(), Histogram()
        self.given_up = 0
        """Deliveries that were followed and never learned of."""
        self._open: dict[int, _Open] = {}
        self._numbers = 0
        self._turn = 0
        self._next = 0.0
        self._clocks: dict[NodeId, tuple[float, float, float]] = {}
        """Per peer: how far its clock is ahead, by how much that may be wrong, when it was measured."""
        meter.on_stable = self.on_stable

    def forget(self, peer: NodeId) -> None:
        """Another process may answer there now."""
        self._clocks.pop(peer, None)

    # What the meter sees

    def on_stable(self, now: float, topic: Topic, first: int, published: float) -> None:
        inspector = self._meter.inspector
        if published < self._next or inspector is None:
            return
        machine = inspector.machine
        self._next = published + EVERY
        self._give_up_the_silent()
        if len(self._open) >= MOST_OPEN:
            return
        members = [node for node in self._members(topic) if node != machine.node]
        self._turn += 1
        start = self._turn * MOST_ASKED % max(1, len(members))
        for peer in islice([*members[start:], *members[:start]], MOST_ASKED):
            self._numbers += 1
            message = MessageId(machine.node, machine.incarnation, first)
            self._open[self._numbers] = _Open(peer, topic, message, published, now)
            self._ask(self._numbers)

    # Asking

    def _ask(self, number: int) -> None:
        one = self._open.get(number)
        if one is None:
            return
        one.asked = monotonic()
        question = Question(number, one.topic, one.message.incarnation, one.message.counter)
        if not self._send(one.peer, _encode(question)):
            self._give_up(number)

    def _give_up_the_silent(self) -> None:
        """Or they would take up all the places that those who answer need."""
        now = monotonic()
        for number in [number for number, one in self._open.items() if now - one.asked > ANSWER_WITHIN]:
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        del self._open[number]
        self.given_up += 1

    def on_note(self, sender: NodeId, data: bytes) -> None:
        """RemoteProtocolError for what no correct node says."""
        try:
            note = _decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RemoteProtocolError(f"malformed note: {error}") from None
        if isinstance(note, Question):
            self._answer(sender, note)
        else:
            self._answered(sender, note)

    def _answer(self, sender: NodeId, question: Question) -> None:
        message, inspector = MessageId(sender, question.incarnation, question.counter), self._meter.inspector
        found = next(
            (
                now
                for topic, first, count, now in reversed(self._meter.recent)
                if first[:2] == message[:2] and topic == question.topic
                if first.counter <= message.counter < first.counter + count
            ),
            None,
        )
        forgotten = found is None and inspector is not None and inspector.has_delivered(question.topic, message)
        self._send(sender, _encode(Answer(question.number, monotonic(), found, forgotten)))

    def _answered(self, sender: NodeId, answer: Answer) -> None:
        one, now = self._open.get(answer.number), monotonic()
        if one is None or one.peer != sender:
            return
        ahead, error = self._compare(sender, answer.now, one.asked, now)
        if answer.delivered is not None:
            del self._open[answer.number]
            self.histogram.add(max(0.0, answer.delivered - ahead - one.published))
            self.uncertainty.add(error)
        elif answer.forgotten or one.again >= len(PAUSES):
            self._give_up(answer.number)
        else:
            one.again += 1
            self._loop.call_later(PAUSES[one.again - 1], self._ask, answer.number)

    def _compare(self, peer: NodeId, theirs: float, asked: float, now: float) -> tuple[float, float]:
        """By how much the peer's clock is ahead of ours, and how wrong that may be."""
        best = self._clocks.get(peer)
        error = (now - asked) / 2
        if best is None or error <= best[1] + DRIFT * (now - best[2]):
            best = self._clocks[peer] = (theirs - (asked + now) / 2, error, now)
        return best[0], best[1] + DRIFT * (now - best[2])
