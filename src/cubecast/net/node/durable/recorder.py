"""Between a node's port and its store: records what is delivered, and tells publishers when it is on the disk."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

from cubecast.checksums import checksum
from cubecast.errors import BadInput, CubecastError, Fenced, NotDurable, NotKept, OutcomeUnknown
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.log.history import History
from cubecast.log.record import Packed, make_tuple, pack
from cubecast.log.store import Store
from cubecast.net.node.durable.catch_up import CatchUp
from cubecast.net.node.durable.refill import Repair, Surroundings
from cubecast.net.node.durable.replaying import Replay, open_replay
from cubecast.net.port.port import GapNotice, Logged, Port, ProducerState, PublisherCut, Since, Sink
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import Selection, check_topic, covers
from cubecast.wire.codec import Codec

LARGE = 4096


def as_it_came(payloads: Sequence[bytes], packet: Any, codec: Codec) -> Packed:
    """A large packet is kept whole: its messages need not be packed again.

    Of a small one that would be mostly names. An own publication is encoded here, before it is sent.
    """
    if packet is None:
        return pack(payloads)
    frame = packet.frame
    if frame is None:
        frame = packet.frame = codec.encode(packet)
    if len(frame) < LARGE:
        return pack(payloads)
    return make_tuple(Packed, (len(payloads), frame, checksum(frame), codec.place_of(type(packet), "payloads")))


MOST_CHOSEN = 10_000
"""Topics for which it is remembered whether a pattern selects them."""


class _Quiet:
    """The log's subscriptions bring messages here; they are recorded where all deliveries pass, once and first."""

    def __init__(self) -> None:
        self.ready = asyncio.get_running_loop().create_future()

    def on_batch(
        self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None
    ) -> None: ...
    def on_ready(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)

    def on_live(self, known: PublisherCut) -> None: ...
    def on_gap(self, gap: GapNotice) -> None: ...
    def on_end(self, error: CubecastError | None) -> None:
        self.on_ready()  # no subscriber has to wait any more


class _Own:
    """This node's publications on one topic, counted as its port counts what it accepted."""

    __slots__ = ("given_up", "recorded", "ticket", "unknown", "waiters")

    def __init__(self) -> None:
        self.given_up = range(0)
        """The last ones of which the log has only the names, because the disk took nothing."""
        self.unknown = range(0)
        """The last ones that were under way when the node came back as another incarnation."""
        self.recorded = self.ticket = 0
        self.waiters: list[tuple[int, int, asyncio.Future[int]]] = []


