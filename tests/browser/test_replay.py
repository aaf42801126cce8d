"""Subscriptions of browsers that begin in a node's log, and go on in another one's."""

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cubecast.addresses import Address
from cubecast.api.node import Node
from support.cluster import FAST

HTTP = Address("127.0.0.1", 0)
OPEN = """async (urls) => {
  const { connect, Gap } = await import("/cubecast.js");
  window.c = await connect(urls);
  window.take = async (subscription, count) => {
    const found = [];
    while (found.length < count) {
      const event = await subscription.next();
      found.push(event instanceof Gap ? `gap: ${event.reason}` : [event.data, event.offset !== null]);
    }
    return found;
  };
}"""


def logging_node(directory, name, **options):
    return Node(http=HTTP, log=(">",), data=Path(directory) / name, ws_origins=("*",), **FAST | options)


@asynccontextmanager
async def connected_page(chromium, *nodes):
    """A page of the last node, connected to the first; the others are for moving to."""
    urls = [f"ws://{node._live.web.address}/ws" for node in nodes]
    address = f"http://{nodes[-1]._live.web.address}/chat"
    async with chromium.page(address, calm=False, bypass_csp=True) as page:
        await page.evaluate(OPEN, urls)
        yield page


def test_a_page_reads_the_past_and_moves_without_a_gap(chromium):
    async def main():
        with TemporaryDirectory() as directory:
            async with logging_node(directory, "one") as one:
                other = logging_node(directory, "other", join=[one.address])
                await other.start()
                await one.publish_batch("t", range(5), wait="stable")
                await read(one, other)

    async def read(one, other):
        async with connected_page(chromium, other, one) as page:
            await page.evaluate("async () => { window.s = c.subscribe('t', { since: 'beginning' }); await s.ready; }")
            assert await page.evaluate("take(s, 5)") == [[number, True] for number in range(5)]
            await page.evaluate("c.publish('t', 'kept', { wait: 'durable' })")
            assert await page.evaluate("take(s, 1)") == [["kept", True]]
            await other.close()
            await one.publish("t", "after")
            assert await page.evaluate("take(s, 1)") == [["after", True]], "and no gap before it"
            offset = "async () => { const late = c.subscribe('t', { since: 6 }); return take(late, 2); }"
            assert await page.evaluate(offset) == [["kept", True], ["after", True]]

    chromium.run(main())


def test_a_page_whose_new_node_has_no_log_goes_on_live(chromium):
    """It had not read all of the past yet, and said where to begin by a time: the new node cannot give it that."""

    async def main():
        with TemporaryDirectory() as directory:
            async with Node(http=HTTP, ws_origins=("*",), **FAST) as one:
                other = logging_node(directory, "other", join=[one.address])
                await other.start()
                await one.publish_batch("t", [bytes(10_000)] * 500, wait="stable")
                await read(one, other)

    async def read(one, other):
        async with connected_page(chromium, other, one) as page:
            await page.evaluate("() => { window.s = c.subscribe('t', { since: new Date(0), budget: 1000 }); }")
            await page.wait_for_function("() => s.held > 1000")
            await other.close()
            gaps = """async () => {
              const gaps = [];
              while (gaps.length < 2) { const [one] = await take(s, 1); if (typeof one === "string") gaps.push(one); }
              return gaps;
            }"""
            first, second = await page.evaluate(gaps)
            assert "messages may be missing" in first and "from here on all arrives" in second
            await one.publish("t", "live")
            assert (await page.evaluate("take(s, 1)"))[0][0] == "live"

    chromium.run(main())


def test_a_node_without_a_log_says_so(chromium):
    async def main():
        async with (
            Node(http=HTTP, **FAST) as node,
            chromium.page(f"http://{node._live.web.address}/chat") as page,
        ):
            await page.evaluate(OPEN, "/ws")
            refused = "() => c.subscribe('t', { since: 'beginning' }).ready.catch((error) => error.name)"
            assert await page.evaluate(refused) == "NotKept"
            unkept = "() => c.publish('t', 1, { wait: 'durable' }).catch((error) => error.name)"
            assert await page.evaluate(unkept) == "BadInput"

    chromium.run(main())
