"""Publishing, subscribing, asking and answering, on an imaginary cluster."""

import asyncio

import pytest

from cubecast.api.client import Client
from cubecast.api.envelope import seal
from cubecast.api.message import Gap, Message, Origin
from cubecast.errors import BadInput, Closed, Missed, NoResponder, NoRoom, OutcomeUnknown, RequestFailed
from cubecast.ids import MessageId
from support.bus import LARGEST, Bus
from support.running import run, until


def pair() -> tuple[Client, Client]:
    bus = Bus()
    return Client(bus.port()), Client(bus.port())


def test_everything_published_arrives_in_order_in_its_type():
    async def main():
        ann, bob = pair()
        async with bob.subscribe("chat") as heard:
            for data in (b"bytes", "text", {"json": [1, None]}):
                await ann.publish("chat", data, headers={"by": "ann"})
            got = [await heard.next(30) for _ in range(3)]
        assert [message.data for message in got] == [b"bytes", "text", {"json": [1, None]}]
        assert [message.counter for message in got] == [1, 2, 3]
        assert got[0].headers == {"by": "ann"} and got[0].topic == "chat" and got[0].source == 0

    run(main())


def test_a_publication_takes_no_turn_of_the_loop_when_there_is_room():
    async def main():
        ann, _ = pair()
        turned = []
        asyncio.get_running_loop().call_soon(turned.append, True)
        for number in range(100):
            await ann.publish("t", number)
        assert not turned

    run(main())


def test_publishers_wait_for_room_or_fail_clearly():
    async def main():
        port = Bus().port()
        client = Client(port)
        port.open_room.clear()
        with pytest.raises(NoRoom, match="nothing was published"):
            client.publish_nowait("t", 1)
        with pytest.raises(TimeoutError):
            await client.publish("t", 1, timeout=0.01)
        waiting = asyncio.create_task(client.publish("t", 1))
        await asyncio.sleep(0)
        assert not waiting.done() and port.publish("t", [b"x"]) == 1
        port.open_room.set()
        await waiting
        assert port.publish("t", [b"x"]) == 3

    run(main())


def test_waiting_for_stability_ends_when_everybody_has_it_or_says_it_does_not_know():
    async def main():
        port = Bus().port()
        client = Client(port)
        await client.publish("t", 1, wait="stable")
        port.settled.clear()
        with pytest.raises(OutcomeUnknown, match="not known to have reached"):
            await client.publish("t", 2, wait="stable", timeout=0.01)
        waiting = asyncio.create_task(client.publish_batch("t", [3, 4], wait="stable"))
        await asyncio.sleep(0)
        assert not waiting.done()
        port.settled.set()
        await waiting

    run(main())


def test_a_long_list_is_published_in_pieces_and_in_order():
    async def main():
        ann, bob = pair()
        sizes = []
        bob.subscribe("t", on_batch=lambda batch: sizes.append((batch.counter, len(batch))))
        await ann.publish_batch("t", [b"x"] * 1100)
        await ann.publish_batch("t", [bytes(40_000)] * 3)
        await ann.publish_batch("t", [])
        assert sizes == [(1, 512), (513, 512), (1025, 76), (1101, 1), (1102, 1), (1103, 1)]

    run(main())


@pytest.mark.parametrize(
    ("topic", "data"),
    [("a..b", 1), ("a.*", 1), ("t", object()), ("t", bytes(LARGEST + 1))],
    ids=["a hole", "a wildcard", "no payload", "too large"],
)
def test_bad_publications_are_refused(topic, data):
    async def main():
        client, _ = pair()
        with pytest.raises(BadInput):
            await client.publish(topic, data)

    run(main())


def test_bad_subscriptions_are_refused():
    async def main():
        client, _ = pair()
        for options in ({"when_slow": "sleep"}, {"gaps": "hide"}, {"budget": 0}):
            with pytest.raises(BadInput):
                client.subscribe("t", **options)
        with pytest.raises(BadInput):
            client.subscribe("a b")
        called = client.subscribe("t", on_batch=print)
        with pytest.raises(BadInput, match="nothing to iterate"):
            await called.next()

    run(main())


def test_wildcards_hear_all_they_select():
    async def main():
        ann, bob = pair()
        async with bob.subscribe("orders.*") as some, bob.subscribe(">") as everything:
            for topic in ("orders.eu", "orders.eu.new", "users"):
                await ann.publish(topic, topic)
            assert (await some.next(30)).text() == "orders.eu"
            assert [message.text() for message in await everything.take(1)] == ["orders.eu"]
            assert [(await everything.next(30)).text() for _ in range(2)] == ["orders.eu.new", "users"]

    run(main())


@pytest.mark.parametrize("gaps", ["yield", "raise", "ignore"])
def test_gaps_come_in_their_place(gaps):
    async def main():
        bus = Bus()
        ann, port = Client(bus.port()), bus.port()
        async with Client(port).subscribe("t", gaps=gaps) as heard:
            await ann.publish("t", 1)
            port.announce_gap("t", MessageId(9, 0, 1), MessageId(9, 0, 2), reason="its holder crashed")
            await ann.publish("t", 2)
            assert (await heard.next(30)).data == 1
            if gaps == "yield":
                gap = await heard.next(30)
                assert isinstance(gap, Gap) and gap.count == 2 and gap.reason == "its holder crashed"
                assert [(run.source, run.first, run.last) for run in gap.missing] == [(9, 1, 1), (9, 2, 2)]
            elif gaps == "raise":
                with pytest.raises(Missed) as caught:
                    await heard.next(30)
                assert isinstance(caught.value.args[1], Gap)
            assert (await heard.next(30)).data == 2

    run(main())


