"""A client's publications at its node, taken in the order they came, and its questions about them.

Those the node has no room for wait here, no more of them than the client has credit for.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from cubecast.errors import BadInput, CubecastError, HandedOver, OutcomeUnknown, RemoteProtocolError
from cubecast.ids import Topic
from cubecast.net.gateway.link import Link, OpenRequests
from cubecast.net.gateway.messages import (
    CREDIT,
    Advertise,
    Advertised,
    AwaitDurable,
    AwaitStable,
    Durable,
    Publish,
    Reaches,
    Stable,
    Taken,
)
from cubecast.net.port.chunks import weight
from cubecast.net.port.port import NodePort

TOPICS_REMEMBERED = 1_000
"""Topics for which a client may still ask about stability."""


class ClientPublications:
    def __init__(self, port: NodePort, link: Link, send: Callable[[Any], None], requests: OpenRequests) -> None:
        self._port, self._link, self._send, self._requests = port, link, send, requests
        self._backlog: deque[Publish | AwaitStable | AwaitDurable | Advertise] = deque()
        self._backlog_bytes = 0
        self._heard = self._published = 0
        self._accepted: OrderedDict[Topic, int] = OrderedDict()
        self._waiting_for_room: asyncio.Future[None] | None = None
        self._refused: OrderedDict[Topic, BadInput] = OrderedDict()
        """Why the last publication on a topic was none, until the client asks."""
        self._closed = False

    def close(self) -> None:
        """The client is gone."""
        self._closed = True
        if self._waiting_for_room is not None:
            self._waiting_for_room.cancel()
        self._backlog.clear()

    def on_publish(self, message: Publish) -> None:
        self._heard += 1
        if message.number != self._heard:
            raise RemoteProtocolError(f"publication {message.number} where {self._heard} was expected: one is repeated")
        size = weight(message.payloads)
        self._backlog_bytes += size
        if not message.payloads or self._backlog_bytes > CREDIT + size:
            raise RemoteProtocolError("a client published nothing, or more than it has credit for")
        if message.request is not None and len(message.payloads) > 1:
            raise RemoteProtocolError("a question is a single message")
        self._backlog.append(message)

    def on_await(self, message: AwaitStable | AwaitDurable) -> None:
        self._requests.begin()
        self._backlog.append(message)

    def take(self) -> None:
        """Hand to the node what it has room for; come back when it has more."""
        before = self._published
        while self._backlog and self._waiting_for_room is None:
            message = self._backlog[0]
            if isinstance(message, AwaitStable):
                self._await_stable(message)
            elif isinstance(message, AwaitDurable):
                self._await_durable(message)
            elif isinstance(message, Advertise):
                self._advertise(message)
            elif self._port.has_room(message.topic):
                self._publish(message)
            else:
                # Shielded: the port may give the same future to everybody who waits.
                self._waiting_for_room = asyncio.shield(self._port.room(message.topic))
                self._waiting_for_room.add_done_callback(self._room_came)
                break
            self._backlog.popleft()
        if self._published > before:
            self._send(Taken(self._published))

    def _publish(self, message: Publish) -> None:
        self._backlog_bytes -= weight(message.payloads)
        self._published = message.number
        try:
            self._accepted[message.topic] = self._hand_over(message)
            self._accepted.move_to_end(message.topic)
            self._refused.pop(message.topic, None)
            if len(self._accepted) > TOPICS_REMEMBERED:
                self._accepted.popitem(last=False)
        except BadInput as error:
            if message.request is not None:
                self._send(Reaches(message.request, False, (type(error).__name__, str(error))))
                return
            self._refused[message.topic] = error
            if len(self._refused) > TOPICS_REMEMBERED:
                self._refused.popitem(last=False)
            self._send(Taken(message.number, str(error)))
        except CubecastError as error:
            self._link.abort(f"the node takes no publications any more: {error}")

    def _hand_over(self, message: Publish) -> int:
        """How many messages of the client's the node has accepted on the topic."""
        if message.request is None:
            return self._port.publish(message.topic, message.payloads)
        (payload,) = message.payloads
        left = self._port.ask(message.topic, payload)
        request = message.request

        def done(future: asyncio.Future[bool]) -> None:
            if future.exception() is None:
                self._send(Reaches(request, future.result()))

        self._requests.count += 1
        self._requests.follow(left, done)
        return self._port.publish(message.topic, ())

    def _room_came(self, future: asyncio.Future[None]) -> None:
        self._waiting_for_room = None
        if not self._closed and not future.cancelled():
            if future.exception() is not None:
                self._link.abort(f"the node takes no publications any more: {future.exception()}")
            else:
                self.take()

    def _await_stable(self, message: AwaitStable) -> None:
        accepted = self._accepted.get(message.topic)
        refused = self._refused.pop(message.topic, None)
        if accepted is None or refused is not None:
            self._requests.count -= 1
            self._send(Stable(message.request, str(refused or _unheard_of(message.topic)), refused is not None))
            return

        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            told = None if error is None else str(error)
            self._send(Stable(message.request, told, handed_over=isinstance(error, HandedOver)))

        self._requests.follow(self._port.stable(message.topic, accepted), done)

    def _await_durable(self, message: AwaitDurable) -> None:
        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            self._send(Durable(message.request, None if error is None else (type(error).__name__, str(error))))

        accepted = 0 if message.only_ask else self._accepted.get(message.topic)
        refused = None if message.only_ask else self._refused.pop(message.topic, None)
        if accepted is None or refused is not None:
            self._requests.count -= 1
            error = refused or _unheard_of(message.topic)
            self._send(Durable(message.request, (type(error).__name__, str(error))))
        else:
            self._requests.follow(self._port.durable(message.topic, accepted), done)

    def on_advertise(self, message: Advertise) -> None:
        """In the order of what is published around it."""
        self._requests.begin()
        self._backlog.append(message)

    def _advertise(self, message: Advertise) -> None:
        def done(future: asyncio.Future[None]) -> None:
            error = future.exception()
            self._send(Advertised(message.request, None if error is None else (type(error).__name__, str(error))))

        asked = self._port.unadvertise(message.topic) if message.ends else None
        self._requests.follow(asked or self._port.advertise(message.topic, message.where), done)


def _unheard_of(topic: Topic) -> OutcomeUnknown:
    """Also of those that were too long ago."""
    return OutcomeUnknown(f"this node knows of no publication of yours on {topic}")
