"""A page promises a broker what it will publish, and is held to it."""

from cubecast.addresses import Address
from cubecast.api.node import Node
from support.brokers import settings

OPEN = """async () => {
  window.module = await import("/cubecast.js");
  window.c = await module.connect("/ws");
  window.outcome = async (action) => {
    try { return { value: await action() }; } catch (error) { return { name: error.name, message: error.message }; }
  };
}"""


def test_a_page_advertises_and_publishes_what_it_promised(chromium):
    async def main():
        shared = settings("0-1", faults=0)
        async with (
            Node(node=0, http=Address("127.0.0.1", 0), **shared) as node,
            Node(node=1, **shared) as other,
            chromium.page(f"http://{node._live.web.address}/chat") as page,
        ):
            await page.evaluate(OPEN)
            assert await page.evaluate("outcome(() => c.advertise('prices', 'price >= 10'))") == {"value": None}
            subscription = other.subscribe("prices", where="price >= 12")
            await subscription.ready()
            outside = "c.publish('prices', 1, { headers: { price: 1 }, wait: 'taken' })"
            refused = await page.evaluate(f"outcome(() => {outside})")
            assert refused["name"] == "BadInput" and "price >= 10" in refused["message"]
            for price in (11, 12):
                await page.evaluate(f"c.publish('prices', {price}, {{ headers: {{ price: {price} }}, wait: 'taken' }})")
            assert (await anext(aiter(subscription))).data == 12
            no_filter = await page.evaluate("outcome(() => c.advertise('others', 'price >='))")
            assert no_filter["name"] == "BadInput"
            assert await page.evaluate("outcome(() => c.unadvertise('prices'))") == {"value": None}
            again = await page.evaluate("outcome(() => c.unadvertise('prices'))")
            assert again["name"] == "BadInput" and "not advertised" in again["message"]

    chromium.run(main())


def test_a_brokers_page_draws_its_tree_and_says_what_covers_what(chromium):
    async def main():
        shared = settings("0-1 1-2", faults=1)
        async with (
            Node(node=0, http=Address("127.0.0.1", 0), **shared) as node,
            Node(node=1, **shared) as other,
            Node(node=2, **shared),
            node.subscribe("prices") as wide,
            node.subscribe("prices", where="price >= 10") as narrow,
            chromium.page(f"http://{node._live.web.address}/") as page,
        ):
            await other.advertise("prices")
            for one in (wide, narrow):
                await one.ready()
            await page.wait_for_selector("#cube[data-shape='tree']")
            await page.wait_for_selector("#remarks >> text=1 advertisements, 2 subscriptions")
            await page.wait_for_selector("#remarks >> text=covered by subscription")

    chromium.run(main())
