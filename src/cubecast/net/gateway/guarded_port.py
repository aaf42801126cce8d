"""A node's port as one client may use it: permissions, the publisher's name on each message, and so much per second.

Whatever lets clients in puts this between them and the node's own port. Where security is not enabled and there are no
limits it is not there. Follows decision 0023.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any

from cubecast.errors import CubecastError, NotPermitted
from cubecast.headers import stamp, stamped
from cubecast.ids import Topic
from cubecast.net.links.loop import Step
from cubecast.net.port.chunks import weight
from cubecast.net.port.port import NodePort, ProducerState, PublisherCut, Since, Sink
from cubecast.net.port.ranges import ALL, LogPiece, TopicLog, Wanted
from cubecast.net.security.limits import Bucket, TopicShares
from cubecast.net.security.policy import EVERYTHING, Action, Principal, refusal
from cubecast.net.settings.security import Limits
from cubecast.patterns import is_pattern

RENEWED_AT_ONCE = 100
"""Subscriptions that are looked at again under a new policy before others have their turn."""


class GuardedPort:
    """A `Port`."""

    def __init__(self, port: NodePort, principal: Principal, limits: Limits, shares: TopicShares) -> None:
        self._port, self._shares, self._most_topics = port, shares, limits.topics_per_principal
        self._loop = asyncio.get_running_loop()
        self.principal = principal
        self._stamp = b"" if principal.is_unrestricted else stamp(principal.name)
        self._subscribed: dict[int, tuple[str, Sink]] = {}
        now, rates = self._loop.time(), (limits.messages_per_second, limits.bytes_per_second)
        self._messages, self._bytes = (Bucket(rate, limits.burst, now) if rate else None for rate in rates)

    def renew(self, principal: Principal) -> Step:
        """The same client under a new policy, which counts from now on for whatever it asks. Returned is what ends its
        subscriptions that are not granted any more, a few at a time."""
        self.principal = principal
        left = iter(list(self._subscribed.items()))

        def look() -> bool:
            some = list(islice(left, RENEWED_AT_ONCE))
            for number, (pattern, sink) in some:
                is_there = number in self._subscribed and self.principal is principal
                if is_there and not principal.may(Action.SUBSCRIBE, pattern):
                    self.unsubscribe(number)
                    sink.on_end(NotPermitted(refusal(principal.name, Action.SUBSCRIBE, pattern)))
            return bool(some)

        return look

    # Subscribing

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        self.principal.check(Action.SUBSCRIBE, pattern)
        if not is_pattern(pattern):
            self._shares.take(self.principal, pattern, self._most_topics)
        number = self._port.subscribe(pattern, sink, since, where)
        self._subscribed[number] = pattern, sink
        return number

    def unsubscribe(self, subscription: int) -> None:
        if self._subscribed.pop(subscription, None) is not None:
            self._port.unsubscribe(subscription)

    def pause(self, subscription: int) -> None:
        self._port.pause(subscription)

    def resume(self, subscription: int) -> None:
        self._port.resume(subscription)

    # Publishing

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        return self._port.publish(topic, self._checked(topic, payloads))

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        return self._port.ask(topic, self._checked(topic, (payload,))[0])

    def _checked(self, topic: Topic, payloads: Sequence[bytes]) -> Sequence[bytes]:
        """What is published in the client's name, when it may be."""
        if not self.principal.may(Action.PUBLISH, topic):
            raise NotPermitted(refusal(self.principal.name, Action.PUBLISH, topic))
        self._shares.take(self.principal, topic, self._most_topics)
        if self._messages is not None:
            self._messages.take(len(payloads))
        if self._bytes is not None:
            self._bytes.take(weight(payloads))
        return stamped(self._stamp, payloads) if self._stamp else payloads

    async def advertise(self, topic: Topic, where: str | None) -> None:
        self.principal.check(Action.PUBLISH, topic)
        await self._port.advertise(topic, where)

    async def unadvertise(self, topic: Topic) -> None:
        self.principal.check(Action.PUBLISH, topic)
        await self._port.unadvertise(topic)

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        return self._port.doubt(accepted)

    def has_room(self, topic: Topic) -> bool:
        """Also: has the client published no more than its share?"""
        return self._port.has_room(topic) and not self._wait()

    def room(self, topic: Topic) -> Awaitable[None]:
        wait = self._wait()
        if not wait or not self._port.has_room(topic):
            return self._port.room(topic)
        future: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_later(wait, _done, future)
        return future

    def _wait(self) -> float:
        """Seconds for which the client is held back."""
        if self._messages is None and self._bytes is None:
            return 0.0
        now = self._loop.time()
        return max((bucket.wait(now) for bucket in (self._messages, self._bytes) if bucket is not None), default=0.0)

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        return self._port.stable(topic, accepted)

    async def durable(self, topic: Topic, accepted: int) -> None:
        if not accepted:
            self.principal.check(Action.PUBLISH, topic)  # whether a topic is logged is not for everybody to know
        await self._port.durable(topic, accepted)

    # The log: a client that may hear a topic may read what was said on it

    async def read_log(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL) -> LogPiece:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.read_log(topic, start, stop, wanted)

    async def read_log_packed(self, topic: Topic, start: int | None, stop: int | None, wanted: Wanted = ALL) -> bytes:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.read_log_packed(topic, start, stop, wanted)

    async def log_topics(self, after: Topic = "") -> list[TopicLog]:
        while page := await self._port.log_topics(after):
            heard = [one for one in page if self.principal.may(Action.SUBSCRIBE, one.topic)]
            if heard:
                return heard
            after = page[-1].topic  # an empty page would be taken for the end
            await asyncio.sleep(0)  # pages come without waiting, and may be many
        return []

    async def log_cut(self, topic: Topic, offset: int) -> PublisherCut:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.log_cut(topic, offset)

    async def log_place(self, topic: Topic, cut: PublisherCut) -> int:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.log_place(topic, cut)

    async def log_at(self, topic: Topic, at: float) -> int:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.log_at(topic, at)

    async def log_reach(self, topic: Topic, cut: PublisherCut) -> int:
        self.principal.check(Action.SUBSCRIBE, topic)
        return await self._port.log_reach(topic, cut)

    # Producers

    async def register_producer(
        self, name: str, epoch: int, topics: Sequence[Topic], on_fenced: Callable[[str], None]
    ) -> ProducerState:
        for topic in topics:
            self.principal.check(Action.PUBLISH, topic)
        return await self._port.register_producer(name, epoch, topics, on_fenced)

    def forget_producer(self, on_fenced: Callable[[str], None]) -> None:
        self._port.forget_producer(on_fenced)

    # The node

    async def status(self) -> dict[str, Any]:
        self.principal.check(Action.ADMIN, EVERYTHING)
        return await self._port.status()

    async def close(self) -> None:
        """The client goes; the node stays."""
        for number in list(self._subscribed):
            self.unsubscribe(number)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
