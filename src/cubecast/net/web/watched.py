"""What pages, metrics and health checks ask of the node they are served by."""

from pathlib import Path
from typing import Any, Protocol

from cubecast.ids import NodeId
from cubecast.net.gateway.clients import Clients
from cubecast.net.members.security import Security
from cubecast.net.settings.config import NodeConfig
from cubecast.net.web.observer import Observer


class WatchedNode(Protocol):
    security: Security
    clients: Clients
    observer: Observer | None

    @property
    def config(self) -> NodeConfig: ...

    def status(self) -> dict[str, Any]: ...
    def reasons_not_ready(self) -> list[str]: ...
    def tracing(self) -> dict[str, Any]: ...
    def switch_tracing(self, run: str | None) -> Path: ...
    def notice(self, kind: str, peer: NodeId | None, detail: str) -> None:
        """Something rare happened, for observers."""
