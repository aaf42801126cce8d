"""Zenoh in peer mode, every member connected to every other, reliable and blocking when a link is full."""

import json
import queue
import time
from multiprocessing.connection import Connection
from typing import Any

import zenoh

from bench.peers.loop import DEADLINE, HELLO, serve, taken_from
from cubecast.experiments.live_faults.link_proxy import free_addresses
from cubecast.experiments.live_load.load import Load


class Member:
    def __init__(self, number: int, members: int) -> None:
        self._number = number
        self._members = members
        (self._at,) = free_addresses(1)
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._session: Any = None
        self._publisher: Any = None
        self._prefix = bytes([number])

    def address(self) -> str:
        return f"tcp/{self._at}"

    def connect(self, addresses: list[str]) -> None:
        config = zenoh.Config()
        config.insert_json5("mode", '"peer"')
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("listen/endpoints", json.dumps([self.address()]))
        config.insert_json5("connect/endpoints", json.dumps([one for one in addresses if one != self.address()]))
        self._session = zenoh.open(config)
        self._subscriber = self._session.declare_subscriber(
            "chat/**", lambda sample: self._arrived.put(bytes(sample.payload))
        )
        self._publisher = self._session.declare_publisher(
            f"chat/{self._number}", congestion_control=zenoh.CongestionControl.BLOCK
        )
        self._meet()

    def _meet(self) -> None:
        everybody = set(range(self._members))
        heard: set[int] = set()
        hearing_us: set[int] = set()
        give_up = time.monotonic() + DEADLINE
        while heard != everybody or hearing_us != everybody:
            if time.monotonic() > give_up:
                raise TimeoutError("Zenoh members did not find each other")
            self._publisher.put(bytes([HELLO, self._number, *sorted(heard)]))
            time.sleep(0.02)
            while not self._arrived.empty():
                message = self._arrived.get()
                heard.add(message[1])
                if self._number in message[2:]:
                    hearing_us.add(message[1])
        for _ in range(3):
            self._publisher.put(bytes([HELLO, self._number, *sorted(heard)]))

    def publish(self, messages: list[bytes]) -> int:
        for message in messages:
            self._publisher.put(self._prefix + message)
        return len(messages)

    def receive(self, timeout: float) -> list[tuple[int, list[bytes]]]:
        return taken_from(self._arrived, timeout)

    def close(self) -> None:
        self._session.close()


def mesh(load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve(Member(number, load.members), load, number, pipe)
