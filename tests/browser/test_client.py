"""The JavaScript client in a real browser, the real WebSocket endpoint, and a node whose knobs the test turns."""

import asyncio
import re
from pathlib import Path

from cubecast.api import envelope
from cubecast.ids import MessageId
from support.bus import Bus
from support.running import until
from support.websockets import Endpoint, endpoint, readers_only

HELPERS = """() => {
  window.outcome = async (action) => {
    try { return { value: await action() }; } catch (error) { return { name: error.name, message: error.message }; }
  };
}"""
OPEN = """async (options) => {
  const module = await import("/cubecast.js");
  window.c = await module.connect(options?.urls ?? "/ws", options ?? {});
  window.states = [c.state];
  window.refused = [];
  window.uncertain = [];
  c.addEventListener("state", ({ detail }) => states.push(detail));
  c.addEventListener("refused", ({ detail }) => refused.push(detail));
  c.addEventListener("uncertain", ({ detail }) => uncertain.push(detail));
  window.plain = (event) => event instanceof module.Gap
    ? { gap: event.reason, count: event.count, missing: event.missing }
    : { topic: event.topic, id: event.id, data: event.data, headers: event.headers };
  window.take = async (subscription, count) => {
    const events = [];
    while (events.length < count) events.push(plain(await subscription.next()));
    return events;
  };
}"""


DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "browsers.md"


async def connected(page, **options):
    await page.evaluate(HELPERS)
    await page.evaluate(OPEN, options or None)
    return page


def test_publish_subscribe_and_types(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page, name="tester")
            await page.evaluate("async () => { window.s = c.subscribe('room.>'); await s.ready; }")
            got = await page.evaluate("""async () => {
              await c.publish("room.a", "text", { headers: { by: "ann" } });
              await c.publish("room.b", { n: [1, 2.5, null] }, { wait: "taken" });
              await c.publish("room.a", new Uint8Array([0xc1, 5]), { wait: "stable" });
              await c.stable("room.b");
              const events = await take(s, 3);
              events[2].data = [...events[2].data];
              return events;
            }""")
            assert got == [
                {"topic": "room.a", "id": "0.0.1", "data": "text", "headers": {"by": "ann"}},
                {"topic": "room.b", "id": "0.0.1", "data": {"n": [1, 2.5, None]}, "headers": {}},
                {"topic": "room.a", "id": "0.0.2", "data": [0xC1, 5], "headers": {}},
            ]
            node.port.publish("room.c", [envelope.seal("from Python", {"by": "bob"})])
            (event,) = await page.evaluate("take(s, 1)")
            assert (event["data"], event["headers"]) == ("from Python", {"by": "bob"})
            assert await page.evaluate("c.status()") == {"node": 0, "members": [0]}
            await page.evaluate("c.close()")
            await until(lambda: not len(node.clients) and not node.port.wires)
            assert (await page.evaluate("outcome(() => c.publish('t', 1))"))["name"] == "Closed"
            assert await page.evaluate("s.closed")

    chromium.run(main())


