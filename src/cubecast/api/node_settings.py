"""The settings of a node as arguments of `Node`, for type checkers; what each one is: docs/configuration.md."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TypeAlias, TypedDict

from cubecast.addresses import Address
from cubecast.net.settings.config import Retention
from cubecast.net.settings.security import Limits, TlsSettings

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
