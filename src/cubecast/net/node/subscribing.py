"""The subscribing side of a node's port: who listens to what, and what the machine delivers.

What the node follows are the distinct patterns of its subscriptions with wildcards, told to the machine once a turn.
Each time the machine looks through all its topics and asks everybody for theirs: a client with many patterns, and many
clients with the same one, must not cost that much each.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from cubecast.addresses import Address
from cubecast.errors import BadInput, CubecastError, NotKept
from cubecast.ids import MessageId, MessageRun, Topic
from cubecast.net.node.channels import Channels, Host
from cubecast.net.node.durable.recorder import Recorder
from cubecast.net.node.durable.refill import Dial, Surroundings
from cubecast.net.node.durable.replaying import Replay
from cubecast.net.node.filtering import FilteredSink
from cubecast.net.node.publishing import PublishingSide
from cubecast.net.node.status import MOST_SHOWN
from cubecast.net.node.subscriptions import NOBODY, Subscriptions
from cubecast.net.port.port import FromCut, GapNotice, Run, Since, Sink
from cubecast.net.settings.config import NodeConfig
from cubecast.patterns import Selection, check_pattern, is_pattern
from cubecast.protocol.families import find
from cubecast.protocol.filters import parse
from cubecast.protocol.inputs import Follow


class Following:
    def __init__(self, subscriptions: Subscriptions, call: Callable[..., None]) -> None:
        self._subscriptions, self._call = subscriptions, call
        self._told: Selection | None = None
        self._is_known = False
        self.is_due = False
        """Is something to be told at the end of the turn?"""

    def changed(self) -> None:
        """A subscription with wildcards came or went."""
        if not self.is_due:
            self.is_due = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self.is_due = False
        wanted = self._subscriptions.interest
        if _patterns(wanted) != _patterns(self._told):
            self._told, self._is_known = wanted, False
            self._call("follow", wanted)
        elif self._is_known:
            self.known()
        self._subscriptions.forget_unheard(self._subscriptions.topics)

    def known(self) -> None:
        """No node publishes what was told without addressing this node. What is to be told yet is not part of it."""
        self._is_known = True
        self._subscriptions.interest_known(_patterns(self._told))

    def unknown(self) -> None:
        """The machine asks anew, in another life."""
        self._is_known = False

    def end(self) -> None:
        """Follow nothing any more."""
        if self._told is not None:
            self._call("follow", None)
        self.forget()

    def forget(self) -> None:
        """No subscriber is left to be told."""
        self._told, self._is_known = None, False


def _patterns(selection: Selection | None) -> frozenset[str]:
    return frozenset() if selection is None else frozenset(selection.patterns)


log = logging.getLogger(__name__)


class SubscribingSide:
    def __init__(
        self,
        config: NodeConfig,
        host: Host,
        channels: Channels | None,
        subscriptions: Subscriptions,
        publishing: PublishingSide,
    ) -> None:
        self._config, self._host, self._channels = config, host, channels
        self._subscriptions, self._publishing = subscriptions, publishing
        self._requests = find(config.protocol).requests
        self._following = Following(subscriptions, host.call)
        self._replays: dict[int, Replay] = {}
        self.recorder: Recorder | None = None

    def open(self, recorder: Recorder | None) -> None:
        self.recorder = recorder

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
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
                self._host.call("subscribe", pattern)
            self._subscriptions.check_ready_soon(number)  # a pattern may have brought the topic long ago
        return number

    def _replay(self, pattern: str, sink: Sink, since: Since) -> Replay:
        if self.recorder is None:
            raise NotKept(
                "this node keeps no log, so a subscription cannot begin there: ask a node that does, or give this one "
                "`data` and `log`"
            )
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
            self._host.call("unsubscribe", closed.pattern)
            if not self._following.is_due:
                self._subscriptions.forget_unheard((closed.pattern,))

    def pause(self, subscription: int) -> None:
        if subscription in self._replays:
            self._replays[subscription].pause()
        elif subscription in self._subscriptions:
            for topic in self._subscriptions.pause(subscription):
                self._host.hold_back(topic)

    def resume(self, subscription: int) -> None:
        if subscription in self._replays:
            self._replays[subscription].resume()
        elif subscription in self._subscriptions:
            for topic in self._subscriptions.resume(subscription):
                if not self._subscriptions.is_paused(topic):
                    self._host.let_through(topic)
                    self._publishing.resumed(topic)

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
        elif not (recorder.catch_up.is_filling and recorder.holds(topic, message, payloads)):
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
            if message[:2] == recorder.me and topic in self._publishing.outgoing:
                recorder.on_own(topic, self._publishing.outgoing[topic].base + message.counter + len(payloads) - 1)
        self._subscriptions.deliver(topic, message, payloads, logged)

    def on_failed(self, topic: Topic, count: int, reason: str) -> None:
        self._subscriptions.gap(GapNotice(topic, (), f"{count} own publications reached nobody: {reason}"))

    def on_subscribed(self, topic: Topic) -> None:
        self._subscriptions.confirmed(topic)

    def on_interest_matched(self, topic: Topic) -> None:
        self._subscriptions.attach_matching(topic)
        if self._subscriptions.is_paused(topic):
            self._host.hold_back(topic)  # who is full is full for topics that begin now, too

    def on_interest_known(self) -> None:
        self._following.known()

    def on_gap(self, topic: Topic, missing: Sequence[MessageId], reason: str) -> None:
        log.warning("a gap of %d messages: %s", len(missing), reason, extra={"topic": topic})
        if isinstance(missing, MessageRun):
            run = Run(missing.source, missing.incarnation, missing.first, missing.last)
            notice = GapNotice(topic, (), reason, (run,), len(missing))
        else:
            notice = GapNotice(topic, tuple(missing), reason)
        if self.recorder is None or not self.recorder.withholds(notice):
            self._subscriptions.gap(notice)

    def on_reincarnated(self) -> None:
        self._subscriptions.reopened()
        self._following.unknown()

    # The end

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
                self._host.call("unsubscribe", topic)
        self._following.end()
        self._subscriptions.end_all(None)

    def shut(self, error: CubecastError | None) -> None:
        self._subscriptions.end_all(error)
        self._following.forget()

    def describe(self) -> dict[str, Any]:
        subscribed = self._subscriptions.topics
        return {
            "subscriptions": len(self._subscriptions),
            "subscribed": subscribed[:MOST_SHOWN],
            "subscribed_in_all": len(subscribed),
        }
