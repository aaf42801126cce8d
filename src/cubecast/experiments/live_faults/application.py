"""A member that is an application: it records what it published and got, for `recorded` to judge.

`python -m cubecast.experiments.live_faults.application` is only useful to its supervisor, as `member` is.
"""

import asyncio
import errno
import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from cubecast.experiments.live_faults.member import Member, Reader, resident, serve
from cubecast.ids import MessageId, Topic
from cubecast.log import history
from cubecast.net.links.loop import run
from cubecast.net.live_node import LiveNode
from cubecast.net.port.port import COMPLETE, GapNotice, Logged, Run


def sealed(name: str, topic: Topic, number: int, size: int) -> bytes:
    content = f"{name} {topic} {number}"
    return f"{content} {crc32(content.encode()):08x} ".ljust(size, ".").encode()


def opened(data: bytes) -> tuple[str, Topic, int] | None:
    """Whose it is, on which topic, and its number; None when this is not what anybody published."""
    try:
        name, topic, number, checksum, *_ = data.decode().split(" ")
        is_whole = checksum == f"{crc32(f'{name} {topic} {number}'.encode()):08x}"
        return (name, topic, int(number)) if is_whole else None
    except ValueError:
        return None


class RecordingReader(Reader):
    def __init__(self, member: "Application", topic: Topic) -> None:
        super().__init__(member, topic)
        self._application = member

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        application = self._application
        application.delivered += len(payloads)
        for counter, data in enumerate(payloads, first.counter):
            found = opened(data)
            if found is None or found[1] != topic:
                application.wrong += 1
                application.record("wrong", topic)
            else:
                application.record("deliver", topic, found[0], found[2], first._replace(counter=counter))
                application.heard.setdefault(topic, {})[found[0]] = found[2]

    def on_ready(self) -> None:
        self._application.record("ready", self._topic, time.monotonic())
        super().on_ready()

    def on_gap(self, gap: GapNotice) -> None:
        runs = [*gap.runs, *(Run(*one, one.counter) for one in gap.missing)]
        are_all_named = len(gap.missing) + gap.count <= sum(run.last - run.first + 1 for run in runs)
        self._application.record("gap", gap.topic, gap.reason, runs if are_all_named else [])
        if gap.reason == COMPLETE:
            self._application.record("ready", gap.topic, time.monotonic())
        super().on_gap(gap)


class Application(Member):
    def __init__(self, node: LiveNode, records: Path) -> None:
        super().__init__(node)
        self.name = f"{node.place.node}-{secrets.token_hex(3)}"
        records.mkdir(parents=True, exist_ok=True)
        self._file = os.open(records / f"app-{self.name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.heard: dict[Topic, dict[str, int]] = {}
        self._numbers: dict[Topic, int] = {}
        self.record("start", self.name)

    def record(self, *what: Any) -> None:
        os.write(self._file, (json.dumps(what) + "\n").encode())

    def reader(self, topic: Topic) -> Reader:
        return RecordingReader(self, topic)

    def message(self, topic: Topic, now: float, number: int, size: int) -> bytes:
        mine = self._numbers[topic] = self._numbers.get(topic, 0) + 1
        others = {by: last for by, last in self.heard.get(topic, {}).items() if by != self.name}
        self.record("publish", topic, mine, others, time.monotonic())
        return sealed(self.name, topic, mine, size)

    async def _do_end(self) -> None:
        """Everything is at rest."""
        self.record("end")

    async def _do_jump(self, seconds: float) -> None:
        """The wall clock of this process is set, as far as the node looks at it."""
        history.time = lambda: time.time() + seconds  # type: ignore[attr-defined]

    async def _do_sync_fails(self, fails: bool) -> None:
        """The disk refuses to promise anything."""
        os.fsync = os.fdatasync = _refuse if fails else _SYNC  # type: ignore[assignment]

    async def _do_ping(self) -> dict[str, Any]:
        """Is its event loop there? What a full status costs grows with the topics."""
        return {"memory": resident()}

    async def _do_size(self) -> dict[str, Any]:
        return {"tasks": len(asyncio.all_tasks()), "descriptors": len(list(Path("/proc/self/fd").iterdir()))}


_SYNC = os.fdatasync


def _refuse(descriptor: int) -> None:
    raise OSError(errno.EIO, "the disk does not answer")


def _make(node: LiveNode, settings: dict[str, Any]) -> Application:
    return Application(node, Path(settings["records"]))


if __name__ == "__main__":
    run(serve(_make))
