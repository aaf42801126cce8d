"""Handing batches straight to an application's function, without a queue in between."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from cubecast.api.inbox import named_gap
from cubecast.api.lifecycle import Lifecycle
from cubecast.api.message import Batch, Gap, Origin, Replier, origin_of
from cubecast.errors import CubecastError
from cubecast.ids import MessageId, NodeId, Topic
from cubecast.net.port.port import GapNotice, Logged, PublisherCut

OnBatch = Callable[[Batch], object]
OnGap = Callable[[Gap], object]


class CallbackSink:
    """A `Sink` that calls functions. What they raise goes to the event loop's exception handler: neither the
    node nor the other subscriptions are to suffer from it."""

    def __init__(self, life: Lifecycle, on_batch: OnBatch, on_gap: OnGap | None, client: Replier | None) -> None:
        self._life, self._client = life, client
        self._call, self._call_gap = on_batch, on_gap
        self._origins: dict[NodeId, Origin] = {}
        """The last one of each publisher: most of what comes from it is like what came before."""

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        if not self._life.ended:
            try:
                self._call(Batch(self._origin(topic, first, logged), first[2], payloads))
            except Exception as error:
                self._report(error)

    def _origin(self, topic: Topic, first: MessageId, logged: Logged | None) -> Origin:
        if logged is not None:
            return origin_of(topic, first, self._client, *logged)
        source, incarnation, _ = first
        origin = self._origins.get(source)
        if origin is None or origin.topic != topic or origin.incarnation != incarnation:
            origin = self._origins[source] = origin_of(topic, first, self._client)
        return origin

    def on_gap(self, gap: GapNotice) -> None:
        if self._call_gap is not None and not self._life.ended:
            try:
                self._call_gap(named_gap(gap))
            except Exception as error:
                self._report(error)

    def on_ready(self) -> None:
        self._life.become_ready()

    def on_live(self, known: PublisherCut) -> None:
        self._life.become_live()

    def on_end(self, error: CubecastError | None) -> None:
        self._life.end(error)

    def close(self) -> None:
        self._life.leave()

    def _report(self, error: Exception) -> None:
        context: dict[str, Any] = {"message": f"the reader of {self._life.pattern} failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
