"""A node inside an application: a member of the cluster, with the interface of a client."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Self, TypeAlias, TypedDict, Unpack

from cubecast.addresses import Address
from cubecast.api.client import Client
from cubecast.api.message import Missing
from cubecast.errors import BadInput
from cubecast.net.live_node import LiveNode
from cubecast.net.port.port import Run
from cubecast.net.settings.config import NodeConfig, PartitionSettings, Retention
from cubecast.net.settings.resolve import BadSettings, Sources, resolve
from cubecast.net.settings.security import Limits, TlsSettings

# The settings of a node as arguments of `Node`, for type checkers; what each one is: docs/configuration.md.

AddressLike: TypeAlias = str | Address
"""HOST:PORT."""
FileLike: TypeAlias = str | PathLike[str]
Size: TypeAlias = int | str
"""Bytes, or a text with a unit: "64 KiB"."""
Time: TypeAlias = float | str
"""Seconds, or a text with a unit: "500 ms"."""


class NodeSettings(TypedDict, total=False):
    """All are optional, and None stands for the default. What is many may be one text, separated by commas."""

    listen: AddressLike | None
    advertise: AddressLike | None
    join: str | Iterable[AddressLike] | None
    peers: Mapping[int, AddressLike] | str | None
    dial_through: Mapping[int, AddressLike] | str | None
    node: int | None
    protocol: str | None
    parameters: Mapping[str, str] | None
    cluster: str | None
    dimension: int | None
    window: int | None
    eager: int | None
    calm: int | None
    direct: int | None
    pacing: bool | None
    max_batch: int | None
    max_batch_bytes: Size | None
    max_payload: Size | None
    aggregation: bool | None
    retry: Time | None
    ack_delay: Time | None
    round_length: Time | None
    patience: Time | None
    peer_budget: Size | None
    topic_budget: Size | None
    client_budget: Size | None
    max_clients: int | None
    http: AddressLike | None
    ws_origins: str | Iterable[str] | None
    observe: bool | None
    journal: FileLike | None
    journal_packets: bool | None
    traces: FileLike | None
    inputs: FileLike | None
    data: FileLike | None
    log: str | Iterable[str] | None
    log_budget: Size | None
    log_quota: Size | None
    retention: Mapping[str, Retention | Mapping[str, int | float | str]] | None
    policy: FileLike | None
    insecure: bool | None
    tls: TlsSettings | Mapping[str, FileLike] | None
    limits: Limits | Mapping[str, int | float | str] | None
    partition: PartitionSettings | Mapping[str, str] | None


class Node(Client):
    """`async with Node(join=["10.0.0.1:7400"]) as node:` takes part until the end of the block.

    Without `join` it founds a cluster of its own. It takes every setting of docs/configuration.md but `logging`, which
    an application arranges itself, as text with units or as Python values: `data="here"`, `max_payload="64 KiB"`,
    `tls={"cert": …}`. It reads no file and no environment.
    """

    def __init__(self, **settings: Unpack[NodeSettings]) -> None:
        self._begin(_config(settings))

    @classmethod
    def of(cls, config: NodeConfig) -> Self:
        """With settings that were read and checked already."""
        node = cls.__new__(cls)
        node._begin(config)
        return node

    def _begin(self, config: NodeConfig) -> None:
        self._live = LiveNode(config)
        Client.__init__(self, self._live.port)

    async def start(self) -> None:
        """Returns when every living member knows this node."""
        await self._live.start()

    @property
    def address(self) -> str:
        """What others join, and clients connect to."""
        return str(self._live.address)

    @property
    def http_address(self) -> str | None:
        """Where health, metrics, pages and the WebSocket are served; None without `http`."""
        return None if self._live.web is None else str(self._live.web.address)

    @property
    def id(self) -> int:
        """Its place in the hypercube; in a protocol without places the number it drew."""
        return self._live.place.node

    @property
    def neighbours(self) -> list[int]:
        """The members this node talks to directly, where nobody knows all of them; otherwise all that live."""
        return [node for node in self._live.inspector.living if node != self.id]

    @property
    def topics_here(self) -> list[str]:
        """The topics this node has heard of."""
        return list(self._live.inspector.topics)

    def on_undelivered(self, call: Callable[[Missing, int], object]) -> None:
        """Have this called, in place of a warning, with what this node published and a subscriber will not get.

        The second argument is the node of a subscriber that lives and was cut off from this one. Each message is told
        once, whichever other nodes miss it. What `call` raises goes to the event loop's exception handler.
        """

        def told(topic: str, run: Run, peer: int) -> None:
            try:
                call(Missing(topic, *run), peer)
            except Exception as error:
                context = {"message": "the function told of undelivered messages failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

        self._live.port.publishing.on_lost = told

    def __repr__(self) -> str:
        cluster = f"of cluster {self._live.config.cluster!r}"
        if self._closed:
            return f"<Node {cluster}, closed>"
        if not self._live.identity():
            return f"<Node {cluster}, not started>"
        http = "" if self.http_address is None else f", http at {self.http_address}"
        return f"<Node {self.id} {cluster} at {self.address}{http}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return await super().__aenter__()


def _config(settings: NodeSettings) -> NodeConfig:
    given: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    if "logging" in given:
        raise BadInput("Node takes no `logging`: an application arranges its own, of the logger 'cubecast'")
    try:
        return resolve(NodeConfig, Sources(arguments=given)).config
    except BadSettings as error:
        raise BadInput("; ".join(error.problems)) from None
