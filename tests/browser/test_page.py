"""The operators' page in a real browser, asking real nodes."""

import asyncio

import pytest

from cubecast.addresses import Address
from support.cluster import cluster
from support.commands import running_node
from support.roads import roads

HTTP = Address("127.0.0.1", 0)


def address(node):
    return f"http://{node._live.web.address}/"


def node_in(state, number):
    return f".node[data-node='{number}'][data-state='{state}']"


async def table(page, body):
    return await page.eval_on_selector_all(
        f"#{body} tr", "rows => rows.map(row => [...row.cells].map(c => c.innerText))"
    )


def test_members_trees_and_topics_are_shown(chromium):
    async def main():
        async with cluster(4, http=HTTP) as nodes, nodes[1].subscribe("orders.eu"), nodes[3].subscribe("orders.eu"):
            await nodes[0].publish("orders.eu", "one", wait="stable")
            async with chromium.page(address(nodes[0])) as page:
                for number in range(4):
                    await page.wait_for_selector(node_in("alive" if number else "self", number))
                assert "reaches 3 other members in at most 2 steps" in await page.inner_text("#tree-text")
                assert await page.locator(".branches path").count() == 3
                assert await page.title() == "cubecast · node 0"

                await page.click(".node[data-node='2']")
                await page.wait_for_selector(".node[data-node='2'][data-role='root']")
                await page.wait_for_function("() => document.getElementById('tree-text').innerText.includes('node 2')")
                await page.focus(".node[data-node='3']")
                await page.keyboard.press("Enter")
                await page.wait_for_selector(".node[data-node='3'][data-role='root'][aria-pressed='true']")

                await page.select_option("#root", "0")
                await page.click("#topics button")
                await page.wait_for_function(
                    "() => document.getElementById('tree-text').innerText.includes('orders.eu')"
                )
                await page.wait_for_selector(".node[data-node='2'][data-role='outside']")
                assert await page.get_attribute(".node[data-node='3']", "data-role") == "reached"

                (topic,) = await table(page, "topics")
                assert topic[:2] == ["orders.eu", "1 3"]
                await page.click("text=Members as a table")
                assert [row[:2] for row in await table(page, "members")][:2] == [["0", "this node"], ["1", "alive"]]
                await page.click("text=Tree")
                await page.wait_for_selector("#cube[data-view='tree']")

    chromium.run(main())


@pytest.mark.parametrize("protocol", ["epto", "brisa"])
def test_a_protocol_that_is_no_cube_is_drawn_as_the_graph_it_describes(chromium, protocol: str):
    async def main():
        async with cluster(4, http=HTTP, protocol=protocol) as nodes, chromium.page(address(nodes[0])) as page:
            await page.wait_for_selector("#cube[data-shape='graph']")
            await page.wait_for_function("() => document.querySelectorAll('#cube .edges line').length >= 2")
            assert await page.inner_text("#cube-title") == "Graph"
            assert await page.inner_text("#cube-choice") == "Graph"
            assert "-1" not in await page.inner_text("#tree-text")
            overlay = (await nodes[0].status())["overlay"]
            assert overlay["shape"] == "graph" and {int(one) for one, _, _ in overlay["edges"]} == {nodes[0].id}
            assert await page.inner_text("#whoami") == f"node {nodes[0].id}"
            await page.click("text=Members as a table")
            shown = {row[0]: row[1] for row in await table(page, "members")}
            assert shown.keys() <= {str(node.id) for node in nodes} and shown[str(nodes[0].id)] == "this node"
            assert "alive" in shown.values(), "neighbours are"
            async with nodes[1].subscribe("chat"), nodes[0].subscribe("chat"):
                await page.wait_for_selector("#topics >> text=chat")

    chromium.run(main())


def test_the_place_of_a_node_in_a_stream_is_shown_and_the_way_to_it_drawn(chromium):
    async def main():
        async with cluster(4, http=HTTP, protocol="brisa") as nodes:
            publisher, watched = nodes[0], nodes[3]
            async with watched.subscribe("chat") as heard, chromium.page(address(watched)) as page:
                await heard.ready()
                assert not await page.is_visible("#streams-card"), "nothing flows yet"
                while not watched._live.machine.flows:
                    await publisher.publish("chat", "hello")
                    await asyncio.sleep(0)
                await page.wait_for_selector("#streams tr")
                ((topic, of, *_),) = await table(page, "streams")
                assert (topic, of) == ("chat", str(publisher.id)[-4:])
                await page.click("#streams button")
                await page.wait_for_selector(f".node[data-node='{publisher.id}'][data-role='root']")
                await page.click("text=Tree")
                await page.wait_for_selector("#cube[data-view='tree'] .branches path", state="attached")
                assert "no node knows the whole tree" in await page.inner_text("#tree-text")

    chromium.run(main())


