"""Mosquitto with Eclipse's own client: quality of service 0, its network in a thread as its manual advises."""

import queue
import threading
from multiprocessing.connection import Connection
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from bench.peers.loop import DEADLINE, serve, taken_from
from bench.peers.turns import WINDOW
from cubecast.experiments.live_load.load import Load

TOPIC = "chat"


class Member:
    def __init__(self, address: str, number: int) -> None:
        self._address = address
        self._number = number
        self._prefix = bytes([number])
        self._under_way = 0
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)

    def address(self) -> str:
        """Nobody needs it. Who says it is subscribed, as the others rely on."""
        subscribed = threading.Event()
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: subscribed.set()
        host, _, port = self._address.rpartition(":")
        self._client.connect(host, int(port))
        self._client.loop_start()
        self._client.subscribe(TOPIC)
        if not subscribed.wait(DEADLINE):
            raise TimeoutError("Mosquitto did not confirm the subscription")
        return self._address

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        self._arrived.put(message.payload)

    def connect(self, addresses: list[str]) -> None:
        pass

    def publish(self, messages: list[bytes]) -> int:
        """As long as not too many are on their way back to this member."""
        room = messages[: max(0, WINDOW - self._under_way)]
        for message in room:
            self._client.publish(TOPIC, self._prefix + message)
        self._under_way += len(room)
        return len(room)

    def receive(self, timeout: float) -> list[tuple[int, list[bytes]]]:
        full = self._under_way >= WINDOW
        runs = taken_from(self._arrived, max(timeout, 0.002) if full else timeout)
        self._under_way -= sum(len(messages) for source, messages in runs if source == self._number)
        return runs

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def member(address: str, load: Load, number: int, pipe: Connection, join: str | None) -> None:
    serve(Member(address, number), load, number, pipe)
