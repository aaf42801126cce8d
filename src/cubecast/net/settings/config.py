"""What can be chosen about a live node, validated once. Times are in seconds, sizes in bytes.

The fields are the keys of the configuration file, the text below each is its documentation (`net.settings`); those that
are parameters of the users' protocol are documented where it declares them.
Follows decision 0026.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_type_hints

from cubecast.addresses import Address
from cubecast.errors import BadInput
from cubecast.ids import ID_LIMIT, NodeId
from cubecast.net.settings.fields import FULL_BATCH, MAX_DIMENSION, MAX_FRAME, NO_LIMITS, declared, setting, table
from cubecast.net.settings.logs import Logging
from cubecast.net.settings.security import Limits, TlsSettings, check_listening, check_origin
from cubecast.net.settings.sources import Unfit, check_range
from cubecast.patterns import check_pattern, is_pattern
from cubecast.protocol.families import DEFAULT_PROTOCOL, FAMILIES, find
from cubecast.protocol.inputs import Advertise, Follow

MAX_PAYLOAD = 1 << 20
"""The largest message; a frame around it is a little larger."""
MOST_BATCH_BYTES = 512 << 10
"""Publications of several messages leave this much room in a packet for what they depend on."""
TIB = 1 << 40
SHORTEST = 0.001
"""Seconds: event loops do not tell shorter times apart."""

LOOPBACK = Address("127.0.0.1", 0)
ANYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Retention:
    """What exceeds one of these is forgotten, oldest first, whole batches at a time; 0 sets no limit."""

    max_bytes: int = setting(0, least=0, unit="bytes")
    """Bytes of a topic's batches on the disk."""
    max_age: float = setting(0.0, least=0, unit="seconds")
    """How long a message is kept."""
    max_messages: int = setting(0, least=0)
    """Messages of a topic; those of the oldest batch stay together, so it may be a few more."""


