"""What of a machine's inputs and effects becomes lines of the node's journal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

from cubecast.ids import Topic
from cubecast.protocol.effects import (
    Acknowledged,
    CancelTimer,
    Cut,
    Deliver,
    Effect,
    Failed,
    Gap,
    InterestKnown,
    InterestMatched,
    Link,
    Observe,
    Published,
    Reincarnated,
    Released,
    Send,
    SetTimer,
    Subscribed,
    Unlink,
    Unsubscribed,
)
from cubecast.protocol.inspector import Reached
from cubecast.trace.journal import JournalWriter
from cubecast.trace.partial import BASE, OFF
from cubecast.trace.schema import Kind, digest_of


class Journal:
    """Written at the end of every step, before anybody acts on its effects."""

    def __init__(self, directory: Path, node: int, incarnation: int, instance: bytes, *, packets: bool = False) -> None:
        self._writer = JournalWriter(directory, node, incarnation, instance.hex()[:8])
        self._packets = packets
        self._incarnation = incarnation
        self._subscribed: set[Topic] = set()

    def started(self, now: float) -> None:
        self._writer.line(Kind.START, now, self._incarnation)
        self._writer.flush()

    def began_late(self, now: float, published: Mapping[Topic, int], subscriptions: Sequence[Reached]) -> None:
        """Switched on in the middle of a life: what was before, and where each subscription is, as its cut."""
        line = self._writer.line
        line(Kind.START, now, self._incarnation)
        line(BASE, now, published)
        for one in subscriptions:
            self._subscribe(now, one.topic)
            if one.delivered:
                line(Kind.CUT, now, one.topic, one.delivered)
            if one.is_confirmed:
                line(Kind.SUBSCRIBED, now, one.topic, ())
        self._writer.flush()

    def switched_off(self, now: float) -> None:
        """The node goes on and nothing more is written."""
        self._writer.line(OFF, now)
        self._writer.close()

    def input(self, name: str, now: float, arguments: Sequence[Any]) -> None:
        if name == "subscribe":
            self._subscribe(now, arguments[0])
        elif name == "packet" and self._packets:
            self._packet(Kind.RECEIVE, now, *arguments)

    def effects(self, now: float, effects: list[Effect]) -> None:
        for effect in effects:
            self._effect(now, effect)
        self._writer.flush()

    def ended(self, now: float, *, at_rest: bool) -> None:
        """The last line: at rest nothing was under way."""
        self._writer.line(Kind.QUIESCENT if at_rest else Kind.STOP, now)
        self._writer.close()

    def abandon(self) -> None:
        """It cannot be written any more."""
        self._writer.abandon()

    def drop(self) -> None:
        """It was not this node's history after all."""
        self._writer.remove()

    def _effect(self, now: float, effect: Effect) -> None:
        line = self._writer.line
        match effect:
            case Deliver(topic, message, payloads):
                line(Kind.DELIVER, now, topic, *message, len(payloads), list(map(digest_of, payloads)))
            case Published(topic, counter, count, dependencies, payloads):
                line(Kind.PUBLISH, now, topic, counter, count, dependencies, list(map(digest_of, payloads)))
            case Acknowledged(topic, counter):
                line(Kind.ACKNOWLEDGED, now, topic, counter)
            case Failed(topic, counter, count, reason):
                line(Kind.FAILED, now, topic, counter, count, reason)
            case Cut(topic, last_excluded):
                line(Kind.CUT, now, topic, (last_excluded,))
            case Subscribed(topic, cut):
                line(Kind.SUBSCRIBED, now, topic, cut)
            case Unsubscribed(topic):
                self._subscribed.discard(topic)
                line(Kind.UNSUBSCRIBE, now, topic)
                line(Kind.UNSUBSCRIBED, now, topic)
            case Gap(topic, missing, reason):
                line(Kind.GAP, now, topic, missing, reason)
            case Reincarnated(incarnation, topics):
                line(Kind.STOP, now)
                line(Kind.START, now, incarnation, self._incarnation)
                self._incarnation = incarnation
                self._subscribed.clear()
                for topic in topics:
                    self._subscribe(now, topic)
            case Observe(kind, topic, message, peer, detail):
                line(kind, now, topic, message, peer, detail)
            case Send(peers, packet):
                for peer in peers if self._packets else ():
                    self._packet(Kind.SEND, now, peer, packet)
            case InterestMatched(topic, on):
                if on:
                    self._subscribe(now, topic)
            case SetTimer() | CancelTimer() | InterestKnown() | Released() | Link() | Unlink():
                pass
            case _:
                assert_never(effect)

    def _subscribe(self, now: float, topic: Topic) -> None:
        """Wished for by name or by an interest, it is one subscription."""
        if topic not in self._subscribed:
            self._subscribed.add(topic)
            self._writer.line(Kind.SUBSCRIBE, now, topic)

    def _packet(self, kind: Kind, now: float, peer: int, packet: Any) -> None:
        size = None if packet.frame is None else len(packet.frame)
        if packet.publication:
            batches = packet.carried()
            message = batches[0].first if len(batches) == 1 else None  # a line cannot name messages of several
            topics = {one.topic for one in batches}
            topic, count = topics.pop() if len(topics) == 1 else None, sum(one.messages for one in batches)
            self._writer.line(kind, now, peer, topic, message, count, size)
        else:
            self._writer.line(kind, now, peer, None, None, 0, size)
