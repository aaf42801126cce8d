"""The same policy decides about requests over HTTP, and the same certificate serves them."""

import aiohttp
import pytest

from cubecast.net.addresses import Address
from cubecast.net.security.tls import client_context
from cubecast.net.security.tokens import digest, new_token
from cubecast.net.web.server import WebServer
from support.certificates import certificates
from support.running import run
from support.secured import secured

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
            security.guard(scene.node.web.gate)
            await scene.node.web.open()
            assert (await _get(scene, "/healthz", None, tls))[0] == 200
            assert (await _get(scene, "/nowhere", None, tls))[0] == 401
            status, _ = await _get(scene, "/nowhere", f"Bearer {scene.token}", tls)
            assert status == 404, "let in, and nothing there"

    run(scenario())
