"""Nodes that were all killed and are all started: each has in its log what any of them had on its disk."""

import asyncio
import json
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cubecast.api.connect import connect
from cubecast.api.message import Gap
from support.commands import running
from support.ports import free_addresses
from support.running import run

MESSAGES = 41


class Cluster:
    """Processes of their own, in data directories that outlive them."""

    def __init__(self, directory: Path, size: int, *, joins: bool) -> None:
        self._directory, self.addresses, self._joins = directory, free_addresses(size), joins
        if not joins:
            peers = "\n".join(f'{node} = "{address}"' for node, address in enumerate(self.addresses))
            (directory / "cluster.toml").write_text(f"[peers]\n{peers}\n")

    def _arguments(self, node: int, is_first: bool) -> list[object]:
        data = ["--json", "--data", self._directory / str(node), "--log", ">"]
        if not self._joins:
            return ["node", *data, "--config", self._directory / "cluster.toml", "--id", node]
        others = [address for address in self.addresses if address != self.addresses[node]]
        join = [] if is_first else [word for address in others for word in ("--join", address)]
        return ["node", *data, "--listen", self.addresses[node], *join]

    @contextmanager
    def alive(self, *, founded: bool):
        """All of them, killed in the end; a cluster of `join`s is founded by the first, who has no list then."""
        with ExitStack() as stack:
            started = []
            for node in range(len(self.addresses)):
                is_first = founded and self._joins and node == 0
                one = stack.enter_context(running(*self._arguments(node, is_first)))
                started.append(one)
                if is_first:
                    json.loads(one.line())
            for one in started[founded and self._joins :]:
                json.loads(one.line())
            yield started
            for one in started:
                one.process.kill()


async def publish(address: str) -> None:
    """Durable at one node, and at every other one delivered, and not on the disk for half a second."""
    async with connect(address) as client:
        for number in range(MESSAGES):
            await client.publish("t", number, wait="durable")
        await client.stable("t")


async def replayed(address: str) -> list[int | Gap]:
    async with connect(address) as client:
        subscription = client.subscribe("t", since="beginning")
        await subscription.live()
        await client.publish("t", -1)
        got: list[int | Gap] = []
        async with asyncio.timeout(60):
            async for event in subscription:
                got.append(event if isinstance(event, Gap) else event.data)
                if got[-1] == -1:
                    return got[:-1]
    raise AssertionError("the subscription ended")


@pytest.mark.parametrize("joins", [False, True], ids=["a list of peers", "nothing but lists to join"])
def test_what_one_node_had_on_its_disk_is_in_every_log(tmp_path, joins):
    cluster = Cluster(tmp_path, 3, joins=joins)
    with cluster.alive(founded=True):
        run(publish(cluster.addresses[0]))
    with cluster.alive(founded=False):
        for number, address in enumerate(cluster.addresses):
            got = [one for one in run(replayed(address)) if one != -1]
            assert got == list(range(MESSAGES)), f"node {number}"
