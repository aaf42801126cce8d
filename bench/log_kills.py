"""kill −9 of a process that writes its log, again and again: is anything lost that was called durable, or there twice?

One process per life, forked so that a life costs milliseconds. It opens the log, writes batches of random sizes as
fast as it can, and reports each one when the log says that it is on the disk. At a random moment, be it while the log
is being opened, it is killed. Then the log is read: every batch that was reported must be there, at its offset, every
message once and in order. After the last life the whole log is checked.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from cubecast.errors import BadInput
from cubecast.ids import MessageId
from cubecast.log.check import check_log, read_all, still
from cubecast.log.load import load
from cubecast.log.record import Record
from cubecast.log.store import Store

LONGEST_LIFE = 0.05
"""Seconds; from the beginning for every fourth life, which mostly dies while the log is being opened, for every other
one from its first report, however busy the machine is, and for the rest from when the log is open."""
OPENED = 255
TOPICS = ("orders", "chat")
_report = struct.Struct("<BQII")
"""Topic, offset, counter, messages."""


def payload(life: int, topic: int, counter: int) -> bytes:
    return f"{life}.{topic}.{counter}.".encode().ljust(64, b"x")


async def live(directory: Path, life: int, seed: int, pipe: int, lies: bool) -> None:
    """Write until killed."""
    random = Random(seed)
    store = await Store.open(directory)
    os.write(pipe, _report.pack(OPENED, 0, 0, 0))
    counters = [0, 0]
    while True:
        batches = []
        for _ in range(random.randrange(1, 4)):
            topic, many = random.randrange(2), random.randrange(1, 40)
            first = counters[topic] + 1
            counters[topic] += many
            payloads = [payload(life, topic, first + i) for i in range(many)]
            offset = store.append(TOPICS[topic], MessageId(1, life, first), payloads, time.time())
            batches.append(_report.pack(topic, offset, first, many))
        if lies:
            await asyncio.sleep(0)
        else:
            await store.synced(store.ticket)
        os.write(pipe, b"".join(batches))


def one_life(directory: Path, life: int, random: Random, lies: bool) -> list[tuple[int, ...]]:
    """What it reported as durable before it was killed."""
    reading, writing = os.pipe()
    seed, span = random.getrandbits(32), random.random() * LONGEST_LIFE
    process = os.fork()
    if process == 0:
        os.close(reading)
        try:
            asyncio.run(live(directory, life, seed, writing, lies))
        finally:
            os._exit(1)
    os.close(writing)
    data = b""
    awaited = 0 if life % 4 == 0 else 1 + life % 2  # the log is open, something is durable
    while len(data) < awaited * _report.size:
        data += _read(reading, life)
    end = time.monotonic() + span
    while (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            data += _read(reading, life)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while got := os.read(reading, 1 << 16):
        data += got
    os.close(reading)
    return [one for one in _report.iter_unpack(data) if one[0] != OPENED]


def _read(reading: int, life: int) -> bytes:
    got = os.read(reading, 1 << 16)
    if not got:
        raise SystemExit(f"life {life} ended by itself")
    return got


class Replay:
    """What the log holds, read from where the last look ended."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ends = dict.fromkeys(TOPICS, 0)
        self._positions = dict.fromkeys(TOPICS, (-1, 0))
        self.messages = 0

    def look(self, acknowledged: list[tuple[int, ...]], life: int) -> Iterator[str]:
        """Everything that is wrong with what came since."""
        try:
            found = dict(self._new())
        except (Wrong, BadInput) as error:
            if acknowledged or self.messages or isinstance(error, Wrong):  # else it was killed before there was a log
                yield f"life {life}: {error}"
            return
        for topic, offset, counter, many in acknowledged:
            there = [found.get((topic, offset + i)) for i in range(many)]
            if there != [payload(life, topic, counter + i) for i in range(many)]:
                yield f"life {life}: topic {TOPICS[topic]}, offset {offset}: {many} acknowledged messages are not there"

    def _new(self) -> Iterator[tuple[tuple[int, int], bytes]]:
        with still(self._directory) as reader:
            held = load(reader.database).topics
            for number, topic in enumerate(TOPICS):
                if topic in held:
                    held[topic].account.first = self._ends[topic] + 1
                    for record in read_all(reader, topic, held[topic]):
                        if not isinstance(record, Record):
                            raise Wrong(record.args[0])
                        self._follow(record)
                        for place, one in enumerate(record.payloads, record.offset):
                            yield (number, place), one

    def _follow(self, record: Record) -> None:
        """The next offset, and of its publisher the next message."""
        topic, (_, incarnation, counter) = record.topic, record.first
        before = self._positions[topic]
        follows = (incarnation == before[0] and counter == before[1] + 1) or (incarnation > before[0] and counter == 1)
        if record.offset != self._ends[topic] + 1 or not follows:
            raise Wrong(f"topic {topic}, offset {record.offset}: {record.first} follows {before}: lost or there twice")
        self._ends[topic] = record.last
        self._positions[topic] = incarnation, counter + len(record.payloads) - 1
        self.messages += len(record.payloads)


class Wrong(Exception):  # noqa: N818
    pass


def run(directory: Path, cycles: int, seed: int, lies: bool) -> dict[str, object]:
    random, replay, wrong = Random(seed), Replay(directory), []
    acknowledged, silent, began = 0, 0, time.monotonic()
    for life in range(cycles):
        reported = one_life(directory, life, random, lies)
        acknowledged += sum(many for *_, many in reported)
        silent += not reported
        wrong += replay.look(reported, life)
    problems = check_log(directory).problems if replay.messages else []
    return {
        "seed": seed,
        "kills": cycles,
        "killed_before_anything_was_durable": silent,
        "acknowledged": acknowledged,
        "replayed": replay.messages,
        "lost_or_twice": len(wrong),
        "damage": len(problems),
        "examples": [*wrong, *problems][:10],
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lies", action="store_true", help="Report what is not on the disk; that must be found out.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        result = run(Path(directory), options.cycles, options.seed, options.lies)
    print(json.dumps(result))
    raise SystemExit(1 if result["lost_or_twice"] or result["damage"] else 0)


if __name__ == "__main__":
    main()
