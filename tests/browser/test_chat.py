"""The chat page: people in browsers at different nodes, and members in Python, see causes before effects."""

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cubecast.addresses import Address
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.security.policy import OPEN, Policy
from cubecast.net.web.server import WebServer
from support.cluster import cluster
from support.roads import roads
from support.running import until
from support.secured import secured

HTTP = Address("127.0.0.1", 0)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOWN = """messages => messages.map(one => ({
  by: one.dataset.by, key: one.dataset.key, re: one.dataset.re,
  text: one.querySelector(".bubble").lastChild.textContent,
}))"""


def address(node):
    return f"http://{node._live.web.address}"


@asynccontextmanager
async def chatting(chromium, node, name, **options):
    async with chromium.page(f"{address(node)}/chat", **options) as page:
        await page.fill("#name", name)
        await page.click("#enter button")
        await page.wait_for_selector("#log:not([hidden])")
        yield page


async def say(page, text):
    await page.fill("#text", text)
    await page.press("#text", "Enter")


async def shown(page, count=0):
    """What the page shows, when it shows so many messages."""
    await page.wait_for_function("count => document.querySelectorAll('.message').length >= count", arg=count)
    return await page.eval_on_selector_all(".message", SHOWN)


def test_effects_that_overtake_their_causes_wait_for_them(chromium):
    async def answer(member, heard):
        question = await heard.next(30)
        headers = {"by": "cid", "re": question.headers["key"]}
        await member.publish("chat.room", f"answer to {question.text()}", headers=headers)

    async def main():
        async with roads(http=HTTP) as built:
            ann_node, bob_node, member = built.nodes.values()
            async with (
                chatting(chromium, ann_node, "ann") as ann,
                chatting(chromium, bob_node, "bob") as bob,
                member.subscribe("chat.room", gaps="ignore") as heard,
            ):
                built.hold(0, 1)
                await say(ann, "who is there?")
                await answer(member, heard)
                assert [one["text"] for one in await shown(ann, 2)] == ["who is there?", "answer to who is there?"]
                # Node 1 passed the answer on to node 0, so it has it; its page must not.
                assert [one["message"] for one in bob_node._live.status()["held"]] == [[3, 0, 1]]
                assert await shown(bob) == []
                assert await ann.inner_text(".own .mark") == "on its way"
                built.free()
                question, reply = await shown(bob, 2)
                assert (question["by"], reply["by"], reply["re"]) == ("ann", "cid", question["key"])

                await bob.click(f"[data-key='{question['key']}'] .bubble")
                await say(bob, "me")
                assert (await shown(ann, 3))[2]["re"] == question["key"]
                assert (await heard.next(30)).headers["by"] == "cid"
                assert (await heard.next(30)).headers["re"] == question["key"]
                for page in (ann, bob):
                    await page.wait_for_function(
                        "() => document.querySelector('.own .mark').textContent.includes('every')"
                    )
                    assert await page.query_selector(".orphan") is None

    chromium.run(main())


def test_a_browser_and_the_example_program_chat(chromium):
    async def line(process):
        async with asyncio.timeout(30):
            return (await process.stdout.readline()).decode().rstrip("\n")

    async def main():
        async with cluster(1, http=HTTP) as (node,), chatting(chromium, node, "ann") as ann:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(EXAMPLES / "chat.py"), "bob", "--join", node.address),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            try:
                assert (await line(process)).startswith("-- bob is here")
                await say(ann, "hello <b>bob</b>")
                assert await line(process) == "ann: hello <b>bob</b>"
                process.stdin.write("hello ann, ümlaut\n".encode())
                assert [(one["by"], one["text"]) for one in await shown(ann, 2)] == [
                    ("ann", "hello <b>bob</b>"),
                    ("bob", "hello ann, ümlaut"),
                ]
                output, _ = await process.communicate(b"")
                assert output.decode() == "bob: hello ann, ümlaut\n"
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    chromium.run(main())


def test_gaps_refusals_and_lost_nodes_are_shown(chromium):
    async def main():
        async with cluster(1, http=HTTP) as (node,), chromium.page(f"{address(node)}/chat", calm=False) as page:
            node._live.security.policy = Policy("cubecast")
            await page.fill("#name", "ann")
            await page.click("#enter button")
            await page.wait_for_selector("#trouble:not([hidden])")
            assert "asks for a token" in await page.inner_text("#trouble")
            node._live.security.policy = OPEN
            await page.click("#enter button")
            await page.wait_for_selector("#log:not([hidden])")
            assert await page.inner_text("#state") == f"connected to node {node.id}"
            node._live.port.on_gap("chat.room", (), "somebody vanished")
            await page.wait_for_selector(".notice:has-text('somebody vanished')")
            for link in list(node._live.clients._gateways):
                link.close()
            await page.wait_for_selector(".notice:has-text('from here on all arrives')")
            await until(lambda: len(node._live.clients) == 1)

    chromium.run(main())


def test_what_cannot_be_read_does_not_end_the_conversation(chromium):
    async def main():
        async with cluster(1, http=HTTP) as (node,), chatting(chromium, node, "ann") as ann:
            node._port.publish("chat.room", [b"\xc1\x7f nonsense"])
            await node.publish("chat.room", "after it", headers={"by": "bob"})
            (message,) = await shown(ann, 1)
            assert message["text"] == "after it"
            assert "something that cannot be read" in await ann.inner_text("#log")

    chromium.run(main())


def test_over_tls_with_a_token(chromium):
    """What is published carries the name the token proves, whatever name was typed."""

    async def main():
        token = new_token("ann")
        grants = 'publish = ["chat.>"]\nsubscribe = ["chat.>"]\n'
        rules = f'[principals.ann]\ntokens = ["{digest(token, "cubecast")}"]\n{grants}'
        async with secured(rules) as scene:
            # A node that others reach serves its pages over TLS; this one does so for itself alone.
            secret = scene.node.security.web_tls(Address("192.0.2.1", 443))
            scene.node.web = WebServer(scene.node, HTTP, tls=secret)
            url = f"https://{await scene.node.web.open()}/chat"
            async with chromium.page(url, calm=False, ignore_https_errors=True) as page:
                await page.fill("#name", "not ann")
                await page.fill("#token", token)
                await page.fill("#room", "elsewhere")
                await page.click("#enter button")
                await page.wait_for_selector("#trouble:has-text('ann may not subscribe to elsewhere')")
                await page.fill("#room", "chat.room")
                await page.click("#enter button")
                await page.wait_for_selector("#log:not([hidden])")
                await say(page, "hello")
                await shown(page, 1)
                async with asyncio.timeout(30):
                    heard = await anext(aiter(scene.sees))
                assert (heard.principal, heard.headers["by"], heard.text()) == ("ann", "not ann", "hello")

    chromium.run(main())


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "</li><script>alert(1)</script>"])
def test_what_people_say_is_text(chromium, text):
    async def main():
        async with cluster(1, http=HTTP) as (node,), chatting(chromium, node, "<i>ann</i>") as page:
            await say(page, text)
            (one,) = await shown(page, 1)
            assert (one["by"], one["text"]) == ("<i>ann</i>", text)
            assert await page.query_selector("#log img, #log script, #log i") is None

    chromium.run(main())