def test_a_killed_process_shows_by_its_connections(chromium):
    """They end; nobody waits for the patience, which is longer than the test here."""

    async def main(http, killed):
        async with chromium.page(f"http://{http}/") as page:
            for number in (1, killed.node):
                await page.wait_for_selector(node_in("alive", number))
            await asyncio.to_thread(killed.kill)
            await page.wait_for_selector(node_in("suspected", killed.node))
            await page.wait_for_selector(f"#faults [data-kind='suspected'][data-node='{killed.node}']")
            assert await page.inner_text("#tiles [data-key='Members'] dd") == f"2 of {killed.node + 1}"
            await page.wait_for_selector(node_in("alive", 1))

    patient = ("--set", "patience=600")
    with (
        running_node("--http", "127.0.0.1:0", *patient) as first,
        running_node("--join", first.address, *patient),
        running_node("--join", first.address, *patient) as killed,
    ):
        chromium.run(main(first.http, killed))


def test_held_messages_are_shown_with_what_they_wait_for(chromium):
    async def main():
        async with roads(http=HTTP) as built:
            source, here, other = built.nodes.values()
            async with (
                here.subscribe("chat.room") as heard,
                other.subscribe("chat.room", gaps="ignore") as answered,
                chromium.page(address(here)) as page,
            ):
                await source.publish("chat.room", "hello", wait="stable")
                await answered.next(30)
                await page.wait_for_selector("#held:empty", state="attached")
                built.hold(0, 1)
                await source.publish("chat.room", "question")
                await answered.next(30)
                await other.publish("chat.room", "answer")
                await page.wait_for_selector("#held li[data-message='3.0.1']")
                chain = await page.inner_text("#held .chain")
                assert "3 #1" in chain and "0 #2" in chain and "missing" in chain
                assert "node 0" in await page.inner_text("#held .hint")
                await page.wait_for_function(
                    "() => document.querySelector('#tiles [data-key=Held] dd').innerText === '1'"
                )
                built.free()
                await page.wait_for_selector("#held:empty", state="attached")
                assert [(await heard.next(30)).text() for _ in range(3)] == ["hello", "question", "answer"]

    chromium.run(main())


def test_rates_and_percentiles_are_drawn(chromium):
    async def main():
        async with (
            cluster(2, http=HTTP) as (one, other),
            other.subscribe("t", gaps="ignore") as heard,
            chromium.page(address(one)) as page,
        ):
            async with asyncio.TaskGroup() as tasks:
                talking = tasks.create_task(_talk(one, heard))
                await page.wait_for_function(
                    "() => document.querySelector('#tiles [data-key=\"Latency p99\"] dd').innerText.endsWith('s')"
                )
                await page.wait_for_function(
                    "() => document.querySelector('.chart:nth-child(2) .line.series-2').getAttribute('d').length > 20"
                )
                talking.cancel()
            assert await page.locator(".chart").count() == 3

    chromium.run(main())


async def _talk(one, heard):
    while True:
        await one.publish("t", 1, wait="stable")
        await heard.next(30)


def test_a_node_that_asks_for_a_token_gets_one(chromium):
    async def main():
        async with cluster(1, http=HTTP) as (node,):

            def decide(request, need):
                sent = request.headers.get("Authorization")
                return None if need.value == "nothing" or sent == "Bearer secret" else "who are you?"

            node._live.web.gate.decide = decide
            async with chromium.page(address(node), calm=False) as page:
                await page.wait_for_selector("#token-dialog[open]")
                assert await page.inner_text("#token-reason") == "who are you?"
                await page.keyboard.press("Escape")  # asked again, rather than left with a page that stands still
                await page.wait_for_selector("#token-dialog[open]")
                await page.fill("#token", "secret")
                await page.click("#token-form button")
                await page.wait_for_selector(node_in("self", 0))
                assert "secret" not in page.url
                assert await page.inner_text("#state") == "live"

    chromium.run(main())


