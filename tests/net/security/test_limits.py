"""Nobody takes more than a share, least of all those who have not said who they are."""

import asyncio
import logging
import socket
import struct
from contextlib import AsyncExitStack, suppress

import pytest

from cubecast.api.connect import connect
from cubecast.checksums import checksum
from cubecast.errors import BadInput, CubecastError
from cubecast.net.gateway.messages import Publish, StatusRequest, Subscribe, Unsubscribe
from cubecast.net.gateway.messages import encode as said
from cubecast.net.links import listener
from cubecast.net.links.framing import HEADER, framed
from cubecast.net.links.handshake import MAGIC, VERSION, Accepted, ClientGreeting, decode_answer, encode
from cubecast.net.links.listener import UnauthenticatedCallers
from cubecast.net.links.login import Login
from cubecast.net.links.tls import client_context
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.security.limits import ADDRESSES_REMEMBERED, Bucket, Handshakes
from cubecast.net.settings.fields import MAX_FRAME
from cubecast.net.settings.security import Limits
from support.certificates import certificates
from support.running import run, until
from support.secured import Raw, refused, secured

TOKEN = new_token("greedy")
RULES = f"""[principals.greedy]
tokens = ["{digest(TOKEN, "cubecast")}"]
publish = ["g.>"]
subscribe = ["g.>"]
admin = [">"]
[anonymous]
"""
LOGIN = Login(token=TOKEN)
GREETING = encode(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "greedy", TOKEN))


async def _in(scene):
    """Let in, on a connection on which anything may be said."""
    caller = await Raw.open(scene.at)
    caller.send(GREETING)
    assert isinstance(decode_answer(await caller.frame()), Accepted)
    return caller


BEFORE = {
    "a frame as large as any": framed(bytes(MAX_FRAME)),
    "a frame just too large": framed(bytes(Limits().first_frame + 1)),
    "the beginning of one": framed(bytes(MAX_FRAME))[:100],
    "a length that lies": HEADER.pack(16, 16 ^ 0xFFFFFFFE, 0),
    "a damaged frame": framed(b"greeting")[:-1] + b"x",
    "an empty frame": HEADER.pack(0, 0xFFFFFFFF, checksum(b"")),
    "a greeting with too long a name": framed(
        encode(ClientGreeting(MAGIC, VERSION, VERSION, "cubecast", "n" * (1 << 15), TOKEN))
    ),
    "a deep structure": framed(b"\x91" * 10_000),
    "a greeting with a deep structure behind it": framed(b"\x99" + GREETING[1:] + b"\x91" * 10_000 + b"\xc0"),
}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("case", BEFORE)
def test_before_a_greeting_little_may_be_said(case, tls, caplog):
    """It is cut off for what it said, long before its time is over."""

    async def scenario():
        async with secured(RULES, tls=tls, limits=Limits(greeting_time=600.0)) as scene:
            caller = await Raw.open(scene.at, client_context(certificates().anybody) if tls else None)
            caller.writer.write(BEFORE[case])
            with suppress(ConnectionError):
                await caller.closed()
            caller.close()

    run(scenario())
    assert not [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR]


AFTER = {
    "a frame that is too large": lambda: framed(bytes(MAX_FRAME + 1))[:64],
    "no message": lambda: framed(b"nonsense"),
    "a second greeting": lambda: framed(GREETING),
    "a publication of nothing": lambda: framed(said(Publish(1, "g.a", []))),
    "more than the credit": lambda: b"".join(framed(said(Publish(n, "g.a", [bytes(1 << 20)]))) for n in range(1, 5)),
    "a publication said twice": lambda: 2 * framed(said(Publish(1, "h.x", [b"once"]))),
    "a publication out of turn": lambda: framed(said(Publish(7, "h.x", [b"late"]))),
}


@pytest.mark.parametrize("case", AFTER)
def test_after_it_what_no_client_says_ends_the_connection(case):
    async def scenario():
        async with secured(RULES, tls=False) as scene:
            scene.node.clients.limits = Limits(messages_per_second=0.1)
            caller = await _in(scene)
            caller.writer.write(AFTER[case]())
            with suppress(ConnectionError):
                await caller.closed()
            caller.close()
            await until(lambda: len(scene.node.clients) == 1)

    run(scenario())


def _arrivals(scene):
    """Whoever is taken for unauthenticated from now on, even if not for long."""
    unauthenticated, arrived = scene.node.reception._unauthenticated, []
    arrive = unauthenticated.arrive

    def noted(*arguments):
        arrived.append(arguments)
        return arrive(*arguments)

    unauthenticated.arrive = noted
    return arrived


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_silence_has_an_end(tls):
    """Connected, and nothing more: not even the TLS handshake."""

    async def scenario():
        async with secured(RULES, tls=tls, limits=Limits(greeting_time=0.2)) as scene:
            arrived = _arrivals(scene)
            callers = [await Raw.open(scene.at) for _ in range(3)]
            await until(lambda: len(arrived) == 3)
            for caller in callers:
                await caller.closed()
                caller.close()
            await until(lambda: scene.node.reception.unauthenticated == 0)

    run(scenario())


