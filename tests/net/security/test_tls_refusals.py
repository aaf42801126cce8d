"""Who has no good certificate does not get in, is told why, and nobody else notices."""

import asyncio
import ssl
from dataclasses import replace

import pytest

from cubecast.errors import BadInput, Unreachable
from cubecast.net.links.handshake import MAGIC, VERSION, Greeting, JoinRequest, Place, Refused, decode_answer, encode
from cubecast.net.links.login import Login
from cubecast.net.links.tls import client_context
from cubecast.net.live_node import LiveNode
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import TlsSettings
from support.certificates import certificates
from support.running import run
from support.secured import Raw, refused, secured

MADE = certificates
THEIR_CA = {"believes": "theirs"}
NOT_BELIEVED = "does not believe whoever signed our certificate"


def _client(name="mallory", **kind):
    return MADE().make(name, is_client=True, **kind)


def _node(name="rogue", nodes=(None,), **kind):
    return MADE().make(name, nodes, **kind)


CLIENTS = {
    "no TLS": (lambda: None, "speaks TLS only"),
    "believes another authority": (
        lambda: TlsSettings(ca=_client(believes="theirs").ca),
        "its certificate is not valid: self-signed certificate in certificate chain",
    ),
    "certificate of another authority": (lambda: _client(signed_by="theirs"), NOT_BELIEVED),
    "expired certificate": (lambda: _client(begins_in_days=-40), "our certificate has expired"),
    "certificate not valid yet": (lambda: _client(begins_in_days=10), "our certificate is not valid"),
    "certificate of another cluster": (lambda: _client(cluster="other"), "your certificate is for client"),
    "certificate the policy does not know": (lambda: _client(), "nobody is known here by a certificate for 'mallory'"),
    "certificate of a node of another cluster": (lambda: _node(cluster="other"), "your certificate is for node any of"),
    "no certificate and no token": (lambda: MADE().anybody, "asks for a token, a key or a client certificate"),
}


@pytest.mark.parametrize("case", CLIENTS)
def test_a_client_is_refused(case):
    async def scenario():
        async with secured() as scene:
            settings, reason = CLIENTS[case]
            assert reason in await refused(scene.address, Login(tls=settings()))

    run(scenario())


