"""kill −9 of whole nodes while a client publishes: what it was told to be durable is in the log, once."""

import asyncio
import json
from collections import Counter
from contextlib import suppress
from itertools import count

from cubecast.api.connect import connect
from cubecast.api.envelope import text
from cubecast.errors import CubecastError
from cubecast.log.check import check_log, read_all, still
from cubecast.log.load import load
from support.commands import running
from support.running import run

LIVES = 2


async def publish_until(address: str, life: int, kill, enough: int) -> list[str]:
    """What was acknowledged; the node is killed in the middle of it."""
    acknowledged: list[str] = []
    client = await connect(address, patience=0.1)
    with suppress(CubecastError, TimeoutError):
        for number in count():
            if number == enough:
                asyncio.get_running_loop().call_later(0.003, kill)
            message = f"{life}.{number}"
            await client.publish("chat", message, wait="durable", timeout=60.0)
            acknowledged.append(message)
    return acknowledged


def test_what_a_client_was_told_to_be_durable_survives(tmp_path):
    acknowledged: list[str] = []
    incarnations = []
    for life in range(LIVES):
        with running("node", "--data", tmp_path, "--log", ">", "--json") as node:
            place = json.loads(node.line())
            incarnations.append(place["incarnation"])
            acknowledged += run(publish_until(place["address"], life, node.kill, 5 + 3 * life))
    assert incarnations == [0, 1]
    assert len(acknowledged) >= 5 + 8
    with still(tmp_path) as reader:
        held = load(reader.database).topics["chat"]
        found = Counter(text(payload) for record in read_all(reader, "chat", held) for payload in record.payloads)
    assert set(found.values()) == {1}
    assert not set(acknowledged) - set(found)
    assert check_log(tmp_path).problems == []