def test_who_goes_away_before_the_handshake_leaves_nothing_behind(caplog):
    """Reset rather than closed: the node finds no first byte, but an error."""

    async def scenario():
        async with secured(RULES, limits=Limits(greeting_time=600.0)) as scene:
            for _ in range(3):
                with socket.create_connection((scene.at.host, scene.at.port)) as caller:
                    await until(lambda: scene.node.reception.unauthenticated == 1)
                    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                await until(lambda: scene.node.reception.unauthenticated == 0)

    run(scenario())
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_a_handshake_without_sockets_to_spare_leaves_nothing_behind(monkeypatch):
    class Spent:
        def __init__(self, caller: object) -> None:
            raise OSError(24, "Too many open files")

    async def scenario():
        async with secured(RULES, limits=Limits(greeting_time=600.0)) as scene:
            with monkeypatch.context() as patch:
                patch.setattr(listener, "Words", Spent)
                caller = await Raw.open(scene.at)
                await caller.closed()
                caller.close()
            await until(lambda: scene.node.reception.unauthenticated == 0)

    run(scenario())


def test_half_a_handshake_has_an_end():
    async def scenario():
        async with secured(RULES, limits=Limits(greeting_time=0.3)) as scene:
            arrived = _arrivals(scene)
            caller = await Raw.open(scene.at)
            caller.writer.write(b"\x16\x03\x01\x02\x00\x01")
            await until(lambda: arrived)
            await caller.closed()
            caller.close()

    run(scenario())


def test_a_handshake_without_a_greeting_has_an_end():
    async def scenario():
        async with secured(RULES, limits=Limits(greeting_time=2.0)) as scene:  # for the handshake, too
            arrived = _arrivals(scene)
            caller = await Raw.open(scene.at, client_context(certificates().anybody))
            assert arrived
            await caller.closed()
            caller.close()

    run(scenario())


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_flood_of_unauthenticated_callers_keeps_nobody_out(tls):
    async def scenario():
        async with secured(RULES, tls=tls, limits=Limits(unauthenticated=20)) as scene:
            flood = [await Raw.open(scene.at) for _ in range(60)]
            login = Login(tls=certificates().anybody if tls else None, token=TOKEN)
            async with connect(scene.address, login=login) as client:
                await client.status()
            assert scene.node.reception.unauthenticated <= 20
            for caller in flood:
                caller.close()
            await until(lambda: scene.node.reception.unauthenticated == 0)

    run(scenario())


def test_who_begins_too_many_handshakes_waits_and_then_is_sent_away(caplog):
    async def scenario():
        limits = Limits(handshakes_per_second=2.0, burst=1.5, greeting_time=1.0)
        async with secured(RULES, limits=limits) as scene:
            with caplog.at_level(logging.INFO):
                flood = []
                for _ in range(100):
                    flood.append(await Raw.open(scene.at))
                    flood[-1].writer.write(b"\x16\x03\x01\x02\x00\x01")
                for caller in flood:
                    await caller.closed()
                    caller.close()
            await until(lambda: scene.node.reception.unauthenticated == 0)
            sent_away = [line for line in caplog.messages if "too many handshakes from 127.0.0.1" in line]
            assert 0 < len(sent_away) < 98, "the first ones were not, and the next ones waited"
            login = Login(tls=certificates().anybody, token=TOKEN)
            async with connect(scene.address, login=login, timeout=30) as client:
                await client.status()

    run(scenario())


def test_each_address_has_handshakes_of_its_own():
    limits, handshakes = Limits(handshakes_per_second=2.0, greeting_time=2.0), Handshakes()
    waits = [handshakes.wait("192.0.2.1", limits, 0.0) for _ in range(9)]
    assert waits[:2] == [0.0, 0.0] and waits[2] == pytest.approx(0.0, abs=0.01)
    assert waits[2:6] == sorted(waits[2:6]) and waits[-1] is None, "in turn, and not for ever"
    assert handshakes.wait("198.51.100.7", limits, 0.0) == 0.0
    assert handshakes.wait("192.0.2.1", limits, 10.0) == 0.0, "what was too much is forgotten in time"
    assert Handshakes().wait("192.0.2.1", Limits(handshakes_per_second=0), 0.0) == 0.0
    for number in range(2 * ADDRESSES_REMEMBERED):
        handshakes.wait(f"2001:db8::{number:x}", limits, 10.0)
    assert len(handshakes) == ADDRESSES_REMEMBERED


def test_a_crowd_from_one_address_pushes_out_only_its_own():
    async def scenario():
        gone = []
        unauthenticated = UnauthenticatedCallers(Limits(unauthenticated=10))
        patient = unauthenticated.arrive("192.0.2.1", lambda _: gone.append("patient"))
        for number in range(100):
            unauthenticated.arrive("198.51.100.7", lambda _, number=number: gone.append(number))
        assert len(unauthenticated) == 10 and gone == list(range(91)), "the oldest of the crowd, one after the other"
        assert unauthenticated.leave(patient) and not unauthenticated.leave(patient)
        unauthenticated.abort_all("the test is over")

    run(scenario())


