"""Files that believe less than before: whoever came with what they do not believe has to go at once, nobody else."""

from dataclasses import replace
from pathlib import Path

import pytest

from cubecast.api.connect import connect
from cubecast.api.message import Gap
from cubecast.errors import BadInput
from cubecast.net.links.login import Login
from cubecast.net.live_node import LiveNode
from cubecast.net.security.certificates import Authority, Subject
from cubecast.net.security.trust import Trust
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import TlsSettings
from support.cluster import FAST
from support.running import run, until


class World:
    """Two authorities of its own, and a node that believes both and has an empty list of revoked certificates."""

    def __init__(self, directory: Path) -> None:
        self.ours, self.theirs = (Authority.create(directory / name) for name in ("ours", "theirs"))
        self._by = {"ours": directory / "ours", "theirs": directory / "theirs"}
        self.ca, self.revoked = directory / "believed.pem", directory / "revoked.pem"
        self.believe("ours", "theirs")
        self.revoked.write_bytes(b"".join(one.revoke([]).read_bytes() for one in (self.ours, self.theirs)))

    def believe(self, *names: str) -> None:
        self.ca.write_bytes(b"".join((self._by[name] / "ca.pem").read_bytes() for name in names))

    def revoke(self, by: Authority, *names: str) -> None:
        other = self.theirs if by is self.ours else self.ours
        self.revoked.write_bytes(by.revoke(list(names)).read_bytes() + other.revoke([]).read_bytes())

    def settings(self, by: Authority, name: str, nodes: tuple[int | None, ...] = (None,), **more: float) -> TlsSettings:
        path = by.issue(Subject(name, "cubecast", nodes, not nodes, **more))
        return TlsSettings(cert=path, key=path.with_suffix(".key"), ca=self.ca)

    async def node(self, by: Authority, name: str, *join: LiveNode, **times: float) -> LiveNode:
        tls = replace(self.settings(by, name), revoked=self.revoked)
        node = LiveNode(NodeConfig(tls=tls, join=tuple(one.address for one in join), **FAST | times))
        await node.start()
        return node


async def client_of(node: LiveNode, tls: TlsSettings):
    return await connect(str(node.address), login=Login(tls=tls), patience=0.5)


WAYS = {
    "revoked": lambda world: world.revoke(world.theirs, "other-node", "other-client"),
    "another authority": lambda world: world.believe("ours"),
}


@pytest.mark.parametrize("way", WAYS)
def test_open_connections_end_with_what_they_were_opened_by(tmp_path, way):
    async def main():
        world = World(tmp_path)
        node = await world.node(world.ours, "node", patience=3.0)
        good = await world.node(world.ours, "good-node", node, patience=3.0)
        bad = await world.node(world.theirs, "other-node", node)
        friend = await client_of(node, world.settings(world.ours, "client", ()))
        nobody = await client_of(node, TlsSettings(ca=world.ca))
        enemy_tls = world.settings(world.theirs, "other-client", ())
        enemy = await client_of(node, enemy_tls)
        links = [node.link_to(good.place.node), node.link_to(bad.place.node)]
        assert None not in links

        WAYS[way](world)
        assert node.security.reload() and good.security.reload()
        await until(lambda: len(node.clients) == 2)
        for one in (node, good):
            await until(lambda one=one: one.machine.living == sorted((node.place.node, good.place.node)))
            assert one.link_to(bad.place.node) is None
        assert node.link_to(good.place.node) is links[0]
        for client in (friend, nobody):
            await client.publish("t", 1, wait="stable", timeout=30)
        assert len(node.clients) == 2 and not len(good.clients)
        with pytest.raises(BadInput, match=r"TLS failed|certificate"):
            await client_of(good, enemy_tls)
        for one in (friend, nobody, enemy, good, bad, node):
            await one.close()

    run(main())


def test_nothing_ends_when_nothing_is_less_believed(tmp_path):
    """Read again with a new certificate and with an authority that was issued anew; and without any change."""

    async def main():
        world = World(tmp_path)
        node = await world.node(world.ours, "node")
        other = await world.node(world.theirs, "other-node", node)
        client = await client_of(node, world.settings(world.theirs, "other-client", ()))
        link = node.link_to(other.place.node)
        for change in (
            lambda: None,
            lambda: world.settings(world.ours, "node"),
            lambda: world.believe("theirs", "ours"),
        ):
            change()
            assert node.security.reload()
            await client.publish("t", 1, wait="stable", timeout=30)
        assert node.link_to(other.place.node) is link and len(node.clients) == 1
        for one in (client, other, node):
            await one.close()

    run(main())


def test_an_authority_is_replaced_under_way(tmp_path):
    """Believe both, show the new one's certificates, believe only that: links are opened anew, nobody is faulty."""

    async def main():
        world = World(tmp_path)
        nodes = [await world.node(world.ours, "first")]
        nodes.append(await world.node(world.ours, "second", nodes[0]))
        client = await client_of(nodes[0], TlsSettings(ca=world.ca))
        subscription = client.subscribe("t")
        await subscription.ready()
        before = nodes[0].link_to(nodes[1].place.node)
        for name in ("first", "second"):
            new = world.settings(world.theirs, name)
            for suffix in (".pem", ".key"):
                (tmp_path / "ours" / (name + suffix)).write_bytes(new.cert.with_suffix(suffix).read_bytes())
        assert all(node.security.reload() for node in nodes)
        assert nodes[0].link_to(nodes[1].place.node) is before
        world.believe("theirs")
        assert all(node.security.reload() for node in nodes)
        await until(lambda: nodes[0].link_to(nodes[1].place.node) not in (before, None))
        for node in nodes:
            await node.port.stable("t", node.port.publish("t", [b"x"]))
        for _ in nodes:
            assert not isinstance(await subscription.next(30), Gap)
        assert [node.place.incarnation for node in nodes] == [0, 0]
        await client.close()
        for node in nodes[::-1]:
            await node.close()

    run(main())


def test_what_cannot_be_read_changes_nothing(tmp_path):
    world = World(tmp_path)
    settings = replace(world.settings(world.ours, "node"), revoked=world.revoked)
    Trust(settings)
    world.revoked.write_text("-----BEGIN X509 CRL-----\nnonsense\n-----END X509 CRL-----\n")
    with pytest.raises(BadInput, match=r"cannot read .*revoked\.pem"):
        Trust(settings)