SERVERS = {
    "expired": ({"begins_in_days": -40}, "certificate has expired"),
    "not valid yet": ({"begins_in_days": 10}, "certificate is not yet valid"),
    "for another host": ({"hosts": ("elsewhere.example",)}, "IP address mismatch"),
    "of another authority": ({"signed_by": "theirs"}, "certificate is not valid"),
    "of another cluster": ({"cluster": "other"}, "not for a node of cluster 'cubecast'"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_a_client_does_not_talk_to_a_false_node(case):
    async def scenario():
        kind, reason = SERVERS[case]
        node = LiveNode(NodeConfig(tls=_node(**kind), cluster=kind.get("cluster", "cubecast")))
        await node.start()
        assert reason in await refused(str(node.address), Login(tls=MADE().anybody, token="kept to itself"))
        assert not len(node.clients)
        await node.close()

    run(scenario())


NODES = {
    "no TLS": (lambda: None, {}, "speaks TLS only"),
    "certificate of another authority": (lambda: _node(signed_by="theirs"), {}, NOT_BELIEVED),
    "believes another authority": (lambda: _node(believes="theirs"), {}, "self-signed certificate in"),
    "expired": (lambda: _node(begins_in_days=-40), {}, "our certificate has expired"),
    "not valid yet": (lambda: _node(begins_in_days=10), {}, "our certificate is not valid"),
}


@pytest.mark.parametrize("case", NODES)
def test_a_node_does_not_join(case):
    async def scenario():
        async with secured() as scene:
            settings, options, reason = NODES[case]
            node = LiveNode(NodeConfig(tls=settings(), join=(scene.at,), **options))
            with pytest.raises(BadInput, match=reason):
                await node.start()

    run(scenario())


async def _answer(at, settings, opening):
    """What a node says to this opening."""
    context = client_context(settings) if settings is not None else None
    caller = await Raw.open(at, context)
    caller.send(encode(opening))
    frame = await caller.frame()
    caller.close()
    return None if frame is None else decode_answer(frame)


def _joins(wanted=None, cluster="cubecast"):
    return JoinRequest(MAGIC, VERSION, VERSION, cluster, b"instance", wanted)


def _greets(node):
    return Greeting(MAGIC, VERSION, VERSION, "cubecast", Place(node, 0, b"instance", "127.0.0.1:1"))


OPENINGS = {
    "a join without a certificate": (lambda: MADE().anybody, _joins(), "you showed none"),
    "a greeting without a certificate": (lambda: MADE().anybody, _greets(3), "you showed none"),
    "a client that joins": (lambda: _client(), _joins(), "your certificate is for client mallory"),
    "a client that greets": (lambda: _client(), _greets(3), "your certificate is for client mallory"),
    "a node of another cluster that joins": (lambda: _node(cluster="other"), _joins(), "of cluster 'other'"),
    "a node of another cluster that greets": (lambda: _node(cluster="other"), _greets(3), "of cluster 'other'"),
    "a node that names another cluster": (
        lambda: _node(),
        _joins(cluster="other"),
        "does not belong to cluster 'other'",
    ),
    "node 3 that joins as 5": (lambda: _node(nodes=(3,)), _joins(5), "you may not be node 5"),
    "node 3 that greets as 5": (lambda: _node(nodes=(3,)), _greets(5), "you may not be node 5"),
    "node 3 that greets as the one it calls": (lambda: _node(nodes=(3,)), _greets(0), "you may not be node 0"),
    "one of several that does not say which": (lambda: _node(nodes=(3, 4)), _joins(), "say with --id which"),
}


@pytest.mark.parametrize("case", OPENINGS)
def test_a_certificate_says_who_may_be_which_node(case):
    async def scenario():
        async with secured() as scene:
            settings, opening, reason = OPENINGS[case]
            answer = await _answer(scene.at, settings(), opening)
            assert isinstance(answer, Refused) and reason in answer.reason and not answer.retry

    run(scenario())


def test_a_node_that_answers_under_a_forged_id_is_not_believed():
    """Its certificate is for node 3; it says to be node 0, where the founder of the cluster should be."""

    async def scenario():
        forger = LiveNode(NodeConfig(tls=_node(), dimension=3))
        await forger.start()
        forger.security.tls._loaded = replace(forger.security.tls._loaded, server=_server_of(_node(nodes=(3,))))
        victim = LiveNode(NodeConfig(tls=_node("victim"), join=(forger.address,)))
        with pytest.raises(BadInput, match=r"certificate is for node 3 .* but it calls itself node 0"):
            await victim.start()
        await forger.close()

    run(scenario())


def _server_of(settings):
    return LiveNode(NodeConfig(tls=settings)).security.tls.server


REVOKED = {"a client": lambda: _client("revoked-client"), "a node": lambda: _node("revoked-node")}


@pytest.mark.parametrize("case", REVOKED)
def test_a_revoked_certificate_is_refused(case):
    async def scenario():
        settings = REVOKED[case]()
        believed = replace(MADE().node, revoked=MADE().revoked(settings))
        async with secured(tls=believed) as scene:
            assert "our certificate is revoked" in await refused(scene.address, Login(tls=settings))

    run(scenario())


def _old(context):
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_tls_before_1_3_is_refused(caplog):
    async def scenario():
        async with secured() as scene:
            with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
                await Raw.open(scene.at, _old(client_context(MADE().anybody)))
        assert "it speaks no TLS as new as 1.3" in caplog.text

    with caplog.at_level("INFO"):
        run(scenario())


NOT_TLS = {
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(64),
    "a greeting in the clear": b"\x00\x00\x00\x05\xff\xff\xff\xfa\x00\x00\x00\x00hello",
    "one byte": b"x",
}


@pytest.mark.parametrize("case", NOT_TLS)
def test_what_is_no_tls_is_told_so_in_the_clear(case, caplog):
    async def scenario():
        async with secured() as scene:
            caller = await Raw.open(scene.at)
            caller.writer.write(NOT_TLS[case])
            answer = decode_answer(await caller.frame())
            assert isinstance(answer, Refused) and "speaks TLS only" in answer.reason
            await caller.closed()
            caller.close()
        assert "it does not speak TLS" in caplog.text

    with caplog.at_level("INFO"):
        run(scenario())


def test_a_broken_handshake_is_refused(caplog):
    async def scenario():
        async with secured() as scene:
            caller = await Raw.open(scene.at)
            caller.writer.write(b"\x16\x03\x01\x00\x05hello" * 3)
            async with asyncio.timeout(30):
                while await caller.reader.read(100):
                    pass
            caller.close()
        assert "a caller was not let in: TLS failed" in caplog.text

    with caplog.at_level("INFO"):
        run(scenario())


def test_tls_is_refused_where_it_is_not_spoken(caplog):
    async def scenario():
        async with secured(tls=False) as scene:
            assert "does it speak TLS?" in await refused(scene.address, Login(tls=MADE().anybody))
            node = LiveNode(NodeConfig(tls=_node(), join=(scene.at,)))
            with pytest.raises(Unreachable, match=r"does it speak TLS\?$"):
                await node.start()
        assert "it speaks TLS, which is not spoken here" in caplog.text

    with caplog.at_level("INFO"):
        run(scenario())


def _files(**others):
    return lambda: replace(_node(), **{name: make() for name, make in others.items()})


STARTS = {
    "the key of another certificate": (_files(key=lambda: _node("other").key), {}, "is not the key of the certificate"),
    "a certificate that is not there": (_files(cert=lambda: _node().cert.with_name("no")), {}, "cannot read .*no:"),
    "an authority that is not there": (_files(ca=lambda: _node().ca.with_name("no")), {}, "cannot read .*no:"),
    "the certificate of a client": (lambda: _client("alice"), {}, "not the certificate of a node"),
    "the certificate of another cluster": (lambda: _node(cluster="other"), {}, "not the certificate of a node"),
    "an id that it does not name": (lambda: _node(nodes=(3,)), {"node": 5}, "for node 3 .* be node 5"),
    "no certificate": (lambda: MADE().anybody, {}, "needs a certificate"),
}


@pytest.mark.parametrize("case", STARTS)
def test_a_node_does_not_start_with_bad_files(case):
    settings, options, reason = STARTS[case]
    with pytest.raises(BadInput, match=reason):
        asyncio.run(_make(NodeConfig(tls=settings(), **options)))


async def _make(config):
    return LiveNode(config)
