"""The blocking facade, against a door for clients that runs in a thread of its own."""

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cubecast.api import sync
from cubecast.api.client import Client
from cubecast.api.connect import connect
from cubecast.api.message import Message
from cubecast.api.requests import Service
from cubecast.api.subscription import Subscription
from cubecast.errors import BadInput, Closed, NoResponder, RequestFailed, Unreachable
from support.bus import Bus
from support.gateways import Door
from support.running import run


@contextmanager
def door() -> Iterator[str]:
    """The address of a node that runs beside the test."""
    thread = sync.LoopThread()
    opened = []

    async def open_it() -> str:
        opened.append(Door(Bus()))
        return str(await opened[0].open())

    async def close_it() -> None:
        opened[0].kill()

    try:
        yield thread.run(open_it(), 30)
        thread.run(close_it(), 30)
    finally:
        thread.stop()


def test_publish_and_read_without_an_event_loop():
    with door() as address, sync.connect(address) as ann, sync.connect(address) as bob:
        with bob.subscribe("t") as heard:
            ann.publish("t", "one", headers={"a": "b"}, wait="stable", timeout=30)
            ann.publish_batch("t", range(2000))
            first = heard.next(30)
            assert isinstance(first, Message) and first.data == "one" and first.headers == {"a": "b"}
            seen = []
            for event in heard:
                seen.append(event.data)
                if len(seen) == 2000:
                    break
            assert seen == list(range(2000))
            with pytest.raises(TimeoutError):
                heard.next(0.01)
        assert list(heard) == []
        assert ann.status()["node"] == 0


def test_questions_from_and_to_threads():
    with door() as address, sync.connect(address) as ann, sync.connect(address) as bob:
        with bob.subscribe("double", gaps="ignore") as asked:

            def answer() -> None:
                for message in asked:
                    bob.reply(message, message.data * 2)

            responder = threading.Thread(target=answer)
            responder.start()
            assert [ann.request("double", number).data for number in range(5)] == [0, 2, 4, 6, 8]
        responder.join(30)
        assert not responder.is_alive()
        with pytest.raises(NoResponder):
            ann.request("double", 1, timeout=600)


def test_a_closed_client_says_so_and_its_thread_is_gone():
    with door() as address:
        before = threading.active_count()
        client = sync.connect(address)
        heard = client.subscribe("t", on_batch=lambda batch: None)
        heard.ready(30)
        client.close()
        client.close()
        assert threading.active_count() == before
        with pytest.raises(Closed):
            client.publish("t", 1)
        with pytest.raises(Closed):
            heard.ready()


def test_bad_input_is_raised_where_it_was_given():
    with pytest.raises(BadInput, match="HOST:PORT"):
        sync.connect("nowhere")
    before = threading.active_count()
    with pytest.raises(Unreachable):
        sync.connect("127.0.0.1:1", timeout=0.05)
    assert threading.active_count() == before
    with door() as address, sync.connect(address) as client, pytest.raises(BadInput):
        client.publish("a..b", 1)


def test_connect_can_be_entered_or_awaited():
    async def main():
        opened = Door(Bus())
        address = str(await opened.open())
        async with connect(address) as ann:
            bob = await connect(address, name="bob")
            async with bob.serve("fail", lambda message: [][0]):
                with pytest.raises(RequestFailed, match="IndexError"):
                    await ann.request("fail", None)
            await bob.close()
        await asyncio.sleep(0)
        opened.kill()

    run(main())


def test_what_another_thread_took_is_not_missed():
    class Shared:
        fetched = 0

        async def take(self, most: int, timeout: float | None) -> list[str]:
            self.fetched += 1
            return ["event"] if self.fetched > 1 else []  # the first was taken before its fetcher looked

    thread = sync.LoopThread()
    try:
        assert sync.SyncSubscription(thread, Shared()).next(30) == "event"
    finally:
        thread.stop()


def test_sync_has_what_async_has():
    """By name: every public method of the asynchronous classes, and every argument of theirs."""
    pairs = [
        (Client, sync.SyncClient, {"ask", "serve"}),
        (Subscription, sync.SyncSubscription, set()),
        (Service, sync.SyncService, set()),
    ]
    for there, here, others in pairs:
        names = {name for name in vars(there) if not name.startswith("_")} - {"ask"}
        assert names and names <= set(vars(here)), (here, names - set(vars(here)))
        for name in names - others:
            if callable(getattr(there, name)):
                wanted, given = (set(inspect.signature(getattr(kind, name)).parameters) for kind in (there, here))
                assert wanted <= given or "options" in given, (name, wanted - given)
    assert set(inspect.signature(connect).parameters) == set(inspect.signature(sync.connect).parameters)
    done = subprocess.run(
        [sys.executable, "-c", "import cubecast.sync; print(cubecast.sync.connect.__name__)"], capture_output=True
    )
    assert done.stdout == b"connect\n"


def test_services_in_threads():
    with door() as address, sync.connect(address) as ann, sync.connect(address) as bob:
        together = threading.Barrier(2, timeout=60)

        def meet(message: Message) -> int:
            together.wait()  # nobody passes alone: two are answered at a time, and both may block
            return message.data + 1

        with bob.serve("meet", meet, concurrency=2):
            answers = [threading.Thread(target=ann.request, args=("meet", 1), kwargs={"timeout": 60}) for _ in range(2)]
            for one in answers:
                one.start()
            for one in answers:
                one.join(60)
            assert not any(one.is_alive() for one in answers) and not together.broken
        with pytest.raises(NoResponder):
            ann.request("meet", 1, timeout=600)


def test_batches_and_handfuls():
    with door() as address, sync.connect(address) as ann, sync.connect(address) as bob:
        with bob.subscribe("t") as heard:
            ann.publish_batch("t", [b"%d" % number for number in range(10)])
            ann.stable("t", timeout=60)
            seen = [event.data for event in heard.take(3, 60)]
            for batch in heard.batches():
                seen += batch.payloads
                if len(seen) == 10:
                    break
            assert seen == [b"%d" % number for number in range(10)]
            ann.publish_nowait("t", "last")
            assert heard.next(60).data == "last"
            with pytest.raises(TimeoutError, match=r"nothing came on t for 0\.01 s"):
                heard.take(1, 0.01)
            with pytest.raises(TimeoutError, match=r"the subscription to t did not end in 0\.01 s"):
                heard.ended(0.01)
            heard.live(60)
            assert repr(heard) == "<SyncSubscription to 't', 0 bytes to read>" and not heard.closed
        heard.ended(60)
        assert repr(bob).startswith("<SyncClient of node 0 at ") and heard.closed