def test_a_node_that_is_gone_is_said_to_be(chromium):
    async def main():
        async with cluster(1, http=HTTP) as (node,), chromium.page(address(node), calm=False) as page:
            await page.wait_for_selector(node_in("self", 0))
            await node.close()
            await page.wait_for_selector("#state[data-state='closed']")
            await page.wait_for_selector("body.stale")

    chromium.run(main())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_dark_and_small_screens(chromium, scheme):
    async def main():
        small = {"width": 360, "height": 700}
        async with (
            cluster(3, http=HTTP) as nodes,
            chromium.page(address(nodes[0]), color_scheme=scheme, viewport=small) as page,
        ):
            await page.wait_for_selector(node_in("alive", 2))
            ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness = sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")))
            assert (brightness > 600) == (scheme == "light"), ground
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360, "nothing sticks out"
            await page.click("#theme")
            await page.click("#theme")
            assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
            await page.reload()
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark", "it is remembered"

    chromium.run(main())


LONG = "very." * 40 + "long"


def test_long_names_and_a_phone_keep_the_useful_columns(chromium):
    """Topic, rates and what is held stay in sight; nothing sticks out, and what is empty takes no room."""

    async def main():
        phone = {"width": 360, "height": 700}
        async with (
            cluster(1, http=HTTP) as (node,),
            node.subscribe(LONG),
            chromium.page(address(node), viewport=phone) as page,
        ):
            await page.wait_for_selector("#topics button")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360, "nothing sticks out"
            headings = await page.eval_on_selector_all(
                ".topics th", "all => all.filter(one => one.offsetParent !== null).map(one => one.innerText)"
            )
            assert headings == ["Topic", "Published/s", "Delivered/s", "Held"]
            right = await page.evaluate(
                "document.querySelector('.topics tr td:last-child').getBoundingClientRect().right"
            )
            assert right <= 360
            assert LONG in await page.get_attribute("#topics button", "title")
            height = await page.evaluate(
                "document.getElementById('held').closest('.card').getBoundingClientRect().height"
            )
            assert height < 90, "an empty card is one line"

    chromium.run(main())


def test_a_caller_before_the_node_is_ready_is_no_fault(chromium):
    async def main():
        async with cluster(1, http=HTTP) as (node,), chromium.page(address(node)) as page:
            node._live.observer.notice("early", None, "127.0.0.1:7: this node is not ready yet")
            await page.wait_for_selector("#faults li[data-kind='early'][data-gravity='calm']")
            assert await page.inner_text("#tiles [data-key='Faults'] dd") == "0"
            assert "before the node was ready" in await page.inner_text("#faults li b")

    chromium.run(main())


def test_tile_and_legend_of_a_moment_agree(chromium):
    """Also after a while without deliveries, when the latest sample has no latency."""

    async def main():
        async with (
            cluster(2, http=HTTP) as (one, other),
            other.subscribe("t", gaps="ignore") as heard,
            chromium.page(address(one)) as page,
        ):
            await one.publish("t", 1, wait="stable")
            await heard.next(30)
            await page.wait_for_function(
                """() => {
                  const tile = document.querySelector('#tiles [data-key="Latency p99"] dd').innerText;
                  const legend = document.querySelector('.chart:nth-child(2) .series li:nth-child(2) b').innerText;
                  const hint = document.querySelector('#tiles [data-key="Latency p99"] .hint').innerText;
                  return tile !== '–' && hint.includes('delivery') && tile === legend;
                }"""
            )
            agree = await page.evaluate(
                """async () => {
                  const apart = [];
                  for (let turn = 0; turn < 40; turn++) {
                    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100)));
                    const tile = document.querySelector('#tiles [data-key="Latency p99"] dd').innerText;
                    const legend = document.querySelector('.chart:nth-child(2) .series li:nth-child(2) b').innerText;
                    if (tile !== legend) apart.push([tile, legend]);
                  }
                  return apart;
                }"""
            )
            assert agree == []

    chromium.run(main())


def test_names_from_the_network_stay_text(chromium):
    async def main():
        async with (
            cluster(1, http=HTTP) as (node,),
            node.subscribe("<img/src=x/onerror=alert(1)//"),
            chromium.page(address(node)) as page,
        ):
            await page.wait_for_selector("#topics button:has-text('<img')")
            assert await page.query_selector("#topics img") is None

    chromium.run(main())
