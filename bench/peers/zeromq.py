"""ZeroMQ PUB/SUB, every member connected to every other."""

from multiprocessing.connection import Connection

import zmq

from bench.peers.loop import serve
from cubecast.experiments.live_load.member import Load

MOST_AT_ONCE = 2000


class Mesh:
    def __init__(self, number: int) -> None:
        self._context = zmq.Context()
        self._pub = self._context.socket(zmq.PUB)
        self._sub = self._context.socket(zmq.SUB)
        for one in (self._pub, self._sub):
            one.set_hwm(100_000)
        self._pub.setsockopt(zmq.XPUB_NODROP, 1)
        self._port = self._pub.bind_to_random_port("tcp://127.0.0.1")
        self._sub.setsockopt(zmq.SUBSCRIBE, b"")
        self._prefix = bytes([number])

    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._port}"

    def connect(self, addresses: list[str]) -> None:
        for address in addresses:
            self._sub.connect(address)

    def publish(self, messages: list[bytes]) -> int:
        for taken, message in enumerate(messages):
            try:
                self._pub.send(self._prefix + message, zmq.NOBLOCK, copy=True)
            except zmq.Again:
                return taken
        return len(messages)

    def receive(self, timeout: float) -> list[tuple[int, list[bytes]]]:
        if not self._sub.poll(int(timeout * 1000) if timeout >= 0.001 else 0):
            return []
        runs: list[tuple[int, list[bytes]]] = []
        try:
            for _ in range(MOST_AT_ONCE):
                message = self._sub.recv(zmq.NOBLOCK)
                if not runs or runs[-1][0] != message[0]:
                    runs.append((message[0], []))
                runs[-1][1].append(message[1:])
        except zmq.Again:
            pass
        return runs

    def close(self) -> None:
        self._context.destroy(linger=0)


def mesh(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve(Mesh(number), load, number, pipe)
