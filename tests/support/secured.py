"""A node with a policy and somebody honest who uses it all the while: whatever others try, nothing happens to them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cubecast.addresses import Address
from cubecast.api.client import Client
from cubecast.api.connect import connect
from cubecast.api.subscription import Subscription
from cubecast.errors import BadInput, Unreachable
from cubecast.net.links.framing import Splitter, framed
from cubecast.net.links.login import Login
from cubecast.net.live_node import LiveNode
from cubecast.net.security.credentials import digest, new_token
from cubecast.net.settings.config import NodeConfig
from cubecast.net.settings.security import TlsSettings
from support.certificates import certificates
from support.running import until

EVERYTHING = 'publish = [">"]\nsubscribe = [">"]\nadmin = [">"]\n'
DEADLINE = 30.0


@dataclass
class Scene:
    node: LiveNode
    honest: Client
    sees: Subscription[Any]
    policy: Path
    token: str
    rules: str = ""
    seen: list[Any] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(self.node.address)

    @property
    def at(self) -> Address:
        return self.node.address

    def write_policy(self, rules: str) -> None:
        """Somebody honest stays known."""
        honest = f'[principals.honest]\ntokens = ["{digest(self.token, self.node.config.cluster)}"]\n{EVERYTHING}'
        self.policy.write_text(honest + rules)

    async def check(self) -> None:
        """Whoever is honest still publishes, and sees that and nothing that somebody else tried to publish."""
        await self.honest.publish("honest.word", "still here", wait="stable", timeout=DEADLINE)
        async with asyncio.timeout(DEADLINE):
            message = await anext(aiter(self.sees))
        assert (message.topic, message.data, message.principal) == ("honest.word", "still here", "honest")
        assert len(self.node.status()["members"]) == 1
        await until(lambda: self.node.reception.unauthenticated == 0)


@asynccontextmanager
async def secured(rules: str = "", *, tls: TlsSettings | bool = True, **settings: Any) -> AsyncIterator[Scene]:
    """`rules` is a policy without the honest one; at the end everything must be as if nothing had been tried."""
    made = certificates()
    token = new_token("honest")
    with TemporaryDirectory() as directory:
        policy = Path(directory) / "policy.toml"
        shown = tls if isinstance(tls, TlsSettings) else made.node if tls else None
        config = NodeConfig(dimension=3, policy=policy, tls=shown, **settings)
        honest = f'[principals.honest]\ntokens = ["{digest(token, config.cluster)}"]\n{EVERYTHING}'
        policy.write_text(honest + rules)
        node = LiveNode(config)
        await node.start()
        login = Login(tls=made.anybody if tls else None, token=token)
        client = await connect(str(node.address), cluster=config.cluster, login=login, timeout=DEADLINE)
        sees = client.subscribe(">")
        await sees.ready()
        scene = Scene(node, client, sees, policy, token)
        try:
            yield scene
            await scene.check()
        finally:
            await client.close()
            await node.close()


async def refused(address: str, login: Login, **options: Any) -> str:
    """Why a client was not let in."""
    while True:
        try:
            client = await connect(address, login=login, timeout=0.0, **options)
        except (BadInput, Unreachable) as error:
            if "no answer" not in str(error):  # as a busy machine may have it; then it is asked again
                return str(error)
        else:
            await client.close()
            raise AssertionError("it was let in")


class Raw:
    """A connection on which anything may be said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._splitter = Splitter()
        self._frames: list[bytes] = []

    @classmethod
    async def open(cls, address: Address, context: Any = None) -> "Raw":
        return cls(*await asyncio.open_connection(address.host, address.port, ssl=context))

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(framed(frame) for frame in frames))

    async def frame(self) -> bytes | None:
        """The next one; None when the other side hung up."""
        async with asyncio.timeout(DEADLINE):
            while not self._frames:
                try:
                    data = await self.reader.read(1 << 16)
                except OSError:
                    return None
                if not data:
                    return None
                self._frames += self._splitter.feed(data)
        return self._frames.pop(0)

    async def closed(self) -> None:
        while await self.frame() is not None:
            pass

    def close(self) -> None:
        self.writer.close()
