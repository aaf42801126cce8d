"""Ports of an imaginary cluster: a publication reaches all subscribers of all ports before the next one starts."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.errors import BadInput, Closed, CubecastError
from cubecast.ids import MessageId, Topic
from cubecast.net.node.filtering import FilteredSink
from cubecast.net.port.port import GapNotice, Since, Sink
from cubecast.patterns import check_topic, matcher
from cubecast.protocol.filters import parse

LARGEST = 1 << 20


@dataclass
class Wire:
    sink: Sink
    matches: Callable[[str], bool]
    paused: bool = False
    waiting: list[tuple[Topic, MessageId, Sequence[bytes]]] = field(default_factory=list)

    def deliver(self, topic: Topic, first: MessageId, payloads: Sequence[bytes]) -> None:
        if self.paused:
            self.waiting.append((topic, first, payloads))
        else:
            self.sink.on_batch(topic, first, payloads)

    def resume(self) -> None:
        self.paused = False
        while self.waiting and not self.paused:
            self.sink.on_batch(*self.waiting.pop(0))


class Bus:
    def __init__(self) -> None:
        self.ports: list[BusPort] = []

    def port(self) -> "BusPort":
        port = BusPort(self, len(self.ports))
        self.ports.append(port)
        return port


class BusPort:
    """Knobs: `open_room` (is there room), `settled` (is everything stable), `lose`, `announce_gap`."""

    def __init__(self, bus: Bus, number: int) -> None:
        self._bus, self._number = bus, number
        self.wires: dict[int, Wire] = {}
        self._subscribed = 0
        self._counters: dict[Topic, int] = {}
        self.open_room = asyncio.Event()
        self.open_room.set()
        self.settled = asyncio.Event()
        self.settled.set()
        self.closed = False
        self.calls: list[tuple[str, int]] = []

    def subscribe(self, pattern: str, sink: Sink, since: Since | None = None, where: str | None = None) -> int:
        assert since is None, "nothing is kept here"
        sink = sink if where is None else FilteredSink(sink, parse(where))
        if self.closed:
            raise Closed("the port is closed")
        self._subscribed += 1
        self.wires[self._subscribed] = Wire(sink, matcher(pattern))
        asyncio.get_running_loop().call_soon(sink.on_ready)
        return self._subscribed

    def forget_producer(self, fenced: Callable[[str], None]) -> None:
        """None registers here."""

    def unsubscribe(self, subscription: int) -> None:
        wire = self.wires.pop(subscription, None)
        if wire is not None:
            wire.sink.on_end(None)

    def pause(self, subscription: int) -> None:
        self.calls.append(("pause", subscription))
        self.wires[subscription].paused = True

    def resume(self, subscription: int) -> None:
        self.calls.append(("resume", subscription))
        self.wires[subscription].resume()

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        if self.closed:
            raise Closed("the port is closed")
        check_topic(topic)
        if max(map(len, payloads), default=0) > LARGEST:
            raise BadInput(f"a message has at most {LARGEST} bytes")
        before = self._counters.get(topic, 0)
        if not payloads:
            return before
        self._counters[topic] = before + len(payloads)
        first = MessageId(self._number, 0, before + 1)
        for port in self._bus.ports:
            for wire in list(port.wires.values()):
                if wire.matches(topic):
                    wire.deliver(topic, first, list(payloads))
        return before + len(payloads)

    def ask(self, topic: Topic, payload: bytes) -> asyncio.Future[bool]:
        self.publish(topic, [payload])
        left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        left.set_result(any(wire.matches(topic) for port in self._bus.ports for wire in port.wires.values()))
        return left

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        return None

    def has_room(self, topic: Topic) -> bool:
        return self.open_room.is_set()

    async def room(self, topic: Topic) -> None:
        await self.open_room.wait()

    async def stable(self, topic: Topic, accepted: int) -> None:
        assert accepted <= self._counters.get(topic, 0)
        await self.settled.wait()

    async def status(self) -> dict[str, Any]:
        return {"node": self._number, "members": [port._number for port in self._bus.ports]}

    async def close(self) -> None:
        self.lose(None)

    def announce_gap(self, topic: Topic, *missing: MessageId, reason: str = "lost") -> None:
        for wire in list(self.wires.values()):
            if wire.matches(topic):
                wire.sink.on_gap(GapNotice(topic, missing, reason))

    def lose(self, error: CubecastError | None) -> None:
        self.closed = True
        wires, self.wires = self.wires, {}
        for wire in wires.values():
            wire.sink.on_end(error)
