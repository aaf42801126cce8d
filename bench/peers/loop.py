"""What every peer's member process does: obey orders from the pipe, publish, receive, check."""

import queue
import time
from multiprocessing.connection import Connection
from typing import Any, Protocol

from cubecast.experiments.live_load.load import Load, checker_for

DEADLINE = 30.0
"""Seconds for members to find each other."""
MOST_AT_ONCE = 2000
HELLO = 255
"""In place of a member's number: not a message, but "I hear these members"."""


class Peer(Protocol):
    """One member's end of a messaging system."""

    def address(self) -> str:
        """What the other members need to reach this one."""

    def connect(self, addresses: list[str]) -> None: ...

    def publish(self, messages: list[bytes]) -> int:
        """How many were taken; fewer when the system pushes back."""

    def receive(self, timeout: float) -> list[tuple[int, list[bytes]]]:
        """(member, messages in their order) each; waits at most so long when there is nothing."""

    def close(self) -> None: ...


def taken_from(arrived: "queue.SimpleQueue[bytes]", timeout: float) -> list[tuple[int, list[bytes]]]:
    """For clients that receive in a thread of their own: what it has put there, by publisher in runs."""
    runs: list[tuple[int, list[bytes]]] = []
    try:
        message = arrived.get(timeout=timeout) if timeout else arrived.get_nowait()
        for _ in range(MOST_AT_ONCE):
            if message[0] != HELLO:
                if not runs or runs[-1][0] != message[0]:
                    runs.append((message[0], []))
                runs[-1][1].append(message[1:])
            message = arrived.get_nowait()
    except queue.Empty:
        pass
    return runs


def serve(peer: Peer, load: Load, number: int, pipe: Connection) -> None:
    """The process of a member that is not cubecast's."""
    checker = checker_for(load)
    published = delivered = 0
    publishing = False
    due = 0.0
    pipe.send(peer.address())
    peer.connect(pipe.recv())
    pipe.send("ready")

    def report() -> dict[str, Any]:
        seen = {"published": published, "delivered": delivered, "violations": checker.violations}
        return {"time": time.monotonic(), "cpu": time.process_time(), **seen}

    while True:
        if pipe.poll(0):
            order = pipe.recv()
            if order == "end":
                break
            if order in ("publish", "pause"):
                publishing = order == "publish"
                due = time.monotonic() + number / load.members / (load.rate or 1.0)
            elif order == "sample":
                checker.sample()
            pipe.send(report())
        now = time.monotonic()
        if publishing and load.rate and now >= due:
            published += peer.publish(checker.stamp(published + 1, 1))
            due += 1.0 / load.rate
        elif publishing and not load.rate:
            published += peer.publish(checker.stamp(published + 1, load.batch))
        idle = min(max(due - now, 0.0), 0.002) if load.rate and publishing else 0.0 if publishing else 0.002
        for source, messages in peer.receive(idle):
            delivered += len(messages)
            checker.check(source, messages)
    peer.close()
    latencies = checker.conclude()
    pipe.send(report() | {"latencies": latencies})