COUNTED = {
    "in all": ({"max_clients": 2}, LOGIN, "serves 2 clients already"),
    "of an address": ({"limits": Limits(clients_per_address=2)}, Login(), "serves 2 clients at 127.0.0.1 already"),
    "of a principal": (
        {"limits": Limits(clients_per_principal=1)},
        LOGIN,
        "greedy has 1 connections to this node already",
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_clients_are_counted(case):
    async def scenario():
        settings, login, reason = COUNTED[case]
        async with secured(RULES, tls=False, **settings) as scene:
            client = await connect(scene.address, login=login)
            assert reason in await refused(scene.address, login)
            await client.close()
            await until(lambda: len(scene.node.clients) == 1)
            async with connect(scene.address, login=login):
                pass  # there is room again

    run(scenario())


def test_topics_that_nobody_used_before_are_counted():
    """Across connections; those that are there already may be used by everybody."""

    async def scenario():
        async with secured(RULES, tls=False, limits=Limits(topics_per_principal=3)) as scene:
            for number in (1, 2):
                async with connect(scene.address, login=LOGIN) as client:
                    await client.publish(f"g.{number}", "x", wait="stable", timeout=30)
                    await anext(aiter(scene.sees))
                    await client.publish("g.1", "again", wait="stable", timeout=30)
                    await anext(aiter(scene.sees))
            async with connect(scene.address, login=LOGIN) as client:
                await client.subscribe("g.3").ready()
                with pytest.raises(BadInput, match="greedy brought up 3 topics at this node"):
                    await client.publish("g.4", "x", wait="stable", timeout=30)
                with pytest.raises(BadInput, match=r"may not bring up g\.5"):
                    await client.subscribe("g.5").ready()
                await client.subscribe("g.*").ready()
                await scene.honest.publish("g.6", "x", wait="stable", timeout=30)
                await anext(aiter(scene.sees))
                await client.publish("g.6", "y", wait="stable", timeout=30)
                await anext(aiter(scene.sees))

    run(scenario())


def test_subscriptions_are_counted():
    async def scenario():
        limits = Limits(subscriptions=3)
        async with secured(RULES, tls=False, limits=limits) as scene, connect(scene.address, login=LOGIN) as client:
            async with AsyncExitStack() as stack:
                for number in range(3):
                    await (await stack.enter_async_context(client.subscribe(f"g.{number}"))).ready()
                with pytest.raises(CubecastError, match="may have 3 subscriptions"):
                    await client.subscribe("g.more").ready()
            async with client.subscribe("g.again") as again:
                await again.ready()

    run(scenario())


FLOODS = {
    "of questions": lambda n: [StatusRequest(number) for number in range(n)],
    "of subscriptions": lambda n: [Subscribe(number, f"g.{number}") for number in range(n)],
    "of ends": lambda n: [Unsubscribe(number) for number in range(n)],
}


@pytest.mark.parametrize("case", FLOODS)
def test_a_flood_of_requests_is_cut_off(case, caplog):
    async def scenario():
        async with secured(RULES, tls=False, limits=Limits(requests_per_second=50)) as scene:
            caller = await _in(scene)
            caller.send(*map(said, FLOODS[case](200)))
            with suppress(ConnectionError):
                await caller.closed()
            await until(lambda: len(scene.node.clients) == 1)
        assert "asks more often than a client may" in caplog.text

    with caplog.at_level("INFO"):
        run(scenario())


RATES = {
    "messages": (Limits(messages_per_second=100, burst=0.1), 1, 30),
    "bytes": (Limits(bytes_per_second=100_000, burst=0.1), 900, 30),
}


@pytest.mark.parametrize("case", RATES)
def test_who_publishes_too_fast_is_held_back_and_nobody_else(case):
    async def scenario():
        limits, size, count = RATES[case]
        loop = asyncio.get_running_loop()
        async with secured(RULES, tls=False, limits=limits) as scene, connect(scene.address, login=LOGIN) as client:
            began = loop.time()
            for _ in range(count):
                await client.publish("g.a", bytes([1]) * size)
                await asyncio.sleep(0)  # each in a frame of its own
            waiting = asyncio.ensure_future(client.stable("g.a"))
            await scene.honest.publish("h", "in between", wait="stable")
            others = loop.time() - began
            await waiting
            took = loop.time() - began
            assert took > 0.15 and others < took, "30 at 100 a second, or 27 kB at 100 kB/s, the first 10 at once"
            seen = [await anext(aiter(scene.sees)) for _ in range(count + 1)]
            assert [one.principal for one in seen].count("greedy") == count, "late, but all of them"

    run(scenario())


def test_a_bucket_gives_so_much_a_second():
    bucket = Bucket(10.0, 1.0, 0.0)
    for _ in range(10):
        assert bucket.wait(0.0) == 0.0
        bucket.take(1)
    assert bucket.wait(0.0) == pytest.approx(0.0, abs=0.01) and bucket.wait(0.0) > 0
    assert bucket.wait(0.05) == 0.0
    bucket.take(20)
    assert bucket.wait(0.05) == pytest.approx(1.95, abs=0.01)
    assert bucket.wait(100.0) == 0.0
