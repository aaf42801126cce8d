"""The port of a node in its own process: what users ask for, put to the machine; what it says, handed to users."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from cubecast.addresses import Address
from cubecast.errors import BadInput, Closed, CubecastError, NotDurable, NotKept, OutcomeUnknown
from cubecast.ids import MessageId, Topic
from cubecast.log.reading import History
from cubecast.net.links.turn import Turn
from cubecast.net.node.channels import Channels
from cubecast.net.node.durable.producers import Producers
from cubecast.net.node.durable.recorder import Recorder
from cubecast.net.node.durable.refill import Dial, Surroundings
from cubecast.net.node.durable.replaying import Replay
from cubecast.net.node.filtering import FilteredSink
from cubecast.net.node.following import Following
from cubecast.net.node.outgoing import Outgoing
from cubecast.net.node.pacing import Departures, processor_waits
from cubecast.net.node.status import MOST_SHOWN
from cubecast.net.node.subscriptions import NOBODY, Subscriptions
from cubecast.net.port.port import GapNotice, ProducerState, Sink
from cubecast.net.port.ranges import (
    ALL,
    LogPiece,
    TopicLog,
    Wanted,
    cut_up_to,
    decode_piece,
    list_topics,
    place_at,
    place_before,
    place_behind,
    read_piece,
)
from cubecast.net.port.since import FromCut, PublisherCut, Since
from cubecast.net.settings.config import MOST_BATCH_BYTES, NodeConfig
from cubecast.patterns import check_pattern, check_topic, is_pattern
from cubecast.protocol.effects import Acknowledged
from cubecast.protocol.families import find
from cubecast.protocol.filters import parse
from cubecast.protocol.inputs import Advertise, Follow
from cubecast.wire.codec import MAX_PACKET_BYTES

log = logging.getLogger(__name__)

TOPICS_AT_ONCE = 64
"""Topics whose messages are handed to the machine in one step."""
Call = Callable[..., None]

LARGE = MOST_BATCH_BYTES
"""Larger messages are looked at one by one: they and what is said about them may be too much for a packet."""
MARGIN = 8 << 10
"""Bytes for what they may depend on in addition when they leave."""


def _kept(config: NodeConfig) -> int:
    """Bytes of a message that the protocol has room for; all that a packet may have, if it sets no bound."""
    family = find(config.protocol)
    chosen = family.chosen(config.chosen(config.dimension), live=True)
    return getattr(chosen, family.largest) if family.largest else MAX_PACKET_BYTES


class LocalPort:
    """A `Port`, and the driver's `Listener`."""

    def __init__(self, config: NodeConfig, call: Call, hold_back: Call, let_through: Call) -> None:
        self._config = config
        family = find(config.protocol)
        self._channels = Channels(call) if Advertise in family.requests else None
        """Where the protocol looks into messages itself."""
        self._requests, self._learns_stability = family.requests, family.frees is Acknowledged
        self._bound = family.largest
        self._kept = _kept(config)
        self._unquestioned = min(LARGE, config.max_payload, self._kept)
        self._call, self._hold_back, self._let_through = call, hold_back, let_through
        self._subscriptions = Subscriptions()
        self._following = Following(self._subscriptions, call)
        self._replays: dict[int, Replay] = {}
        self._outgoing: dict[Topic, Outgoing] = {}
        self._dirty: list[Outgoing] = []
        self._questions: dict[Topic, list[tuple[int, asyncio.Future[bool]]]] = {}
        """Published, and not left yet."""
        self.departures = Departures(self._hand_over)
        """When what was published leaves."""
        self._closed: CubecastError | None = Closed("this node was not started yet")
        self.turn = Turn()
        """Of the links: what is published is written without another pass through the event loop."""
        self.envelope: Callable[[Topic], int] = lambda topic: 0
        """Bytes a publication on the topic would take besides its messages."""
        self.reaches: Callable[[Topic], bool] = self.hears
        """Is there any subscriber of the topic, in the whole cluster?"""
        self.on_new_incarnation: Callable[[int], None] = lambda incarnation: None
        self.on_status: Callable[[], dict[str, Any]] = self.describe
        self.on_close: Callable[[], Awaitable[None]] | None = None
        self.producers = Producers()
        self.recorder: Recorder | None = None
        """Writes what is delivered into the node's log, when it keeps one."""

    def open(self) -> None:
        """The node takes part. What it was asked before would be lost with a place that another node gets."""
        self._closed = None
        waits = processor_waits() if self._config.pacing else None
        if waits is not None:
            self.departures.watch(waits)
        if self.recorder is not None:
            self._subscriptions.withholds = self._withholds
            self.recorder.attach(self)

    def _withholds(self, topic: Topic) -> bool:
        return self.recorder is not None and self.recorder.returning.is_filling and self.recorder.records(topic)

    # Subscribing

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        self._check_open()
        if self._channels is not None:
            return self._channels.subscribe(self._subscriptions, check_pattern(pattern), sink, since, where)
        wanted = None if where is None else parse(where)
        if is_pattern(pattern) and Follow not in self._requests:
            raise BadInput(f"{self._config.protocol} follows no patterns; name the topics, or run cubecast")
        if since is None:
            number = self._subscriptions.open(pattern, sink, wanted)
        else:  # a reader of the log has to see all of it pass
            replay = self._replay(pattern, sink if wanted is None else FilteredSink(sink, wanted), since)
            number = self._subscriptions.open(pattern, replay)
            self._replays[number] = replay
            replay.start()
        if is_pattern(pattern):
            self._subscriptions.attach_known(number)
            self._following.changed()
        else:
            if self._subscriptions.attach(number, pattern):
                self.on_interest_matched(pattern)  # the machine says so only of topics that no subscriber named
                self._call("subscribe", pattern)
            self._subscriptions.check_ready_soon(number)  # a pattern may have brought the topic long ago
        return number

    def _replay(self, pattern: str, sink: Sink, since: Since) -> Replay:
        if self.recorder is None:
            raise NotKept("this node keeps no log, so a subscription cannot begin there")
        if isinstance(since, FromCut) and since.resumes and not self._subscriptions.is_served(pattern):
            raise NotKept(f"this node has listened to {pattern} for too short a time to go on where another one ended")
        return self.recorder.replay(check_pattern(pattern), sink, since)

    def unsubscribe(self, subscription: int) -> None:
        if subscription in self._subscriptions and self._subscriptions[subscription].is_paused:
            self.resume(subscription)
        self._replays.pop(subscription, None)
        closed = self._subscriptions.close(subscription)
        if closed is None:
            return
        if self._channels is not None:
            self._channels.unsubscribe(self._subscriptions, closed)
        elif closed.is_wild:
            self._following.changed()
        elif not self._subscriptions.names(closed.pattern):
            self._call("unsubscribe", closed.pattern)
            if not self._following.is_due:
                self._subscriptions.forget_unheard((closed.pattern,))

    def pause(self, subscription: int) -> None:
        if subscription in self._replays:
            self._replays[subscription].pause()
        elif subscription in self._subscriptions:
            for topic in self._subscriptions.pause(subscription):
                self._hold_back(topic)

    def resume(self, subscription: int) -> None:
        if subscription in self._replays:
            self._replays[subscription].resume()
        elif subscription in self._subscriptions:
            for topic in self._subscriptions.resume(subscription):
                if not self._subscriptions.is_paused(topic):
                    self._let_through(topic)
                    self._hand_over_soon(self._outgoing.get(topic))

    # Publishing

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        out = self._outgoing.get(topic)
        if not payloads:
            self._check_open()
            return 0 if out is None else out.accepted
        largest = max(map(len, payloads))
        if largest > self._unquestioned:
            self._check_size(topic, largest)
        self._check_open()
        if self._channels is not None:
            self._channels.check(topic, payloads)
        out = out or self._out(topic)
        accepted = out.accept(payloads)
        if not out.is_dirty:
            self._hand_over_soon(out)
        elif self.departures.is_holding and out.is_urgent:
            self.departures.hurry()
        return accepted

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        accepted = self.publish(topic, (payload,))
        reaches: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._questions.setdefault(topic, []).append((accepted, reaches))
        return reaches

    def _answer_questions(self, out: Outgoing) -> None:
        """Now, when they leave: later others may have come or gone."""
        questions = self._questions.pop(out.topic, [])
        waiting = [one for one in questions if one[0] > out.published]
        if waiting:
            self._questions[out.topic] = waiting
        reaches = len(waiting) < len(questions) and self.reaches(out.topic)
        for accepted, future in questions:
            if accepted <= out.published and not future.done():
                future.set_result(reaches)

    def hears(self, topic: Topic) -> bool:
        """Does anybody here listen to it, the log apart?"""
        found, recorder = self._subscriptions.by_topic.get(topic, NOBODY).everybody(), self.recorder
        return any(recorder is None or not recorder.is_recording(one.sink) for one in found)

    def _check_size(self, topic: Topic, size: int) -> None:
        """A message travels with the names of what it depends on, and all of it must fit into a packet."""
        most, envelope = self._config.max_payload, self.envelope(topic)
        if size > most:
            raise BadInput(f"a message of {size} bytes; this node takes at most {most}. Nothing was published")
        if size > self._kept:
            raise BadInput(
                f"a message of {size} bytes, and only {self._kept} are kept for others: raise {self._bound}. "
                "Nothing was published"
            )
        if size + envelope + MARGIN > MAX_PACKET_BYTES:
            raise BadInput(
                f"a message of {size} bytes on {topic!r}, which just now takes up to {envelope} bytes to say what it "
                f"depends on; both together may have {MAX_PACKET_BYTES - MARGIN}. Nothing was published"
            )

    def _out(self, topic: Topic) -> Outgoing:
        self._check_open()
        out = self._outgoing[check_topic(topic)] = Outgoing(topic, self._config.topic_budget)
        return out

    def _hand_over_soon(self, out: Outgoing | None) -> None:
        if out is not None and not out.is_dirty and out.is_worth_a_call:
            out.is_dirty = True
            if not self._dirty:
                asyncio.get_running_loop().call_soon(self._end_turn)
            self._dirty.append(out)

    def _end_turn(self) -> None:
        if not self.departures.holds(self._dirty):
            self._hand_over()

    def _hand_over(self) -> None:
        """Each topic's messages become one call; while some wait already, they pile up."""
        dirty, self._dirty = self._dirty[:TOPICS_AT_ONCE], self._dirty[TOPICS_AT_ONCE:]
        if self._dirty:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self.turn.is_held, self.turn.is_short = True, len(dirty) == 1
        try:
            for out in dirty:
                out.is_dirty = False
                if self._channels is not None:
                    self._channels.hand_over(out)
                    self._hand_over_soon(out)
                    continue
                if self._subscriptions.is_paused(out.topic):
                    continue  # publishing here would deliver here, where a subscriber is full
                if out.is_worth_a_call:
                    self._call("publish", out.topic, out.take(), out.is_awaited)
        finally:
            self.turn.release()

    async def advertise(self, topic: Topic, where: str | None) -> None:
        self._check_open()
        self._broker().advertise(check_topic(topic), where, self._outgoing, self._config.topic_budget)

    async def unadvertise(self, topic: Topic) -> None:
        self._check_open()
        self._broker().unadvertise(topic, self._outgoing)

    def _broker(self) -> Channels:
        if self._channels is None:
            raise BadInput(
                f"{self._config.protocol} needs no advertisements; protocols with brokers do (`cubecast protocols`)"
            )
        return self._channels

    def publishes(self, topic: Topic) -> bool:
        """Was anything published on it here?"""
        return topic in self._outgoing

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        return None  # what this port accepts is published, and a waiting publisher is told of everything before it

    def has_room(self, topic: Topic) -> bool:
        out = self._outgoing.get(topic)
        return out is None or out.has_room

    def room(self, topic: Topic) -> Awaitable[None]:
        self._check_open()
        return (self._outgoing.get(topic) or self._out(topic)).room()

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        out = self._outgoing.get(topic)
        if out is None:  # nothing was ever published on it, which everybody has
            nothing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            nothing.set_result(None)
            return nothing
        if not self._learns_stability:
            name = find(self._config.protocol).name
            raise OutcomeUnknown(f"{name} never learns whether everybody has a publication; it was handed over")
        if out.pending:
            self.departures.hurry()
        return out.when_stable(accepted)

    async def durable(self, topic: Topic, accepted: int) -> None:
        if self.recorder is None:
            if accepted:
                raise NotDurable(f"{topic}: published, and not durable: this node keeps no log")
            raise BadInput(f"{topic}: this node keeps no log, so nothing is durable. Nothing was published")
        self.departures.hurry()
        await self.recorder.durable(topic, accepted)

    async def read_log(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL) -> LogPiece:
        return decode_piece(await self.read_log_packed(topic, start, stop, wanted))

    async def read_log_packed(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL) -> bytes:
        return await read_piece(self._history(), check_topic(topic), start, stop, wanted)

    async def log_topics(self, after: Topic = "") -> list[TopicLog]:
        return list_topics(self._history(), after)

    async def log_cut(self, topic: Topic, offset: int) -> PublisherCut:
        return await cut_up_to(self._history(), check_topic(topic), offset)

    async def log_place(self, topic: Topic, cut: PublisherCut) -> int:
        return await place_behind(self._history(), check_topic(topic), cut)

    async def log_at(self, topic: Topic, at: float) -> int:
        return await place_at(self._history(), check_topic(topic), at)

    async def log_reach(self, topic: Topic, cut: PublisherCut) -> int:
        return await place_before(self._history(), check_topic(topic), cut)

    def register_producer(
        self, name: str, epoch: int, topics: Sequence[Topic], on_fenced: Callable[[str], None]
    ) -> Awaitable[ProducerState]:
        self._check_open()
        self.departures.hurry()
        return self.producers.register(name, epoch, topics, on_fenced, self.recorder, self._accepted, self.on_status)

    def forget_producer(self, on_fenced: Callable[[str], None]) -> None:
        self.producers.forget(on_fenced)

    def _accepted(self, topic: Topic) -> int:
        return self.publish(topic, ())

    def _history(self) -> History:
        if self.recorder is None:
            raise NotKept("this node keeps no log")
        return self.recorder.history

    async def published_all(self) -> None:
        """Until everything accepted is stable, or that cannot be known any more."""
        self.departures.hurry()
        for out in list(self._outgoing.values()):
            with suppress(CubecastError):
                await out.when_stable(out.accepted)

    # The node around it

    def reconfigure(self, config: NodeConfig) -> None:
        self._config = config
        self._unquestioned = min(LARGE, config.max_payload, self._kept)
        for out in self._outgoing.values():
            out.resize(config.topic_budget)

    async def status(self) -> dict[str, Any]:
        return self.on_status()

    async def close(self) -> None:
        if self.on_close is not None:
            await self.on_close()

    # What the machine says

    def on_deliver(self, topic: Topic, message: MessageId, payloads: Sequence[bytes], packet: Any = None) -> None:
        recorder = self.recorder
        if recorder is None:
            audience = self._subscriptions.by_topic.get(topic)
            if audience is not None:
                for subscription in audience.unfiltered():
                    subscription.sink.on_batch(topic, message, payloads)
                if audience.filtered is not None:
                    audience.filtered.deliver(topic, message, payloads, None)
        elif not (recorder.returning.is_filling and recorder.holds(topic, message, payloads)):
            self.deliver(topic, message, payloads, packet)

    def on_deliver_to(self, subscription: Topic, topic: Topic, message: MessageId, payloads: Sequence[bytes]) -> None:
        """For those only that share this channel."""
        for one in self._subscriptions.by_topic.get(subscription, NOBODY).everybody():
            if one.matches(topic):
                one.sink.on_batch(topic, message, payloads)

    def deliver(self, topic: Topic, message: MessageId, payloads: Sequence[bytes], packet: Any = None) -> None:
        """Into the log, where there is one, and to everybody who listens."""
        logged, recorder = None, self.recorder
        if recorder is not None:
            logged = recorder.on_deliver(topic, message, payloads, packet)
            if message[:2] == recorder.me and topic in self._outgoing:
                recorder.on_own(topic, self._outgoing[topic].base + message.counter + len(payloads) - 1)
        self._subscriptions.deliver(topic, message, payloads, logged)

    def on_published(self, topic: Topic, count: int) -> None:
        out = self._outgoing[topic]
        out.published += count
        if self._questions:
            self._answer_questions(out)
        self._hand_over_soon(out)

    def on_acknowledged(self, topic: Topic, counter: int) -> None:
        out = self._outgoing[topic]
        out.acknowledged(counter)
        self._hand_over_soon(out)

    def on_failed(self, topic: Topic, count: int, reason: str) -> None:
        self._subscriptions.gap(GapNotice(topic, (), f"{count} own publications reached nobody: {reason}"))

    def on_subscribed(self, topic: Topic) -> None:
        self._subscriptions.confirmed(topic)

    def on_interest_matched(self, topic: Topic) -> None:
        self._subscriptions.attach_matching(topic)
        if self._subscriptions.is_paused(topic):
            self._hold_back(topic)  # who is full is full for topics that begin now, too

    def on_interest_known(self) -> None:
        self._following.known()

    def on_gap(self, topic: Topic, missing: tuple[MessageId, ...], reason: str) -> None:
        log.warning("a gap of %d messages: %s", len(missing), reason, extra={"topic": topic})
        notice = GapNotice(topic, missing, reason)
        if missing or self.recorder is None or not self.recorder.withholds(notice):
            self._subscriptions.gap(notice)

    def on_reincarnated(self, incarnation: int) -> None:
        for out in self._outgoing.values():
            out.restarted()
            if self.recorder is not None:
                self.recorder.on_restart(out.topic, out.base)
        self._subscriptions.reopened()
        self._following.unknown()
        self.on_new_incarnation(incarnation)
        if self.recorder is not None:
            self.recorder.returning.come_back()

    # The end

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed

    def surroundings(self, members: Callable[[], dict[bytes, Address]], dial: Dial) -> Surroundings:
        """Of the log, when it has to be filled."""
        subscriptions, recorder = self._subscriptions, self.recorder

        def has_room() -> bool:
            return (recorder is None or recorder.store.has_room) and not subscriptions.is_any_paused

        return Surroundings(
            members,
            dial,
            self.deliver,
            subscriptions.gap,
            lambda: subscriptions.is_complete,
            has_room,
        )

    def unsubscribe_all(self) -> None:
        for topic in self._subscriptions.topics:
            if self._subscriptions.names(topic):
                self._call("unsubscribe", topic)
        self._following.end()
        self._subscriptions.end_all(None)

    def shut(self, error: CubecastError | None) -> None:
        self._closed = error or Closed("this node is closed")
        for out in self._outgoing.values():
            out.close(self._closed)
        self._subscriptions.end_all(error)
        self._following.forget()
        self.departures.end()

    def describe(self) -> dict[str, Any]:
        subscribed = self._subscriptions.topics
        outgoing = {
            out.topic: {"accepted": out.accepted, "stable": out.stable, "bytes_under_way": out.bytes}
            for out in islice(self._outgoing.values(), MOST_SHOWN)
        }
        return {
            "subscriptions": len(self._subscriptions),
            "subscribed": subscribed[:MOST_SHOWN],
            "subscribed_in_all": len(subscribed),
            "outgoing": outgoing,
            "outgoing_in_all": len(self._outgoing),
            "pace": self.departures.pace,
        }
