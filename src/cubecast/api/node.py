"""A node inside an application: a member of the cluster, with the interface of a client."""

from pathlib import Path
from typing import Any, Self

from cubecast.api.client import Client
from cubecast.net.addresses import Address
from cubecast.net.config import NodeConfig
from cubecast.net.node import LiveNode


class Node(Client):
    """`async with Node(join=["10.0.0.1:7400"]) as node:` takes part until the end of the block.

    Without `join` it founds a cluster of its own. Other options are those of `net.config.NodeConfig`: `dimension`,
    `node`, `window`, budgets and so on.
    """

    def __init__(
        self,
        *,
        listen: str = "127.0.0.1:0",
        join: tuple[str, ...] | list[str] = (),
        cluster: str = "cubecast",
        journal: Path | None = None,
        **options: Any,
    ) -> None:
        config = NodeConfig(
            listen=Address.parse(listen),
            join=tuple(Address.parse(address) for address in join),
            cluster=cluster,
            journal=journal,
            **options,
        )
        self._live = LiveNode(config)
        super().__init__(self._live.port)

    async def start(self) -> None:
        """Returns when every living member knows this node."""
        await self._live.start()

    @property
    def address(self) -> str:
        """What others join, and clients connect to."""
        return str(self._live.address)

    @property
    def id(self) -> int:
        """Its place in the hypercube."""
        return self._live.place.node

    async def __aenter__(self) -> Self:
        await self.start()
        return await super().__aenter__()
