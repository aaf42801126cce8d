"""Whom a certificate names: `cubecast://CLUSTER/node/3`, `…/node/any` or `…/client/NAME` among its alternative names.

A certificate for a node may name several ids. The names of hosts in it are of no account between nodes: a node may move
to another address, but not become another node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from cubecast.ids import ID_LIMIT, NodeId

SCHEME = "cubecast://"
ANY = "any"


@dataclass(frozen=True)
class Identity:
    cluster: str
    nodes: frozenset[NodeId] = frozenset()
    any_node: bool = False
    client: str | None = None

    @property
    def is_node(self) -> bool:
        return self.any_node or bool(self.nodes)

    def may_be(self, node: NodeId) -> bool:
        return self.any_node or node in self.nodes

    @property
    def only_node(self) -> NodeId | None:
        """The one id it names, if it is one."""
        return next(iter(self.nodes)) if len(self.nodes) == 1 and not self.any_node else None

    def __str__(self) -> str:
        names = [ANY] if self.any_node else [str(node) for node in sorted(self.nodes)]
        what = [f"node {', '.join(names)}"] if self.is_node else []
        what += [f"client {self.client}"] if self.client is not None else []
        return f"{' and '.join(what)} of cluster {self.cluster!r}"


def node_uri(cluster: str, node: NodeId | None) -> str:
    return f"{SCHEME}{quote(cluster, safe='')}/node/{ANY if node is None else node}"


def client_uri(cluster: str, name: str) -> str:
    return f"{SCHEME}{quote(cluster, safe='')}/client/{quote(name, safe='')}"


def identities(uris: Iterable[str]) -> dict[str, Identity]:
    """By cluster; what is written wrongly names no node."""
    found: dict[str, Identity] = {}
    for uri in uris:
        parts = uri.removeprefix(SCHEME).split("/")
        if not uri.startswith(SCHEME) or len(parts) != 3:
            continue
        cluster, kind, name = (unquote(part) for part in parts)
        one = found.get(cluster, Identity(cluster))
        if kind == "node" and name == ANY:
            one = Identity(cluster, one.nodes, True, one.client)
        elif kind == "node" and name.isdecimal() and name.isascii() and len(name) < 20 and int(name) < ID_LIMIT:
            one = Identity(cluster, one.nodes | {int(name)}, one.any_node, one.client)
        elif kind == "client" and name:
            one = Identity(cluster, one.nodes, one.any_node, name)
        found[cluster] = one
    return {cluster: one for cluster, one in found.items() if one.is_node or one.client is not None}


def uris_of(certificate: Mapping[str, Any] | None) -> list[str]:
    """Of a verified certificate, as the ssl module describes it."""
    names: Iterable[tuple[str, str]] = (certificate or {}).get("subjectAltName", ())
    return [name for kind, name in names if kind == "URI"]
