"""Kills, again and again, under a stream out of a log or into one: what came, beside what was acknowledged."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic

from cubecast import sync
from cubecast.errors import CubecastError
from support.commands import RunningNode, running_node
from support.spark_driver import TOPIC, Life, read_batches, start, write_batches

PATIENCE = 300.0
PAUSE = 0.1
"""Seconds between publications: a stream that dies all the time has to keep up on a busy machine."""
MOST = 2000
"""Rows of a batch."""
READ_KINDS = ("driver", "worker", "node", "move")


class Cluster:
    """One node, or two of which one lives at any time; each can be killed and comes back with its log."""

    def __init__(self, directory: Path, many: int, stack: ExitStack) -> None:
        self._directory, self._stack = directory, stack
        self.nodes: list[RunningNode] = []
        for number in range(many):
            self.nodes.append(self._started(number, ()))

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def _started(self, number: int, listen: tuple[object, ...]) -> RunningNode:
        others = [node.address for place, node in enumerate(self.nodes) if place != number]
        join = ("--join", others[0]) if others else ()
        words = ("--data", self._directory / f"node-{number}", "--log", ">", *listen, *join)
        return self._stack.enter_context(running_node(*words))

    def kill(self, number: int) -> None:
        self.nodes[number].kill()

    def again(self, number: int) -> None:
        self.nodes[number] = self._started(number, ("--listen", self.nodes[number].address))


class Publisher:
    """Numbers into the topic: batches of which it is told that they are durable, and others of which it is not."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._ended = cluster, Event()
        self.acknowledged: set[int] = set()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Publisher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        following = 0
        while not self._ended.is_set():
            for node in list(self._cluster.nodes):
                with suppress(CubecastError, TimeoutError, OSError), sync.connect(node.address, patience=0.1) as client:
                    while not self._ended.wait(PAUSE):
                        begin, following = following, following + 40
                        batch = [b"%d" % number for number in range(begin, following)]
                        client.publish_batch(TOPIC, batch, wait="durable", timeout=20)
                        client.stable(TOPIC, timeout=20)
                        self.acknowledged.update(range(begin, following))
                        client.publish_batch(TOPIC, [b"%d" % number for number in range(following, following + 10)])
                        following += 10


@contextmanager
def campaign(directory: Path, kind: str, kills: int, seed: int, lies: bool = False) -> Iterator["Found"]:
    """Under a stream out of the topic."""
    random, checkpoint = Random(seed), directory / "checkpoint"
    checkpoint.mkdir()
    with ExitStack() as stack:
        cluster = Cluster(directory, 2 if kind == "move" else 1, stack)
        found = Found()
        with Publisher(cluster) as publisher:
            life = start(read_batches, checkpoint, cluster.addresses, MOST, lies)
            for number in range(kills):
                life = _one_kill(cluster, life, kind, random, number, checkpoint, lies)
        found.acknowledged = publisher.acknowledged
        _until_idle(life, cluster)
        life.kill()
        found.rows = list(_committed(checkpoint))
        found.logged = [_logged(node) for node in cluster.nodes]
        yield found


def _one_kill(
    cluster: Cluster, life: Life, kind: str, random: Random, number: int, checkpoint: Path, lies: bool
) -> Life:
    """After some batches, and a moment later."""
    for _ in range(random.randrange(1, 3)):
        _until(life, ("committed",))
    worker = _until(life, ("worker",)) if kind == "worker" or random.random() < 0.5 else 0
    Event().wait(random.random() * 0.03)
    match kind:
        case "worker":
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        case "driver":
            life.kill()
            life = start(read_batches, checkpoint, cluster.addresses, MOST, lies)
        case "node":
            cluster.kill(0)
            cluster.again(0)
        case "move":
            cluster.kill(number % 2)
            if random.random() < 0.7:  # it goes on in the other's log; a batch that only the lost one had waits for it
                _until(life, ("committed", "failed"))
            cluster.again(number % 2)
    return life


def _until(life: Life, kinds: tuple[str, ...]) -> int:
    deadline, last = monotonic() + PATIENCE, None
    while monotonic() < deadline:
        said = life.next(1.0)
        if said is not None and said[0] in kinds:
            return said[1]
        last = said or last
    raise AssertionError(f"the driver said {last} and never {kinds}")


def _until_idle(life: Life, cluster: Cluster) -> None:
    """Everything is on the nodes' disks, and then there is nothing new, whatever was said before that."""
    deadline = monotonic() + PATIENCE
    for node in cluster.nodes:
        with sync.connect(node.address) as client:
            while any(one.durable < one.last for one in client.log_topics()):
                assert monotonic() < deadline
    while life.next(0.0) is not None:
        pass
    for _ in range(3):
        _until(life, ("idle",))


def _committed(checkpoint: Path) -> Iterator[list]:
    for number in range(len(list(checkpoint.glob("commit-*")))):
        for place in sorted(checkpoint.glob(f"rows-{number}-*")):
            yield from json.loads(place.read_text())


def _logged(node: RunningNode) -> list[int]:
    with sync.connect(node.address) as client:
        return [int(one) for one in client.read_log(TOPIC, timeout=PATIENCE)["payload"].to_pylist()]


class Found:
    rows: list[list]
    acknowledged: set[int]
    logged: list[list[int]]

    def complaints(self) -> list[str]:
        """Nothing twice, nothing acknowledged missing, all of the log, each publisher's order."""
        told = []
        names = Counter(tuple(row[:3]) for row in self.rows)
        payloads = Counter(row[3] for row in self.rows)
        if twice := [name for name, many in names.items() if many > 1]:
            told.append(f"{len(twice)} messages came twice, the first {twice[0]}")
        if twice := [payload for payload, many in payloads.items() if many > 1]:
            told.append(f"{len(twice)} contents came twice, the first {twice[0]}")
        if missing := self.acknowledged - payloads.keys():
            told.append(f"{len(missing)} acknowledged ones did not come, the first {min(missing)}")
        if gaps := [row for row in self.rows if row[4]]:
            told.append(f"{len(gaps)} gaps")
        if len(self.logged) == 1 and (missing := set(self.logged[0]) ^ payloads.keys()):
            told.append(f"{len(missing)} are in the log or came, and not both; the first {min(missing)}")
        reached: dict[tuple[int, int], int] = {}
        for source, incarnation, counter, *_ in self.rows:
            if counter <= reached.get((source, incarnation), 0):
                told.append(f"{source}.{incarnation}.{counter} came after {reached[source, incarnation]}")
                break
            reached[source, incarnation] = counter
        return told


def sink_campaign(directory: Path, kills: int, seed: int, lies: bool = False) -> tuple[list[int], int]:
    """What is in the log after killing the driver of a stream into the topic, and how much was committed."""
    random, checkpoint = Random(seed), directory / "checkpoint"
    checkpoint.mkdir()
    with ExitStack() as stack:
        cluster = Cluster(directory, 1, stack)
        for _ in range(kills):
            life = start(write_batches, checkpoint, cluster.addresses, MOST, lies)
            for _ in range(random.randrange(2)):
                _until(life, ("committed",))
            _until(life, ("staged",))
            Event().wait(random.random() * 0.08)
            life.kill()
        life = start(write_batches, checkpoint, cluster.addresses, MOST, lies)
        _until(life, ("committed",))
        life.kill()
        committed = len(list(checkpoint.glob("commit-*")))
        return _logged(cluster.nodes[0]), committed * MOST