class Recorder:
    def __init__(self, store: Store, patterns: Sequence[str], codec: Codec) -> None:
        """The codec is that of the packets that may be kept as they came."""
        self.store, self.history, self._codec = store, History(store, self._repair), codec
        self._patterns = tuple(patterns)
        self._selects = Selection(self._patterns)
        self._chosen: dict[Topic, bool] = {}
        self._own: dict[Topic, _Own] = {}
        self._port: Port | None = None
        self._subscriptions: list[int] = []
        self._sinks: list[_Quiet] = []
        self._is_paused = False
        self.me: tuple[NodeId, int] | None = None
        """This node's id and present incarnation, to tell its own publications."""
        self.catch_up = CatchUp(self.history, self._patterns, store.directory)
        self._repairs: Repair | None = None
        """By way of the peers, once there are any."""
        store.on_full, store.on_room = self._pause, self._resume

    def reconfigure(self, config: NodeConfig) -> None:
        """What may change while the log is open: how much of it is kept, and what may wait for it."""
        self.store.retain(config.retention)
        self.store.set_quota(config.log_quota)
        self.store.set_budget(config.log_budget)

    def begin_life(self, node: NodeId, incarnation: int) -> None:
        self.me = node, incarnation

    def attach(self, port: Port) -> None:
        """Record what is delivered from now on; what the peers' logs have may have to come first."""
        self._port = port
        self.catch_up.hold()
        self._sinks = [_Quiet() for _ in self._patterns]
        subscribed = zip(self._patterns, self._sinks, strict=True)
        self._subscriptions = [port.subscribe(pattern, sink) for pattern, sink in subscribed]

    def is_recording(self, sink: Sink) -> bool:
        """Is it one of this log's own subscriptions?"""
        return sink in self._sinks

    async def ready(self) -> None:
        """Done when whatever is published from now on is recorded."""
        for sink in self._sinks:
            await asyncio.shield(sink.ready)

    def holds(self, topic: Topic, message: MessageId, payloads: Sequence[bytes]) -> bool:
        """Does it have to wait until the log is filled?"""
        return self.records(topic) and self.catch_up.holds(topic, message, payloads)

    def withholds(self, notice: GapNotice) -> bool:
        """Are subscribers not to be told yet that something may be missing?"""
        return self.records(notice.topic) and self.catch_up.withholds(notice)

    async def fill(self, node: NodeId, around: Surroundings) -> None:
        """Get what this node's log misses, then repair what is damaged."""
        name = f"the log of node {node}"
        await self.catch_up.fill(name, around)
        self._repairs = Repair(self.history, around.peers, around.dial, name)
        for topic in self.store.topics():
            if self.store.damaged(topic):
                await self._repairs(topic)

    async def _repair(self, topic: Topic) -> int:
        return 0 if self._repairs is None else await self._repairs(topic)

    def records(self, topic: Topic) -> bool:
        chosen = self._chosen.get(topic)
        if chosen is None:
            if len(self._chosen) >= MOST_CHOSEN:
                self._chosen.clear()
            chosen = self._chosen[topic] = self._selects(topic)
        return chosen

    def replay(self, pattern: str, sink: Sink, since: Since) -> Replay:
        """A subscription that begins in the log; NotKept when not all of it is recorded."""
        if not any(covers(kept, pattern) for kept in self._patterns):
            kept = ", ".join(self._patterns)
            raise NotKept(f"the log of this node keeps {kept}, so a subscription to {pattern} cannot begin there")
        return open_replay(self.history, pattern, sink, since)

    def on_deliver(self, topic: Topic, message: MessageId, payloads: Sequence[bytes], packet: Any) -> Logged | None:
        """Its place in the log, when it is recorded. The packet is what it came in, if it holds nothing else."""
        if not (self._chosen.get(topic) or self.records(topic)):
            return None
        return self.history.append(topic, message, as_it_came(payloads, packet, self._codec))

    def _pause(self) -> None:
        if not self._is_paused and self._port is not None:
            self._is_paused = True
            for number in self._subscriptions:
                self._port.pause(number)

    def _resume(self) -> None:
        if self._is_paused and self._port is not None:
            self._is_paused = False
            for number in self._subscriptions:
                self._port.resume(number)

    # Publishers that wait for the disk

    def on_own(self, topic: Topic, accepted: int) -> None:
        """Own publications were delivered here, up to this one of those the port accepted."""
        if not self.records(topic):
            return
        own = self._own.get(topic)
        if own is None:
            own = self._own[topic] = _Own()
        if self.store.keeps_names_only:
            begin = own.given_up.start if own.given_up.stop == own.recorded + 1 else own.recorded + 1
            own.given_up = range(begin, accepted + 1)
        own.recorded, own.ticket = accepted, self.store.ticket
        while own.waiters and own.waiters[0][0] <= accepted:
            future = heappop(own.waiters)[2]
            if not future.done():
                future.set_result(own.ticket)

    def on_restart(self, topic: Topic, published: int) -> None:
        """The node goes on as another incarnation; so many were published before, and not all may be delivered."""
        own = self._own.get(topic)
        if own is not None and own.recorded < published:
            own.unknown = range(own.recorded + 1, published + 1)
            own.recorded = published
            while own.waiters and own.waiters[0][0] <= published:
                future = heappop(own.waiters)[2]
                if not future.done():
                    future.set_exception(_cut_off(topic))

    def check(self, topic: Topic) -> None:
        """BadInput when nothing published there would ever be durable, NotDurable while the disk takes nothing."""
        if not self.records(topic):
            raise BadInput(f"{topic}: this node's log does not keep the topic. Nothing was published")
        if self.store.trouble is not None:
            raise NotDurable(f"{topic}: {self.store.trouble}. Nothing was published")

    async def durable(self, topic: Topic, accepted: int) -> None:
        """Done when the first so many of the port's publications are on the disk."""
        if not accepted:
            return self.check(topic)
        if not self.records(topic):
            raise NotDurable(f"{topic}: published, and not durable: this node's log does not keep the topic")
        ticket = await self._recorded(topic, accepted)
        if accepted in self._own[topic].unknown:
            raise _cut_off(topic)
        if accepted in self._own[topic].given_up:
            raise NotDurable(f"{topic}: published, and not durable: the disk took nothing, only its name is kept")
        try:
            await self.store.synced(ticket)
        except NotDurable as error:
            raise NotDurable(f"{topic}: published, and not durable so far: {error}") from None

    async def _recorded(self, topic: Topic, accepted: int) -> int:
        own = self._own.setdefault(topic, _Own())
        if accepted <= own.recorded:
            return own.ticket
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heappush(own.waiters, (accepted, id(future), future))
        return await future

    # The rest

    def describe(self) -> dict[str, Any]:
        return {"patterns": list(self._patterns), **self.store.describe()}

    async def close(self) -> None:
        self.catch_up.close()
        for topic, own in self._own.items():
            for _, _, future in own.waiters:
                if not future.done():
                    future.set_exception(OutcomeUnknown(f"{topic}: the node was closed before the log had it"))
        await self.store.close()


