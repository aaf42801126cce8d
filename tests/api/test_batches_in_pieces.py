"""A list that travels in several pieces: who waits for it is told of each of them, not only of the last."""

import asyncio

import pytest

from cubecast import Node, OutcomeUnknown, PartlyPublished, connect
from cubecast.errors import NotPermitted
from cubecast.net.gateway.guarded_port import GuardedPort
from cubecast.net.settings.security import Limits
from support.cluster import FAST
from support.running import run, until

MESSAGES = 1500
"""Three pieces of at most 512."""


@pytest.mark.parametrize("refused", [{0}, {1}, {0, 1}, {2}], ids=str)
@pytest.mark.parametrize("wait", ["stable", "durable"])
def test_a_piece_that_the_node_refused_is_told(tmp_path, monkeypatch, refused, wait):
    """As by a policy that forbids something for a moment."""

    async def main():
        options = {"data": tmp_path, "log": (">",), "limits": Limits(messages_per_second=1e9)}
        async with Node(**FAST, **options) as node, connect(node.address) as client, node.subscribe("t") as heard:
            await heard.ready()
            publish, count = GuardedPort.publish, iter(range(100))

            def forbidding(self, topic, payloads):
                if next(count) in refused:
                    raise NotPermitted("not now. Nothing was published")
                return publish(self, topic, payloads)

            monkeypatch.setattr(GuardedPort, "publish", forbidding)
            with pytest.raises((PartlyPublished, OutcomeUnknown), match="not now") as told:
                await client.publish_batch("t", range(MESSAGES), wait=wait)
            monkeypatch.undo()
            await client.publish("t", "end")
            got = [message.data async for message in until_end(heard)]
            assert len(got) < MESSAGES and got == sorted(got), "some of them were refused"
            if isinstance(told.value, PartlyPublished):
                assert got[: told.value.args[1]] == list(range(told.value.args[1])), "as many as it says came first"
                assert told.value.args[1] not in got, "and the next one did not"

    run(main())


async def until_end(subscription):
    async for message in subscription:
        if message.data == "end":
            return
        yield message


def test_a_piece_that_went_to_a_node_that_is_gone_is_told(tmp_path):
    async def main():
        async with (
            Node(**FAST) as one,
            Node(join=[one.address], **FAST) as other,
            connect(one.address, other.address) as client,
        ):
            outbox = client._port._publications._outbox
            outbox._credit = 1  # one piece at a time
            waiting = asyncio.ensure_future(client.publish_batch("t", range(MESSAGES), wait="stable"))
            await until(lambda: outbox.sent)
            client._port._connection.abort("as if its node had gone")
            with pytest.raises(OutcomeUnknown, match="may have been published"):
                await waiting

    run(main())