def test_a_function_is_called_for_each_batch_and_what_it_raises_hurts_nobody_else():
    async def main():
        bus = Bus()
        ann, port = Client(bus.port()), bus.port()
        bob = Client(port)
        complaints, heard, gaps = [], [], []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        bob.subscribe("t", on_batch=lambda batch: 1 // 0)
        good = bob.subscribe("t", on_batch=lambda batch: heard.extend(batch.payloads), on_gap=gaps.append)
        await good.ready()
        await ann.publish_batch("t", [b"a", b"b"])
        port.announce_gap("t")
        assert heard == [b"a", b"b"] and len(gaps) == 1
        assert isinstance(complaints[0]["exception"], ZeroDivisionError)
        good.close()
        await ann.publish("t", b"c")
        assert heard == [b"a", b"b"]

    run(main())


def test_questions_are_answered():
    async def main():
        ann, bob = pair()

        async def double(message: Message):
            await asyncio.sleep(0)
            return message.json() * 2

        async with bob.serve("double", double), bob.serve("fail", lambda message: 1 // 0):
            assert (await ann.request("double", 21)).data == 42
            answers = await asyncio.gather(*(ann.request("double", number) for number in range(20)))
            assert [answer.data for answer in answers] == [2 * number for number in range(20)]
            with pytest.raises(RequestFailed, match="ZeroDivisionError"):
                await ann.request("fail", 1)
            await ann.publish("double", "not a request: ignored")
            assert (await ann.request("double", 1)).data == 2
        with pytest.raises(NoResponder, match="double: nobody is subscribed"):
            await ann.request("double", 1, timeout=600)

    run(main())


def test_a_question_that_nobody_answers_says_whether_it_was_asked():
    async def main():
        ann, bob = pair()
        async with bob.subscribe("silence"):
            with pytest.raises(TimeoutError, match=r"silence: no answer in 0\.02 s; it was asked, and may"):
                await ann.request("silence", 1, timeout=0.02)
        ann._port.open_room.clear()
        with pytest.raises(TimeoutError, match=r"silence: no answer in 0\.02 s; nothing was asked"):
            await ann.request("silence", 1, timeout=0.02)

    run(main())


def test_several_requests_at_a_time():
    async def main():
        ann, bob = pair()
        inside, most = 0, 0
        gate = asyncio.Event()

        async def slow(message: Message):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            if inside == 3:
                gate.set()
            await gate.wait()
            inside -= 1
            return message.json()

        async with bob.serve("slow", slow, concurrency=3):
            answers = await asyncio.gather(*(ann.request("slow", number, timeout=60) for number in range(10)))
            assert [answer.data for answer in answers] == list(range(10)) and most == 3
        with pytest.raises(BadInput, match="at least one request"):
            bob.serve("slow", slow, concurrency=0)

    run(main())


def test_a_service_that_loses_its_subscription_says_so():
    async def main():
        port = Bus().port()
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with Client(port).serve("double", lambda message: message.json() * 2):
            port.lose(OutcomeUnknown("the node is gone"))
            await until(lambda: told)
        assert "the service on double ended" in told[0]["message"]
        assert "the node is gone" in str(told[0]["exception"])

    run(main())


def test_a_message_can_be_answered_where_it_is_read():
    async def main():
        ann, bob = pair()
        async with bob.subscribe("ask", gaps="ignore") as asked:
            answer = asyncio.create_task(ann.request("ask", "how are you?"))
            question = await asked.next(30)
            await question.reply("well")
            assert (await answer).data == "well"
            await ann.publish("ask", "just saying")
            with pytest.raises(BadInput, match="not a request"):
                await (await asked.next(30)).reply("what?")

    run(main())


def test_nobody_makes_others_publish_outside_of_inboxes():
    """A service answers with its own permissions, where the question says: that must not be just anywhere."""

    async def main():
        ann, bob = pair()
        async with bob.serve("ask", lambda message: message.data), ann.subscribe(">") as heard:
            await ann.publish("ask", "launch", headers={"reply-to": "orders.secret", "correlation": "1"})
            assert (await heard.next(30)).topic == "ask"
            assert (await ann.request("ask", "who is there?")).data == "who is there?"
            assert (await heard.next(30)).topic == "ask"
            with pytest.raises(TimeoutError):
                await heard.next(0.02)
        message = Message(Origin("ask", 0, 0, bob), 1, seal("x", {"reply-to": "orders.secret"}))
        with pytest.raises(BadInput, match="names no inbox"):
            await message.reply("launched")

    run(main())


def test_who_was_not_asked_cannot_answer():
    """It may know the inbox from an earlier question; not what the next one is called."""

    async def main():
        ann, bob = pair()
        async with bob.subscribe("ask", gaps="ignore") as asked:
            names = []
            for _ in range(3):
                question = asyncio.create_task(ann.request("ask", "?"))
                message = await asked.next(30)
                names.append(message.headers["correlation"])
                await message.reply("!")
                await question
        assert len(set(names)) == 3 and all(len(name) >= 16 for name in names)

    run(main())


def test_closing_ends_subscriptions_and_questions():
    async def main():
        ann, bob = pair()
        heard = ann.subscribe("t")
        question = asyncio.create_task(ann.request("nobody", 1))
        await heard.ready()
        await until(lambda: ann._requests._open)
        await ann.close()
        await ann.close()
        with pytest.raises(Closed):
            await question
        assert [event async for event in heard] == []
        with pytest.raises(Closed):
            await ann.publish("t", 1)
        with pytest.raises(Closed):
            async with ann:
                pass
        await bob.close()

    run(main())