def _cut_off(topic: Topic) -> OutcomeUnknown:
    text = "the node was cut off and came back; accepted, and it is not known whether it was published and is durable"
    return OutcomeUnknown(f"{topic}: {text}")


async def open_recorder(config: NodeConfig, codec: Codec) -> Recorder | None:
    """As the settings say; None for a node that keeps no log."""
    if not config.log or config.data is None:
        return None
    store = await Store.open(config.data, budget=config.log_budget, quota=config.log_quota, retention=config.retention)
    return Recorder(store, config.log, codec)


# Producers that number what they publish, so that what was published is not published again.
#
# A producer is a name; a client that publishes under it says which epoch of it this is, and registers with every
# member. From then on members take nothing from connections that registered with an older epoch, and from no other
# connection of the same one: what such a connection has under way is either accepted before the answer or never. The
# answer has the last number the node's log has on each topic. How a producer gets from these answers to what it may
# publish is in `api/producer.py`.

MOST_PRODUCERS = 10_000
"""Whose epochs are remembered; of more, those asked about longest ago are forgotten."""
MOST_TOPICS = 1_000
MOST_NAME = 200


class Producers:
    def __init__(self) -> None:
        self._epochs: OrderedDict[str, tuple[int, Callable[[str], None]]] = OrderedDict()

    async def register(
        self,
        name: str,
        epoch: int,
        topics: Sequence[Topic],
        on_fenced: Callable[[str], None],
        recorder: Recorder | None,
        accepted: Callable[[Topic], int],
        status: Callable[[], dict[str, Any]],
    ) -> ProducerState:
        """Fenced when a newer epoch is known; the connection that published before is told through its `on_fenced`."""
        if not name or len(name) > MOST_NAME or len(topics) > MOST_TOPICS:
            raise BadInput(f"a producer has a name of up to {MOST_NAME} letters, and up to {MOST_TOPICS} topics")
        if recorder is None:
            raise NotKept("this node keeps no log, and what was published before is known from logs")
        self._take_over(name, epoch, on_fenced)
        kept = [topic for topic in map(check_topic, topics) if recorder.records(topic)]
        for topic in kept:
            if accepted(topic):
                with suppress(OutcomeUnknown):  # the log tells
                    await recorder.durable(topic, accepted(topic))
        numbers = await recorder.store.last_numbers(name, kept)
        told = status()
        members = [one for one in told.get("members", ()) if one["alive"] and one["node"] != told["node"]]
        return ProducerState(numbers, [one["address"] for one in members], bool(told.get("settled", True)))

    def _take_over(self, name: str, epoch: int, on_fenced: Callable[[str], None]) -> None:
        known, tell = self._epochs.get(name, (epoch, on_fenced))
        if epoch < known:
            raise Fenced(f"producer {name} is in epoch {known} already; epoch {epoch} publishes nothing any more")
        self._epochs[name] = epoch, on_fenced
        self._epochs.move_to_end(name)
        if tell is not on_fenced:
            tell(f"producer {name} registered elsewhere, with epoch {epoch}")
        if len(self._epochs) > MOST_PRODUCERS:
            self._epochs.popitem(last=False)

    def forget(self, on_fenced: Callable[[str], None]) -> None:
        """The connection is gone; the epochs count."""
        for name, (epoch, tell) in self._epochs.items():
            if tell is on_fenced:
                self._epochs[name] = epoch, _nobody


def _nobody(reason: str) -> None:
    pass
