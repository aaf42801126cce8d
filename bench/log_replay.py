"""Late subscribers that read a long log into live traffic: how fast, and is every promise kept over the seam?

    python -m bench.log_replay                        a hundred thousand messages, judged by the reference checker
    python -m bench.log_replay --messages 1000000     what the log is meant for; give --spark for the verdict

Two nodes talk to each other on one topic, each batch an answer to the other's last one, and a third keeps the log.
Then two readers begin at the beginning while the talk goes on, one after the other: one in the keeper's process, one
through a connection, in a process of its own. What each reader got, in its order, becomes a history of its own in the
trace of the nodes: P1 to P8 are judged over all of it, with readers that must have everything from the first message.
"""

import argparse
import asyncio
import multiprocessing
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from cubecast.api.client import Client
from cubecast.api.connect import connect
from cubecast.api.message import Batch, Gap
from cubecast.api.node import Node
from cubecast.net.links.loop import run
from cubecast.trace.event import RunInfo
from cubecast.trace.journal import JournalWriter, collect
from cubecast.trace.schema import Kind

TOPIC = "talk"
PROMISES = ("K0", "K1", "K2", "K3", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8")
SIZE = 64
AT_ONCE = 256
"""Messages of a batch while the log is filled."""
LIVE_BATCH, LIVE_PAUSE = 20, 0.01
"""While readers catch up each talker publishes so many messages, and then rests for so many seconds."""
NODES = {"dimension": 4, "round_length": 0.2, "patience": 10.0}
READERS = (14, 15)
"""Ids of the readers in the trace: no node has them."""


class Talker:
    """Answers whatever it hears from the other with a batch of its own."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.published = 0
        self.heard = asyncio.Event()
        self._subscription = node.subscribe(TOPIC, on_batch=self._on_batch)

    async def ready(self) -> None:
        await self._subscription.ready()

    def _on_batch(self, batch: Batch) -> None:
        if batch.source != self._node.id:
            self.heard.set()

    async def say(self, count: int) -> None:
        payload = bytes(SIZE)
        await self._node.publish_batch(TOPIC, [payload] * count)
        self.published += count


async def fill(talkers: list[Talker], messages: int, at_once: int) -> None:
    """In turns; a word is said as soon as one of the other's was heard, so that causes and effects alternate."""
    await talkers[0].say(at_once)
    while sum(talker.published for talker in talkers) < messages:
        for talker in reversed(talkers):
            await talker.heard.wait()
            talker.heard.clear()
            await talker.say(at_once)


async def go_on(talkers: list[Talker]) -> None:
    while True:
        for talker in talkers:
            await talker.say(LIVE_BATCH)
        await asyncio.sleep(LIVE_PAUSE)


@dataclass
class Reading:
    messages: int
    seconds: float
    cpu: float
    """Seconds the reader's process worked; the clock counts what others do on the machine as well."""
    gaps: int

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


class LateReader:
    """Writes down what it gets as the history of a node that subscribed before anything was said."""

    def __init__(self, client: Client, directory: Path, number: int) -> None:
        self._journal = JournalWriter(directory, number, 0, "reader")
        self._journal.line(Kind.START, 0.0, 0)
        self._journal.line(Kind.SUBSCRIBE, 0.0, TOPIC)
        self.messages = self.gaps = 0
        self.began, self._worked = monotonic(), process_time()
        self.subscription = client.subscribe(TOPIC, since="beginning", on_batch=self._on_batch, on_gap=self._on_gap)

    def _on_batch(self, batch: Batch) -> None:
        assert batch.offset == self.messages + 1
        self.messages += len(batch)
        identity = batch.source, batch.incarnation, batch.counter
        self._journal.line(Kind.DELIVER, monotonic() - self.began, TOPIC, *identity, len(batch))

    def _on_gap(self, gap: Gap) -> None:
        self.gaps += 1

    async def caught_up(self) -> Reading:
        await self.subscription.live()
        return Reading(self.messages, monotonic() - self.began, process_time() - self._worked, self.gaps)

    async def end(self, messages: int) -> None:
        while self.messages < messages:
            await asyncio.sleep(0.01)
        self._journal.line(Kind.QUIESCENT, monotonic() - self.began)
        self._journal.close()


def read_elsewhere(address: str, directory: Path, number: int, pipe: Any) -> None:
    """The process of a reader behind a connection. It is told how much there is when nothing more is said."""

    async def main() -> None:
        async with connect(address) as client:
            reader = LateReader(client, directory, number)
            pipe.send(await reader.caught_up())
            messages = await asyncio.to_thread(pipe.recv)
            await reader.end(messages)
            pipe.send(reader.gaps)

    run(main())


@dataclass
class Result:
    inside: Reading
    outside: Reading
    live: int
    """Messages published while readers caught up and until the end."""


async def measure(directory: Path, messages: int, at_once: int = AT_ONCE) -> Result:
    """The journals are in `directory / "journals"` afterwards."""
    journals = directory / "journals"
    options: dict[str, Any] = NODES | {"journal": journals}
    async with (
        Node(**options) as one,
        Node(join=[one.address], **options) as two,
        Node(join=[one.address], data=directory / "data", log=(">",), **options) as keeper,
    ):
        talkers = [Talker(one), Talker(two)]
        for talker in talkers:
            await talker.ready()
        await fill(talkers, messages, at_once)
        await one.stable(TOPIC)
        await two.stable(TOPIC)
        before = sum(talker.published for talker in talkers)
        talking = asyncio.create_task(go_on(talkers))
        inner = LateReader(keeper, journals, READERS[0])
        inside = await inner.caught_up()
        outside, finish = await _outside(keeper.address, journals)
        talking.cancel()
        published = sum(talker.published for talker in talkers)
        await inner.end(published)
        gaps = await finish(published)
        result = Result(inside, outside, published - before)
        assert not inner.gaps and not gaps, "nothing is missing"
        for node in (keeper, one, two):
            await node._live.end_journal()
    return result


async def _outside(address: str, journals: Path) -> Any:
    """The other reader's figures, and what lets it read to the end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=read_elsewhere, args=(address, journals, READERS[1], theirs), daemon=True)
    process.start()
    reading = await asyncio.to_thread(ours.recv)

    async def finish(messages: int) -> int:
        ours.send(messages)
        gaps: int = await asyncio.to_thread(ours.recv)
        await asyncio.to_thread(process.join, 10)
        return gaps

    return reading, finish


def trace_of(directory: Path, messages: int) -> Path:
    info = RunInfo("log-replay", "cubecast", PROMISES, parameters={"driver": "live", "messages": messages})
    rows = collect(directory / "journals", directory / "trace", info)
    print(f"{rows:,} rows of trace", flush=True)
    return directory / "trace"


def verdicts(trace: Path, spark: bool) -> dict[str, str]:
    if spark:
        from cubecast.pipeline.session import spark_session
        from cubecast.pipeline.verify import verify

        report = verify(spark_session("local[2]", ()), [trace], list(PROMISES)).to_json()
        return {name: str(one) for name, one in report["properties"].items()} | {"all": report["verdict"]}
    from cubecast.check import check_directory

    return {name: str(verdict) for name, verdict in check_directory(trace).verdicts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=AT_ONCE, help="messages published at once")
    parser.add_argument("--spark", action="store_true", help="have Spark decide, for more than the checker can hold")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        result = run(measure(directory, arguments.messages, arguments.batch))
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {SIZE} bytes; {result.live:,} messages meanwhile"
        )
        for name, reading in (("in the keeper's process", result.inside), ("through a connection", result.outside)):
            work = f"{reading.cpu:.2f} s of a core's work"
            print(f"{name}: {reading.messages:,} in {reading.seconds:.2f} s, {reading.rate:,.0f}/s, {work}", flush=True)
        for name, verdict in verdicts(trace_of(directory, arguments.messages), arguments.spark).items():
            print(f"{name}: {verdict}")


if __name__ == "__main__":
    main()
