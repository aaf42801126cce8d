"""The same policy decides about requests over HTTP, and the same certificate serves them."""

import logging
from contextlib import asynccontextmanager

import aiohttp
import pytest

from cubecast.addresses import Address
from cubecast.net.links.tls import client_context
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.settings.security import Limits
from cubecast.net.web.server import WebServer
from support.certificates import certificates
from support.running import run, until
from support.secured import Raw, secured

TOKEN = new_token("looker")
RULES = f'[principals.looker]\ntokens = ["{digest(TOKEN, "cubecast")}"]\npublish = [">"]\nsubscribe = [">"]\n'
REQUESTS = {
    "nothing": (None, "asks for a token"),
    "a wrong token": (f"Bearer {new_token('looker')}", "not valid here"),
    "a cut token": (f"Bearer {TOKEN[:-2]}", "not valid here"),
    "another scheme": (f"Basic {TOKEN}", "asks for a token"),
    "no token at all": ("Bearer", "asks for a token"),
    "no admin": (f"bearer {TOKEN}", "looker may not look after this node"),
}


async def _get(scene, path, authorization, tls=True):
    web = scene.node.web.address
    headers = {} if authorization is None else {"Authorization": authorization}
    context = client_context(certificates().anybody) if tls else None
    async with aiohttp.ClientSession() as session:
        kind = "https" if tls else "http"
        async with session.get(f"{kind}://{web}{path}", headers=headers, ssl=context or True) as answer:
            return answer.status, await answer.text()


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_is_refused(case):
    async def scenario():
        authorization, reason = REQUESTS[case]
        async with secured(RULES, tls=False, http=Address("127.0.0.1", 0)) as scene:
            status, text = await _get(scene, "/status.json", authorization, tls=False)
            assert status == 401 and reason in text and TOKEN not in text

    run(scenario())


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_admins_are_let_in_and_everybody_is_told_of_the_health(tls):
    async def scenario():
        here = Address("127.0.0.1", 0)
        async with secured(RULES) as scene:
            security = scene.node.security
            assert security.web_tls(here) is None, "for this machine alone"
            context = security.web_tls(Address("192.0.2.1", 443)) if tls else None
            scene.node.web = WebServer(scene.node, here, tls=context)
            await scene.node.web.open()
            assert (await _get(scene, "/healthz", None, tls))[0] == 200
            assert (await _get(scene, "/nowhere", None, tls))[0] == 401
            status, _ = await _get(scene, "/nowhere", f"Bearer {scene.token}", tls)
            assert status == 404, "let in, and nothing there"

    run(scenario())


HALF_A_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01"


@asynccontextmanager
async def pages_over_tls(**limits):
    """A node whose pages would be seen from outside."""
    async with secured(RULES, limits=Limits(**limits)) as scene:
        address = Address("127.0.0.1", 0)
        scene.node.web = WebServer(scene.node, address, tls=scene.node.security.web_tls(Address("192.0.2.1", 443)))
        await scene.node.web.open()
        yield scene


async def half_handshakes(address, many):
    flood = []
    for _ in range(many):
        flood.append(await Raw.open(address))
        flood[-1].writer.write(HALF_A_HANDSHAKE)
    return flood


async def gone(flood):
    for caller in flood:
        await caller.closed()
        caller.close()


def test_handshakes_with_pages_count_like_those_with_the_node(caplog):
    async def scenario():
        async with pages_over_tls(handshakes_per_second=2.0, burst=1.5, greeting_time=1.0) as scene:
            with caplog.at_level(logging.INFO):
                await gone(await half_handshakes(scene.node.web.address, 60))
            sent_away = [line for line in caplog.messages if "too many handshakes from 127.0.0.1" in line]
            assert 0 < len(sent_away) < 58, "the first ones were not, and the next ones waited"
            await until(lambda: not len(scene.node.web.callers.unauthenticated))
            assert (await _get(scene, "/healthz", None))[0] == 200

    run(scenario())


def test_both_doors_count_the_handshakes_of_an_address_together():
    async def scenario():
        async with pages_over_tls(handshakes_per_second=2.0, burst=1.5, greeting_time=1.0) as scene:
            flood = [*await half_handshakes(scene.node.web.address, 2), *await half_handshakes(scene.at, 2)]
            await gone(flood)
            assert len(scene.node.security.handshakes) == 1

    run(scenario())


def test_who_stays_in_the_middle_of_a_handshake_is_unauthenticated_among_few():
    async def scenario():
        async with pages_over_tls(unauthenticated=5, greeting_time=600.0) as scene:
            flood = await half_handshakes(scene.node.web.address, 20)
            await gone(flood[:15])
            assert len(scene.node.web.callers.unauthenticated) == 5
            assert (await _get(scene, "/healthz", None))[0] == 200, "whoever means it pushes one of them out"
            for caller in flood:
                caller.close()
            await until(lambda: not len(scene.node.web.callers.unauthenticated))

    run(scenario())


def test_who_asks_for_a_page_without_tls_is_told():
    async def scenario():
        async with pages_over_tls() as scene:
            status, text = await _get(scene, "/healthz", None, tls=False)
            assert status == 400 and "say https" in text

    run(scenario())
