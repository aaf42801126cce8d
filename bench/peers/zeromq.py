"""ZeroMQ PUB/SUB: every member connected to every other, or all through one XPUB/XSUB proxy."""

import time
from multiprocessing.connection import Connection
from threading import Thread

import zmq

from bench.peers.loop import DEADLINE, HELLO, MOST_AT_ONCE, serve
from cubecast.experiments.live_load.load import Load


class Member:
    """Publishes on one socket, subscribes with another."""

    def __init__(self, number: int, members: int, proxy: tuple[str, str] | None) -> None:
        self._number = number
        self._members = members
        self._proxy = proxy
        self._context = zmq.Context()
        self._pub = self._context.socket(zmq.PUB)
        self._sub = self._context.socket(zmq.SUB)
        for one in (self._pub, self._sub):
            one.set_hwm(100_000)
        self._pub.setsockopt(zmq.XPUB_NODROP, 1)
        self._sub.setsockopt(zmq.SUBSCRIBE, b"")
        self._prefix = bytes([number])
        if proxy is None:
            self._port = self._pub.bind_to_random_port("tcp://127.0.0.1")
        else:
            self._pub.connect(proxy[0])

    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._port}" if self._proxy is None else "|".join(self._proxy)

    def connect(self, addresses: list[str]) -> None:
        """Connections come about in the background: greet until everybody says it hears us."""
        for address in dict.fromkeys(one.rpartition("|")[2] for one in addresses):
            self._sub.connect(address)
        everybody = set(range(self._members))
        heard: set[int] = set()
        hearing_us: set[int] = set()
        give_up = time.monotonic() + DEADLINE
        while heard != everybody or hearing_us != everybody:
            if time.monotonic() > give_up:
                raise TimeoutError("ZeroMQ members did not find each other")
            self._pub.send(bytes([HELLO, self._number, *sorted(heard)]))
            while self._sub.poll(10):
                message = self._sub.recv()
                if message[0] == HELLO:
                    heard.add(message[1])
                    if self._number in message[2:]:
                        hearing_us.add(message[1])
        for _ in range(3):
            self._pub.send(bytes([HELLO, self._number, *sorted(heard)]))

    def publish(self, messages: list[bytes]) -> int:
        for taken, message in enumerate(messages):
            try:
                self._pub.send(self._prefix + message, zmq.NOBLOCK)
            except zmq.Again:
                return taken
        return len(messages)

    def receive(self, timeout: float) -> list[tuple[int, list[bytes]]]:
        if not self._sub.poll(timeout * 1000):
            return []
        runs: list[tuple[int, list[bytes]]] = []
        try:
            for _ in range(MOST_AT_ONCE):
                message = self._sub.recv(zmq.NOBLOCK)
                if message[0] == HELLO:
                    continue
                if not runs or runs[-1][0] != message[0]:
                    runs.append((message[0], []))
                runs[-1][1].append(message[1:])
        except zmq.Again:
            pass
        return runs

    def close(self) -> None:
        self._context.destroy(linger=0)


def mesh(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve(Member(number, load.members, None), load, number, pipe)


def _broker(context: zmq.Context[zmq.Socket[bytes]]) -> tuple[str, str]:
    """In a thread of the first member's process; it runs outside Python."""
    front, back = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for one in (front, back):
        one.set_hwm(100_000)
    back.setsockopt(zmq.XPUB_NODROP, 1)
    ports = [one.bind_to_random_port("tcp://127.0.0.1") for one in (front, back)]
    Thread(target=zmq.proxy, args=(front, back), daemon=True).start()
    return f"tcp://127.0.0.1:{ports[0]}", f"tcp://127.0.0.1:{ports[1]}"


def proxy(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    """The first member starts the broker; both its addresses travel in `join`."""
    front, back = _broker(zmq.Context()) if join is None else join.split("|")
    serve(Member(number, load.members, (front, back)), load, number, pipe)
