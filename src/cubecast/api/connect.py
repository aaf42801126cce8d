"""Becoming a client of nodes that run elsewhere."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from cubecast.addresses import Address
from cubecast.api.client import Client
from cubecast.net.gateway.client import ClientPort, complain, warn
from cubecast.net.gateway.outbox import Uncertain
from cubecast.net.links.login import NOTHING, Login

CONNECT_TIMEOUT, PATIENCE = 5.0, 60.0


class Connecting:
    """`async with` it, or `await` it and close the client yourself."""

    def __repr__(self) -> str:
        return "<Client, not connected: `async with` it, or `await` it>"

    def __init__(self, open_port: Callable[[], ClientPort], timeout: float) -> None:
        self._open_port, self._timeout = open_port, timeout
        self._client: Client | None = None

    async def _connect(self) -> Client:
        port = self._open_port()
        await port.start(self._timeout)
        return Client(port, lambda: port.node)

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    if not TYPE_CHECKING:  # which sees it by itself

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(Client, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(f"connect(…) is no client yet, so it has no {name!r}: `async with` it, or `await` it")


def connect(
    *addresses: str,
    cluster: str = "cubecast",
    name: str = "",
    timeout: float = CONNECT_TIMEOUT,
    patience: float = PATIENCE,
    on_uncertain: Callable[[Uncertain], object] = warn,
    on_refused: Callable[[str], object] = complain,
    login: Login = NOTHING,
) -> Connecting:
    """A client of any of these nodes, each HOST:PORT; when its node is lost it moves to another, known or named.

    `timeout` is for the first connection, `patience` for finding another node later: then subscriptions end with an
    error. `on_uncertain` is told how many messages were on their way when a connection broke; by default it logs them.
    `on_refused` is told why the node refused a publication, waited for or not; by default it logs that, too.
    `login` is how it proves who it is: TLS, a token or a key.
    """
    parsed = [Address.to_dial(address) for address in addresses]

    def open_port() -> ClientPort:
        return ClientPort(
            parsed,
            cluster=cluster,
            name=name,
            patience=patience,
            on_uncertain=on_uncertain,
            on_refused=on_refused,
            login=login,
        )

    return Connecting(open_port, timeout)