def test_filters(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            await page.evaluate("async () => { window.s = c.subscribe('room.>', { where: 'n > 1' }); await s.ready; }")
            for headers in ({"n": 1}, {"n": "2"}, {"n": 2.5, "large": 1 << 60}, {"n": True}, {"n": 3}):
                node.port.publish("room.a", [envelope.seal("from Python", headers)])
            await page.evaluate("c.publish('room.b', 1, { headers: { n: 4 } })")
            got = await page.evaluate("(async () => (await take(s, 3)).map((one) => one.headers.n))()")
            assert got == [2.5, 3, 4]
            wrong = await page.evaluate("outcome(() => c.subscribe('t', { where: 'n >' }).ready)")
            assert wrong["name"] == "BadInput" and "filter, column 4" in wrong["message"]
            assert (await page.evaluate("outcome(() => c.subscribe('t', { where: 1 }))"))["name"] == "BadInput"
            assert len(node.port.wires) == 1

    chromium.run(main())


def test_ready_comes_when_the_node_says_so(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            waiting = []
            original = node.port.subscribe

            def subscribe(pattern, sink):
                loop = asyncio.get_running_loop()
                call_soon, loop.call_soon = loop.call_soon, lambda call, *_: waiting.append(call)
                try:
                    return original(pattern, sink)
                finally:
                    loop.call_soon = call_soon

            node.port.subscribe = subscribe
            await connected(page)
            await page.evaluate(
                "() => { window.s = c.subscribe('t'); s.ready.then(() => { window.isReady = true; }); }"
            )
            await until(lambda: waiting)
            await page.evaluate("c.status()")  # what was said before it has arrived by now
            assert not await page.evaluate("window.isReady")
            waiting[0]()
            await page.wait_for_function("() => window.isReady")

    chromium.run(main())


def test_gaps_stand_in_their_place_and_name_what_is_missing(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            await page.evaluate("async () => { window.s = c.subscribe('t'); await s.ready; }")
            await page.evaluate(
                "async () => { window.raising = c.subscribe('t', { gaps: 'raise' }); await raising.ready; }"
            )
            await page.evaluate("async () => { window.deaf = c.subscribe('t', { gaps: 'ignore' }); await deaf.ready; }")
            node.port.publish("t", [envelope.seal(1)])
            node.port.announce_gap("t", MessageId(3, 0, 7), MessageId(3, 0, 8), reason="node 3 is gone")
            node.port.publish("t", [envelope.seal(2)])
            first, gap, second = await page.evaluate("take(s, 3)")
            assert (first["data"], second["data"]) == (1, 2)
            run = {"topic": "t", "source": 3, "incarnation": 0, "first": 7, "last": 8}
            assert gap == {"gap": "node 3 is gone", "count": 2, "missing": [run]}
            assert (await page.evaluate("outcome(() => take(raising, 2))"))["name"] == "Missed"
            assert [event["data"] for event in await page.evaluate("take(deaf, 2)")] == [1, 2]

    chromium.run(main())


def test_a_page_that_does_not_read_pauses_the_node_and_resumes_it(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            await page.evaluate("async () => { window.s = c.subscribe('t', { budget: 10000 }); await s.ready; }")
            for number in range(300):
                node.port.publish("t", [envelope.seal(number)])
                if number % 10 == 0:
                    await page.evaluate("c.status()")
            assert ("pause", 1) in node.port.calls and ("resume", 1) not in node.port.calls
            assert await page.evaluate("s.held") < 20_000
            got = await page.evaluate("take(s, 300)")
            assert [event["data"] for event in got] == list(range(300))
            assert ("resume", 1) in node.port.calls

    chromium.run(main())


def test_readers_that_stop_are_cut_off_and_droppers_say_what_they_dropped(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            await page.evaluate("""async () => {
              window.blocking = c.subscribe("t", { budget: 500, patience: 50 });
              window.dropping = c.subscribe("t", { budget: 500, whenSlow: "drop-oldest" });
              await Promise.all([blocking.ready, dropping.ready]);
            }""")
            for number in range(1, 51):
                node.port.publish("t", [envelope.seal(number)])
            error = await page.evaluate("async () => { const error = await blocking.ended; return error.name; }")
            assert error == "SlowConsumer"
            gap, *rest = await page.evaluate("async () => [plain(await dropping.next()), ...await take(dropping, 5)]")
            assert gap["gap"] == "the reader was too slow"
            assert gap["missing"][0]["last"] == gap["count"] == rest[0]["data"] - 1
            await until(lambda: list(node.port.wires) == [2])

    chromium.run(main())


def test_publishing_waits_for_a_node_without_room_and_loses_nothing(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            node.port.open_room.clear()
            await page.evaluate("""() => {
              window.accepted = 0;
              const data = new Uint8Array(100_000);
              window.all = Promise.all(Array.from({ length: 100 }, () => c.publish("t", data).then(() => accepted++)));
            }""")
            await page.evaluate("c.status()")
            before = await page.evaluate("accepted")
            assert 10 < before < 60, "about four mebibytes fit"
            assert not node.port._counters
            node.port.open_room.set()
            await page.evaluate("async () => { await all; await c.stable('t'); }")
            assert node.port._counters == {"t": 100}

    chromium.run(main())


def test_permissions_are_refusals_with_the_reason(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            node.policy, token = readers_only()
            await page.evaluate(HELPERS)
            for options, reason in (
                ("{}", "this node asks for a token, a key or a client certificate"),
                ("{ token: 'reader.wrong' }", "this token is not valid here"),
            ):
                code = f"async () => outcome(async () => (await import('/cubecast.js')).connect('/ws', {options}))"
                refused = await page.evaluate(code)
                assert refused == {"name": "BadInput", "message": f"ws://{node.address}/ws: {reason}"}
            await connected(page, token=token)
            refused = await page.evaluate("outcome(() => c.subscribe('secret.>').ready)")
            assert refused["name"] == "BadInput" and "may not subscribe to secret.>" in refused["message"]
            for wait in ("taken", "stable"):
                refused = await page.evaluate(f"outcome(() => c.publish('secret.a', 1, {{ wait: '{wait}' }}))")
                assert refused == {"name": "BadInput", "message": "reader may not publish on secret.a"}
            await page.evaluate("c.publish('secret.b', 1)")
            await page.wait_for_function("() => refused.length === 1")
            await page.evaluate("async () => { window.s = c.subscribe('open.*'); await s.ready; }")
            await page.evaluate("c.publish('open.a', 1, { wait: 'stable' })")
            assert await page.evaluate("s.next().then(({ principal, data }) => [principal, data])") == ["reader", 1]
            assert node.port._counters == {"open.a": 1}

    chromium.run(main())


def test_bad_input_is_refused_before_anything_is_sent(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            for action in (
                "c.publish('', 1)",
                "c.publish('t', undefined)",
                "c.publish('t', new Uint8Array(1 << 20 + 1))",
                "c.publish('t', 1, { wait: 'forever' })",
                "c.subscribe('')",
                "c.subscribe('t', { gaps: 'maybe' })",
                "c.subscribe('t..u').ready",
            ):
                assert (await page.evaluate(f"outcome(() => {action})"))["name"] == "BadInput", action
            for url in ("'ftp://x'", "'ws://user:secret@x'", "'/ws?token=secret'", "'http://['", "[]"):
                code = f"async () => outcome(async () => (await import('/cubecast.js')).connect({url}))"
                assert (await page.evaluate(code))["name"] == "BadInput", url
            assert not node.port._counters

    chromium.run(main())


def test_a_lost_connection_is_announced_found_again_and_nothing_comes_twice(chromium):
    async def main():
        bus = Bus()
        async with endpoint(bus) as node, chromium.page(f"{node.origin}/chat", calm=False, bypass_csp=True) as page:
            second = Endpoint(bus, origins=("*",))
            await second.open()
            await connected(page, urls=[f"ws://{second.address}", f"ws://{node.address}"])
            await page.evaluate("async () => { window.s = c.subscribe('t'); await s.ready; }")
            node.port.publish("t", [envelope.seal(number) for number in range(3)])
            second.port.open_room.clear()
            await page.evaluate("async () => { await c.publish('t', 'under way'); await c.status(); }")
            await second.close()
            second.port.open_room.set()
            await page.wait_for_function("() => states.at(-1) === 'connected' && states.length > 1")
            assert await page.evaluate("states") == ["connected", "looking", "connected"]
            assert await page.evaluate("uncertain") == [{"messages": 1, "topics": ["t"]}]
            await page.evaluate("c.publish('t', 'after', { wait: 'stable' })")
            (wire,) = node.port.wires.values()
            wire.sink.on_batch("t", MessageId(0, 0, 2), [envelope.seal(number) for number in (1, 2, "after", "last")])
            events = await page.evaluate("take(s, 7)")
            shown = [event.get("data", event.get("gap")) for event in events]
            assert shown[:3] == [0, 1, 2] and shown[5:] == ["after", "last"]
            assert "lost node 1" in shown[3] and "from here on all arrives" in shown[4]

    chromium.run(main())


def test_who_finds_no_node_any_more_learns_it_everywhere(chromium):
    async def main():
        bus = Bus()
        async with endpoint(bus) as node, chromium.page(f"{node.origin}/chat", calm=False, bypass_csp=True) as page:
            other = Endpoint(bus, origins=("*",))
            await other.open()
            await connected(page, urls=f"ws://{other.address}", patience=150)
            await page.evaluate("async () => { window.s = c.subscribe('t'); await s.ready; }")
            other.port.settled.clear()
            asked = asyncio.ensure_future(page.evaluate("outcome(() => c.publish('t', 1, { wait: 'stable' }))"))
            await until(lambda: other.port._counters)
            await other.close()
            assert (await asked)["name"] == "OutcomeUnknown"
            await page.wait_for_function("() => c.state === 'closed'")
            assert (await page.evaluate("outcome(() => take(s, 3))"))["name"] == "OutcomeUnknown"
            assert (await page.evaluate("outcome(() => c.publish('t', 1))"))["name"] == "Closed", (
                "that one is not published"
            )

    chromium.run(main())


def test_who_closes_while_looking_for_a_node_is_just_closed(chromium):
    async def main():
        bus = Bus()
        async with endpoint(bus) as node, chromium.page(f"{node.origin}/chat", calm=False, bypass_csp=True) as page:
            other = Endpoint(bus, origins=("*",))
            await other.open()
            await connected(page, urls=f"ws://{other.address}")
            await page.evaluate("async () => { window.s = c.subscribe('t', { gaps: 'ignore' }); await s.ready; }")
            await other.close()
            await page.wait_for_function("() => c.state === 'looking'")
            await page.evaluate("c.close()")
            assert await page.evaluate("s.ended") is None
            assert await page.evaluate("states") == ["connected", "looking", "closed"]
            assert (await page.evaluate("outcome(() => c.publish('t', 1))"))["name"] == "Closed"

    chromium.run(main())


def test_closing_waits_for_what_was_published(chromium):
    async def main():
        async with endpoint() as node, chromium.page(f"{node.origin}/chat") as page:
            await connected(page)
            await page.evaluate(
                "async () => { for (let n = 0; n < 2000; n++) await c.publish('t', n); await c.close(); }"
            )
            assert node.port._counters == {"t": 2000}

    chromium.run(main())


def test_the_documented_example_runs(chromium):
    async def main():
        (code,) = re.findall(r"```js\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        async with endpoint() as node, chromium.page(f"{node.origin}/chat", bypass_csp=True) as page:
            said = asyncio.get_running_loop().create_future()
            page.on("console", lambda message: said.done() or said.set_result(message.text))
            await page.evaluate("() => { window.token = 'secret'; }")
            await page.add_script_tag(type="module", content=code)
            assert await said == "room.hello ann {text: who is there?}"

    chromium.run(main())