@dataclass(frozen=True)
class PartitionSettings:
    """What publishers are told while members are cut off."""

    stable: Literal["reachable", "everybody"] = setting("reachable", reload=True)
    """Whom `wait="stable"` waits for: who is not held faulty, or every member that is not known to be gone."""


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    listen: Address = LOOPBACK
    """Where this node listens; port 0 stands for any free one."""
    advertise: Address | None = None
    """What others dial, when it is not what we listen on."""
    join: tuple[Address, ...] = ()
    """Any members of the cluster; without, this node founds one."""
    peers: dict[NodeId, Address] = field(default_factory=dict)
    """A static cluster: everybody's address, this node's included; instead of `join`."""
    dial_through: dict[NodeId, Address] = field(default_factory=dict)
    """Where to dial a peer instead of at its own address, for tunnels and test proxies."""
    node: NodeId | None = setting(None, least=0, most=ID_LIMIT - 1)
    """The id to hold; without, one is assigned, or drawn where the protocol has no places."""
    protocol: str = DEFAULT_PROTOCOL
    """What the cluster runs; `cubecast protocols` lists what there is. All nodes of a cluster run the same."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Of that protocol, by name, as `cubecast protocols NAME` shows them."""
    cluster: str = "cubecast"
    """The cluster's name, 1 to 64 characters; nodes and clients of other clusters are refused."""
    dimension: int = setting(6, least=1, most=MAX_DIMENSION)
    """The cube has 2^dimension ids; only the founder's counts."""
    window: int = declared("window")
    eager: int = declared("eager")
    calm: int = declared("calm")
    direct: int = declared("direct")
    pacing: bool = True
    """While processors are scarce, publications made within milliseconds of one another leave together."""
    max_batch: int = declared("max_batch", most=FULL_BATCH)
    max_batch_bytes: int = declared("max_batch_bytes", most=MOST_BATCH_BYTES)
    max_payload: int = setting(MAX_PAYLOAD, least=1, most=MAX_PAYLOAD, unit="bytes", reload=True)
    """The largest message this node publishes."""
    aggregation: bool = declared("aggregation")
    retry: float = declared("retry", least=SHORTEST, most=3600)
    ack_delay: float = declared("ack_delay", most=60)
    round_length: float = declared("round_length", least=SHORTEST, most=3600)
    patience: float = declared("patience", least=2 * SHORTEST, most=86_400, alone=False)
    peer_budget: int = setting(32 << 20, least=MAX_FRAME, most=TIB, unit="bytes", reload=True)
    """Bytes that may wait for a peer that does not read, before the link is cut; at least a largest frame."""
    topic_budget: int = setting(4 << 20, least=1, most=TIB, unit="bytes", reload=True)
    """Bytes published on a topic that may be on their way, before publishers wait."""
    client_budget: int = setting(8 << 20, least=MAX_FRAME, most=TIB, unit="bytes", reload=True)
    """Bytes that may wait for a client that does not read."""
    max_clients: int = setting(1000, least=0, most=1_000_000, reload=True)
    """Thin clients served at a time; those that are connected stay when it is lowered."""
    http: Address | None = None
    """Where to serve health, metrics and pages; nowhere unless it is asked for."""
    ws_origins: tuple[str, ...] = ()
    """Besides the node's own pages, those of these origins may use its WebSocket."""
    observe: bool = False
    """Whether to count what happens even when nothing is served over HTTP; `cubecast status --watch` shows it."""
    journal: Path | None = None
    """Where to write the trace of this node."""
    journal_packets: bool = False
    """Whether the trace tells of every packet, too."""
    traces: Path | None = None
    """Where journals go that are switched on at run time, a directory each; by default `traces` below `data`."""
    inputs: Path | None = None
    """Where to record the machine's inputs and effects, step by step, for `net.node.input_log`."""
    data: Path | None = None
    """Where the node remembers its incarnation, and keeps its log."""
    log: tuple[str, ...] = ()
    """Patterns of the topics whose messages are kept in a log under `data`; ">" for all."""
    log_budget: int = setting(8 << 20, least=1, most=TIB, unit="bytes", reload=True)
    """Bytes that may wait for the log's disk, before publishers wait."""
    log_quota: int = setting(0, least=0, most=TIB, unit="bytes", reload=True)
    """The log's file grows no larger, as if the disk were full; 0 for the disk's own limit."""
    retention: dict[str, Retention] = setting(factory=dict, reload=True)
    """Per pattern what the log keeps of each topic; the first pattern that selects a topic counts, without one all."""
    policy: Path | None = setting(None, file=True)
    """Who may do what; without, every client may do everything."""
    insecure: bool = False
    """Listen beyond this machine without TLS."""
    tls: TlsSettings | None = None
    """Without, connections are not encrypted and nobody proves anything by a certificate."""
    limits: Limits = table(Limits)
    partition: PartitionSettings = table(PartitionSettings)
    logging: Logging = table(Logging)

    def __post_init__(self) -> None:
        hints = get_type_hints(NodeConfig)
        for one in fields(self):
            try:
                check_range(hints[one.name], getattr(self, one.name), one.metadata.get("limits", NO_LIMITS))
            except Unfit as error:
                raise BadInput(f"{one.name} {error}") from None
        for member in self.join:
            Address.to_dial(member)
        if self.peers and self.node not in self.peers:
            raise BadInput(f"the cluster file lists {sorted(self.peers)}; this node's id {self.node} is not among them")
        for place in self.peers.values():
            same = sorted(node for node, other in self.peers.items() if other == place)
            if len(same) > 1 and place.port:
                raise BadInput(f"`peers` gives {place} to nodes {' and '.join(map(str, same))}; each needs its own")
        if self.node in self.peers and self.listen == LOOPBACK:
            object.__setattr__(self, "listen", self.peers[self.node])  # frozen, and this is where it is made
        if self.listen.host in ANYWHERE and self.advertise is None and not self.peers:
            raise BadInput(f"nobody can dial {self.listen.host}: say with `advertise` where others find this node")
        for address in (self.listen, self.http):
            check_listening(address, has_tls=self.tls is not None, insecure=self.insecure)
        check_protocol(self.protocol)
        places = not find(self.protocol).population.draws_ids
        if places and self.node is not None and not 0 <= self.node < 1 << self.dimension:
            raise BadInput(f"id {self.node} does not exist in a cube of {1 << self.dimension}; raise the dimension")
        self._check_log()
        object.__setattr__(self, "ws_origins", tuple(map(check_origin, self.ws_origins)))
        self._check_parameters()
        if not self.cluster or len(self.cluster) > 64:
            raise BadInput("a cluster's name (`cluster`) has 1 to 64 characters")
        if self.patience < 2 * self.round_length:
            raise BadInput(
                f"patience must last at least two rounds of {self.round_length} s (`round_length`), "
                f"or every late answer is a crash; it is {self.patience}"
            )

    def _check_log(self) -> None:
        if self.log and self.data is None:
            raise BadInput("a log needs a place: say with `data` where to keep it")
        for pattern in (*self.log, *self.retention):
            check_pattern(pattern)
        requests, wild = find(self.protocol).requests, next(filter(is_pattern, self.log), None)
        if self.log and Advertise in requests:
            raise BadInput(f"{self.protocol} keeps no log: leave `log` out, or run {DEFAULT_PROTOCOL}")
        if wild is not None and Follow not in requests:
            raise BadInput(
                f"{self.protocol} follows no patterns such as {wild!r}: name each topic in `log`, or run "
                f"{DEFAULT_PROTOCOL}"
            )

    def _check_parameters(self) -> None:
        """Nothing is set that no machine of the protocol would read, or could answer."""
        if self.partition.stable == "everybody" and self.protocol != DEFAULT_PROTOCOL:
            raise BadInput(f'partition.stable = "everybody" needs {DEFAULT_PROTOCOL}; {self.protocol} cannot tell')
        find(self.protocol).chosen(self.chosen(self.dimension), live=True)
        unread = [
            one.name for one in fields(self) if one.metadata.get("alone") and getattr(self, one.name) != one.default
        ]
        if self.protocol != DEFAULT_PROTOCOL and unread:
            known = ", ".join(find(self.protocol).settings) or "none"
            raise BadInput(
                f"{self.protocol} has no parameter {unread[0]!r}, which is one of {DEFAULT_PROTOCOL}; "
                f"it has, as `parameters.NAME`, {known}"
            )

    def chosen(self, dimension: int) -> dict[str, str]:
        """The protocol's parameters as text, without those that keep their default."""
        if self.protocol != DEFAULT_PROTOCOL:
            return dict(self.parameters)
        mine = {name: _text(getattr(self, name)) for name in find(self.protocol).settings if hasattr(self, name)}
        # Kept at every level of a tree they must still arrive before the publisher repeats itself.
        mine["ack_delay"] = _text(min(self.ack_delay, self.retry / (dimension + 1)))
        return mine | self.parameters

    @property
    def signature(self) -> str:
        """What nodes that understand each other have in common."""
        family = find(self.protocol)
        return family.signature(family.chosen(self.chosen(self.dimension), live=True))


def _text(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def check_protocol(name: str) -> None:
    if not find(name).live:
        able = [one for one in FAMILIES if find(one).live]
        raise BadInput(f"{name} runs in the simulator only; live nodes run {', '.join(able)}")
