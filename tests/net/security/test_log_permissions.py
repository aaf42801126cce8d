"""The log is read under the same policy: by whoever may hear the topic, and by nodes."""

import asyncio

import pytest

from cubecast.api.connect import connect
from cubecast.api.node import Node
from cubecast.errors import CubecastError, NotPermitted
from cubecast.net.links.login import Login
from cubecast.net.security.credentials import digest, new_token
from support.certificates import certificates
from support.cluster import FAST
from support.running import run, until
from support.secured import secured

TOKEN = new_token("alice")
RULES = f'[principals.alice]\ntokens = ["{digest(TOKEN, "cubecast")}"]\nsubscribe = ["open.>"]\n'


@pytest.mark.parametrize("how", ["subscribe", "wildcard", "read"])
def test_what_may_not_be_heard_may_not_be_read_later(how, tmp_path):
    async def scenario():
        async with secured(RULES, tls=False, data=tmp_path, log=(">",)) as scene:
            for topic in ("open.a", "closed.b"):
                await scene.honest.publish(topic, topic, wait="stable")
                await anext(aiter(scene.sees))
            async with connect(scene.address, login=Login(token=TOKEN)) as client:
                granted = client.subscribe("open.>", since="beginning")
                assert (await anext(aiter(granted))).data == "open.a"
                assert [one.topic for one in await client._port.log_topics()] == ["open.a"]
                with pytest.raises(CubecastError, match="alice may not subscribe to"):
                    match how:
                        case "subscribe":
                            await anext(aiter(client.subscribe("closed.b", since="beginning")))
                        case "wildcard":
                            await anext(aiter(client.subscribe(">", since="beginning")))
                        case _:
                            await client._port.read_log("closed.b", None, None)

    run(scenario())


def test_a_node_that_comes_back_reads_a_peers_log_by_its_certificate(tmp_path):
    """Although the policy grants nothing to anybody."""
    policy = tmp_path / "policy.toml"
    policy.write_text("")

    def keeper(name, *others, **options):
        join = [other.address for other in others]
        made = certificates().make(name, (None,), hosts=("elsewhere.example",))
        return Node(join=join, data=tmp_path / name, log=(">",), tls=made, policy=policy, **FAST | options)

    async def scenario():
        async with keeper("a") as one:
            async with keeper("b", one, node=6):
                await one.publish_batch("t", [b"1", b"2"], wait="stable")
            await one.publish_batch("t", [b"3", b"4"], wait="stable")
            async with keeper("b", one, node=6) as back:
                await until(lambda: back._live.port.recorder.store.bounds("t")[1] >= 4)
                subscription = back.subscribe("t", since="beginning")
                async with asyncio.timeout(30):
                    assert [(await anext(aiter(subscription))).data for _ in range(4)] == [b"1", b"2", b"3", b"4"]

    run(scenario())


def test_whether_a_topic_is_logged_is_told_to_those_who_may_publish_on_it(tmp_path):
    async def scenario():
        async with (
            secured(RULES, tls=False, data=tmp_path, log=("closed.>",)) as scene,
            connect(scene.address, login=Login(token=TOKEN)) as client,
        ):
            for topic in ("closed.a", "elsewhere"):
                with pytest.raises(NotPermitted, match=f"alice may not publish on {topic}"):
                    await client.publish(topic, "x", wait="durable", timeout=30)

    run(scenario())
