"""The port of a node in its own process: what users ask for, put to the machine; what it says, handed to users."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cubecast.errors import BadInput, Closed, CubecastError, NotDurable, NotKept
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.log.history import History
from cubecast.net.node.channels import Channels, Host
from cubecast.net.node.durable.recorder import Producers, Recorder
from cubecast.net.node.publishing import PublishingSide
from cubecast.net.node.subscribing import SubscribingSide
from cubecast.net.node.subscriptions import Subscriptions
from cubecast.net.port.port import ProducerState, PublisherCut, Since, Sink
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
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import check_topic
from cubecast.protocol.families import find
from cubecast.protocol.inputs import Advertise


class LocalPort:
    """A `Port`, and the driver's `Listener`. It does nothing itself: what it is asked is the publishing side's, the
    subscribing side's or the log's, so it has a method for each request and each answer and hardly a line in it."""

    def __init__(self, config: NodeConfig, host: Host) -> None:
        self._config, self._host = config, host
        self._channels = Channels(host.call) if Advertise in find(config.protocol).requests else None
        """Where the protocol looks into messages itself."""
        subscriptions = Subscriptions(self._withholds)
        self.publishing = PublishingSide(config, host, self._channels, subscriptions)
        self.subscribing = SubscribingSide(config, host, self._channels, subscriptions, self.publishing)
        self._producers = Producers()
        self._closed: CubecastError | None = Closed("this node was not started yet")
        self.recorder: Recorder | None = None
        """Writes what is delivered into the node's log, when it keeps one."""

    def open(self, recorder: Recorder | None = None) -> None:
        """The node takes part. What it was asked before would be lost with a place that another node gets."""
        self._closed, self.recorder = None, recorder
        self.publishing.open(recorder)
        self.subscribing.open(recorder)
        if recorder is not None:
            recorder.attach(self)

    def _withholds(self, topic: Topic) -> bool:
        recorder = self.recorder
        return recorder is not None and recorder.catch_up.is_filling and recorder.records(topic)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed

    # Subscribing

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        self._check_open()
        return self.subscribing.subscribe(pattern, sink, since, where)

    def unsubscribe(self, subscription: int) -> None:
        self.subscribing.unsubscribe(subscription)

    def pause(self, subscription: int) -> None:
        self.subscribing.pause(subscription)

    def resume(self, subscription: int) -> None:
        self.subscribing.resume(subscription)

        # Publishing

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        if self._closed is not None:
            raise self._closed
        return self.publishing.publish(topic, payloads)

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        self._check_open()
        return self.publishing.ask(topic, payload)

    async def advertise(self, topic: Topic, where: str | None) -> None:
        self._check_open()
        self.publishing.advertise(self._broker(), topic, where)

    async def unadvertise(self, topic: Topic) -> None:
        self._check_open()
        self.publishing.unadvertise(self._broker(), topic)

    def _broker(self) -> Channels:
        if self._channels is None:
            raise BadInput(
                f"{self._config.protocol} needs no advertisements; protocols with brokers do (`cubecast protocols`)"
            )
        return self._channels

    def publishes(self, topic: Topic) -> bool:
        """Was anything published on it here?"""
        return topic in self.publishing.outgoing

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        return None  # what this port accepts is published, and a waiting publisher is told of everything before it

    def has_room(self, topic: Topic) -> bool:
        return self.publishing.has_room(topic)

    def room(self, topic: Topic) -> Awaitable[None]:
        self._check_open()
        return self.publishing.room(topic)

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        return self.publishing.stable(topic, accepted)

    # The log

    async def durable(self, topic: Topic, accepted: int) -> None:
        if self.recorder is None:
            if accepted:
                raise NotDurable(f"{topic}: published, and not durable: this node keeps no log")
            raise BadInput(f"{topic}: this node keeps no log, so nothing is durable. Nothing was published")
        self.publishing.departures.hurry()
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
        self.publishing.departures.hurry()
        status = self._host.status
        return self._producers.register(name, epoch, topics, on_fenced, self.recorder, self._accepted, status)

    def forget_producer(self, on_fenced: Callable[[str], None]) -> None:
        self._producers.forget(on_fenced)

    def _accepted(self, topic: Topic) -> int:
        return self.publish(topic, ())

    def _history(self) -> History:
        if self.recorder is None:
            raise NotKept("this node keeps no log")
        return self.recorder.history

    # The node around it

    async def status(self) -> dict[str, Any]:
        return self._host.status()

    async def close(self) -> None:
        await self._host.close()

    def reconfigure(self, config: NodeConfig) -> None:
        self._config = config
        self.publishing.reconfigure(config)

    def describe(self) -> dict[str, Any]:
        return self.subscribing.describe() | self.publishing.describe()

    def shut(self, error: CubecastError | None) -> None:
        self._closed = error or Closed("this node is closed")
        self.publishing.shut(self._closed)
        self.subscribing.shut(error)

    # What the machine says

    def on_deliver(self, topic: Topic, message: MessageId, payloads: Sequence[bytes], packet: Any = None) -> None:
        self.subscribing.on_deliver(topic, message, payloads, packet)

    def on_deliver_to(self, subscription: Topic, topic: Topic, message: MessageId, payloads: Sequence[bytes]) -> None:
        self.subscribing.on_deliver_to(subscription, topic, message, payloads)

    def on_published(self, topic: Topic, count: int) -> None:
        self.publishing.on_published(topic, count)

    def on_acknowledged(self, topic: Topic, counter: int) -> None:
        self.publishing.on_acknowledged(topic, counter)

    def on_failed(self, topic: Topic, count: int, reason: str) -> None:
        self.subscribing.on_failed(topic, count, reason)

    def on_subscribed(self, topic: Topic) -> None:
        self.subscribing.on_subscribed(topic)

    def on_interest_matched(self, topic: Topic) -> None:
        self.subscribing.on_interest_matched(topic)

    def on_interest_known(self) -> None:
        self.subscribing.on_interest_known()

    def on_gap(self, topic: Topic, missing: Sequence[MessageId], reason: str) -> None:
        self.subscribing.on_gap(topic, missing, reason)

    def on_undelivered(self, topic: Topic, missing: Sequence[MessageId], peer: NodeId) -> None:
        self.publishing.on_undelivered(topic, missing, peer)

    def on_reincarnated(self, incarnation: int) -> None:
        self.publishing.on_reincarnated()
        self.subscribing.on_reincarnated()
        self._host.on_new_incarnation(incarnation)
        if self.recorder is not None:
            self.recorder.catch_up.come_back()
