"""Questions and answers between pages and Python programs, in both directions."""

from cubecast.addresses import Address
from cubecast.api.node import Node
from cubecast.errors import RequestFailed
from support.cluster import FAST

HTTP = Address("127.0.0.1", 0)
OPEN = """async () => {
  window.module = await import("/cubecast.js");
  window.c = await module.connect("/ws");
  window.outcome = async (action) => {
    try { return { value: await action() }; } catch (error) { return { name: error.name, message: error.message }; }
  };
}"""
SERVE = """async () => {
  window.service = c.serve("page.*", async (message) => {
    if (message.topic === "page.broken") throw new RangeError("not that one");
    if (message.topic === "page.nothing") return undefined;
    return { topic: message.topic, got: message.data, by: message.headers.by };
  });
  await service.ready;
}"""


def with_page(chromium, test):
    async def main():
        async with (
            Node(http=HTTP, **FAST) as node,
            chromium.page(f"http://{node._live.web.address}/chat") as page,
        ):
            await page.evaluate(OPEN)
            await test(node, page)

    chromium.run(main())


def test_a_page_asks_and_python_answers(chromium):
    async def test(node, page):
        def double(message):
            if message.headers.get("by") != "page":
                raise ValueError("who asks?")
            return {"twice": 2 * message.data}

        async with node.serve("double", double):
            asked = "c.request('double', 21, { headers: { by: 'page' } }).then((message) => message.data)"
            assert await page.evaluate(asked) == {"twice": 42}
            refused = await page.evaluate("outcome(() => c.request('double', 21))")
            assert refused == {"name": "RequestFailed", "message": "ValueError: who asks?"}
            many = "Promise.all([1, 2, 3].map((n) => c.request('double', n, { headers: { by: 'page' } })))"
            got = await page.evaluate(f"{many}.then((all) => all.map((message) => message.data.twice))")
            assert got == [2, 4, 6], "each gets its own answer"
        alone = await page.evaluate("outcome(() => c.request('nobody', 1, { timeout: 600000 }))")
        assert alone == {"name": "NoResponder", "message": "nobody: nobody is subscribed, so nobody answers"}
        async with node.subscribe("silent"):
            late = await page.evaluate("outcome(() => c.request('silent', 1, { timeout: 50 }))")
            assert late == {"name": "TimeoutError", "message": "nobody answered on silent for 50 ms"}
        for wrong in ("c.request('', 1)", "c.request('t', undefined)", "c.request('t', 1, { headers: { a: {} } })"):
            assert (await page.evaluate(f"outcome(() => {wrong})"))["name"] == "BadInput"

    with_page(chromium, test)


def test_python_asks_and_a_page_answers(chromium):
    async def test(node, page):
        await page.evaluate(SERVE)
        answer = await node.request("page.a", {"n": 1}, headers={"by": "python"}, timeout=30)
        assert answer.data == {"topic": "page.a", "got": {"n": 1}, "by": "python"}
        assert (await node.request("page.nothing", 1, timeout=30)).data is None
        try:
            await node.request("page.broken", 1, timeout=30)
            raise AssertionError("it was answered")
        except RequestFailed as failed:
            assert str(failed) == "RangeError: not that one"
        await node.publish("page.a", "no question")
        await node.publish("page.a", 1, headers={"reply-to": "elsewhere", "correlation": "1"})
        assert (await node.request("page.b", 2, timeout=30)).data["got"] == 2, "it goes on"
        await page.evaluate("service.close()")
        assert await page.evaluate("service.ended.then((error) => error === undefined)")

    with_page(chromium, test)


def test_an_answer_by_hand_and_what_is_no_question(chromium):
    async def test(node, page):
        await page.evaluate("""async () => {
          window.s = c.subscribe("hand");
          await s.ready;
          window.answered = s.next().then((message) => c.reply(message, "by hand"));
        }""")
        assert (await node.request("hand", 1, timeout=30)).data == "by hand"
        for headers in (None, {"reply-to": "orders.new", "correlation": "1"}):
            await node.publish("hand", "plain", headers=headers)
            refused = await page.evaluate("outcome(async () => c.reply(await s.next(), 1))")
            assert refused["name"] == "BadInput" and "names no inbox to reply to" in refused["message"]
        assert (await page.evaluate("outcome(() => c.serve('t', 5))"))["name"] == "BadInput"

    with_page(chromium, test)


def test_who_closes_gets_no_answer(chromium):
    async def test(node, page):
        async with node.subscribe("silent") as heard:
            await page.evaluate("() => { window.asked = outcome(() => c.request('silent', 1, { timeout: 60000 })); }")
            await heard.next(60)
            await page.evaluate("c.close()")
        assert (await page.evaluate("asked"))["name"] == "Closed"
        assert (await page.evaluate("outcome(() => c.request('silent', 1))"))["name"] == "Closed"

    with_page(chromium, test)
