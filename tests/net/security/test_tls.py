"""TLS between nodes and for clients: what works."""

import asyncio
import logging
import ssl

from cubecast.addresses import Address
from cubecast.api.connect import connect
from cubecast.api.node import Node
from cubecast.net.links.login import Login
from cubecast.net.live_node import LiveNode
from cubecast.net.members.security import Security
from cubecast.net.settings.config import NodeConfig
from cubecast.net.web.server import WebServer
from support.certificates import certificates
from support.cluster import FAST, cluster
from support.running import run


async def _converse(publisher, subscriber, topic="talk"):
    async with subscriber.subscribe(topic) as subscription:
        await subscription.ready()
        await publisher.publish(topic, "hello", wait="stable")
        return (await anext(aiter(subscription))).data


def test_nodes_and_clients_talk_over_tls():
    async def scenario():
        made = certificates()
        async with cluster(3, tls=made.node) as nodes:
            assert await _converse(nodes[1], nodes[2]) == "hello"
            async with connect(nodes[1].address, login=Login(tls=made.anybody)) as client:
                assert await _converse(client, nodes[2], "from.client") == "hello"
                assert await _converse(nodes[0], client, "to.client") == "hello"
            async with connect(nodes[0].address, login=Login(tls=made.client("alice"))) as client:
                assert await _converse(client, nodes[2], "from.alice") == "hello"

    run(scenario())


def test_a_certificate_for_one_id_gives_that_id():
    async def scenario():
        made = certificates()
        founder = Node(tls=made.make("five", (5,)), **FAST)
        joining = {"join": [], **FAST}
        async with founder:
            joining["join"] = [founder.address]
            async with Node(tls=made.make("three", (3,)), **joining) as three:
                assert (founder.id, three.id) == (5, 3)
                assert await _converse(three, founder) == "hello"

    run(scenario())


def test_a_large_message_passes_in_both_directions():
    async def scenario():
        made = certificates()
        async with cluster(2, tls=made.node) as nodes:
            login = Login(tls=made.anybody)
            async with connect(nodes[0].address, login=login) as client, nodes[1].subscribe("large") as subscription:
                await subscription.ready()
                await client.publish("large", bytes(1 << 20), wait="stable")
                assert (await anext(aiter(subscription))).data == bytes(1 << 20)

    run(scenario())


def _copied(directory, settings, **renamed):
    """The files of the settings, in files that tests may change."""
    found = {}
    for name in ("cert", "key", "ca"):
        found[name] = directory / f"{name}.pem"
        found[name].write_bytes(getattr(renamed.get(name, settings), name).read_bytes())
    return type(settings)(**found)


def test_new_certificates_are_used_without_a_restart(tmp_path):
    """New handshakes see the new certificate, connections go on."""

    async def scenario():
        made = certificates()
        files = _copied(tmp_path, made.node)
        node = LiveNode(NodeConfig(tls=files, dimension=3))
        await node.start()
        other = LiveNode(NodeConfig(tls=made.node, join=(node.address,)))
        await other.start()
        link = other.link_to(node.place.node)
        before = node.security.tls.channel
        _copied(tmp_path, made.make("renewed", (None,)))
        assert node.security.reload()
        assert node.security.tls.channel != before
        third = LiveNode(NodeConfig(tls=made.node, join=(node.address,)))
        await third.start()
        assert third.link_to(node.place.node).channel() == node.security.tls.channel
        assert other.link_to(node.place.node) is link and link.channel() == before
        for one in (third, other, node):
            await one.close()

    run(scenario())


def test_a_broken_new_certificate_changes_nothing(tmp_path, caplog):
    async def scenario():
        made = certificates()
        files = _copied(tmp_path, made.node)
        node = LiveNode(NodeConfig(tls=files, dimension=3))
        await node.start()
        channel = node.security.tls.channel
        broken = [
            ("key", made.make("other", (None,)).key.read_bytes(), "is not the key of the certificate"),
            ("cert", b"-----BEGIN nonsense", "not a certificate and its key"),
            ("cert", made.client("alice").cert.read_bytes(), "is not the key of the certificate"),
            ("ca", b"", "holds neither certificates nor"),
        ]
        for name, content, reason in broken:
            good = getattr(files, name).read_bytes()
            getattr(files, name).write_bytes(content)
            caplog.clear()
            with caplog.at_level(logging.ERROR):
                assert not node.security.reload()
            (line,) = caplog.messages
            assert reason in line
            getattr(files, name).write_bytes(good)
        assert node.security.tls.channel == channel
        async with connect(str(node.address), login=Login(tls=made.anybody)) as client:
            await client.publish("still.there", 1, wait="stable")
        await node.close()

    run(scenario())


def test_pages_are_served_with_the_new_files_and_ask_browsers_for_nothing(tmp_path):
    async def scenario():
        made = certificates()
        files = _copied(tmp_path, made.node)
        node = LiveNode(NodeConfig(tls=files, dimension=3))
        pages = WebServer(node, Address("127.0.0.1", 0), tls=node.security.tls.pages)
        address = await pages.open()
        seen = []
        for _ in range(2):
            assert node.security.tls.pages.server.verify_mode is ssl.CERT_NONE
            dialling = node.security.tls.dialling
            reader, writer = await asyncio.open_connection(*address, ssl=dialling)
            seen.append(writer.get_extra_info("ssl_object").getpeercert(True))
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert await reader.read()
            writer.close()
            _copied(tmp_path, made.make("renewed", (None,)))
            node.security.reload()
        assert seen[0] != seen[1]
        await pages.close()

    run(scenario())


def test_the_address_of_a_node_may_be_a_name():
    async def scenario():
        made = certificates()
        node = LiveNode(NodeConfig(tls=made.node, listen=Address("localhost", 0)))
        await node.start()
        async with connect(f"localhost:{node.address.port}", login=Login(tls=made.anybody)) as client:
            await client.publish("topic", 1, wait="stable")
        await node.close()

    run(scenario())


def test_a_node_that_is_open_to_all_says_so(tmp_path):
    made, policy = certificates().node, tmp_path / "policy.toml"
    policy.write_text("")
    beyond = Address("192.0.2.1", 7400)
    assert "give it a --policy" in Security(NodeConfig(tls=made, listen=beyond)).warning()
    assert "give it a --policy" in Security(NodeConfig(tls=made, http=beyond)).warning()
    assert Security(NodeConfig(tls=made)).warning() is None, "on this machine only"
    assert Security(NodeConfig(tls=made, listen=beyond, policy=policy)).warning() is None
    assert Security(NodeConfig(listen=beyond, insecure=True)).warning() is None, "that was wanted"
