"""What can be chosen about a live node, validated once. Times are in seconds, sizes in bytes."""

from dataclasses import dataclass, field
from pathlib import Path

from cubecast.errors import BadInput
from cubecast.ids import NodeId
from cubecast.net.addresses import Address
from cubecast.protocol.vcube.cubecast.parameters import Aggregation, Detection, Parameters
from cubecast.protocol.vcube.topology import MAX_DIMENSION

MAX_PAYLOAD = 1 << 20
"""The largest message; a frame around it is a little larger."""

LOOPBACK = Address("127.0.0.1", 0)
ANYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    listen: Address = LOOPBACK
    advertise: Address | None = None
    """What others dial, when it is not what we listen on."""
    join: tuple[Address, ...] = ()
    """Any members of the cluster; without, this node founds one."""
    peers: dict[NodeId, Address] = field(default_factory=dict)
    """A static cluster: everybody's address, this node's included; instead of `join`."""
    dial_through: dict[NodeId, Address] = field(default_factory=dict)
    """Where to dial a peer instead of at its own address, for tunnels and test proxies."""
    node: NodeId | None = None
    """The id to hold; without, one is assigned."""
    cluster: str = "cubecast"
    dimension: int = 6
    """The cube has 2^dimension ids; only the founder's counts."""
    window: int = 16
    eager: int = 2
    """With so many own publications under way, only full ones leave at once; the others pile up to larger ones."""
    calm: int = 8
    """The same as long as none had to wait: acknowledgements that nobody waits for may take their time."""
    direct: int = 15
    """To so many others at most a source sends small publications itself while it is calm; 0: never."""
    max_batch: int = 512
    max_batch_bytes: int = 256 << 10
    max_payload: int = MAX_PAYLOAD
    aggregation: bool = False
    """Publications on their way to the same child share packets; fewer packets where answers overtake questions."""
    retry: float = 0.5
    ack_delay: float = 0.025
    """How long acknowledgements that nobody waits for may be kept to travel together."""
    round_length: float = 0.5
    patience: float = 3.0
    peer_budget: int = 32 << 20
    """Bytes that may wait for a peer that does not read, before the link is cut."""
    topic_budget: int = 4 << 20
    """Bytes published on a topic that may be on their way, before publishers wait."""
    client_budget: int = 8 << 20
    """Bytes that may wait for a client that does not read."""
    max_clients: int = 1000
    journal: Path | None = None
    """Where to write the trace of this node."""
    journal_packets: bool = False
    inputs: Path | None = None
    """Where to record the machine's inputs and effects, step by step, for `net.replay`."""
    data: Path | None = None
    """Where the node remembers its incarnation."""

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise BadInput(f"the dimension must be between 1 and {MAX_DIMENSION}, not {self.dimension}")
        if self.peers and self.node not in self.peers:
            raise BadInput(f"the cluster file lists {sorted(self.peers)}; this node's id {self.node} is not among them")
        if self.node in self.peers and self.listen == LOOPBACK:
            object.__setattr__(self, "listen", self.peers[self.node])  # frozen, and this is where it is made
        if self.listen.host in ANYWHERE and self.advertise is None and not self.peers:
            raise BadInput(f"nobody can dial {self.listen.host}: say with `advertise` where others find this node")
        if self.node is not None and not 0 <= self.node < 1 << self.dimension:
            raise BadInput(f"id {self.node} does not exist in a cube of {1 << self.dimension}; raise the dimension")
        if not 1 <= self.max_payload <= MAX_PAYLOAD:
            raise BadInput(f"the largest payload must be between 1 and {MAX_PAYLOAD} bytes, not {self.max_payload}")
        if not self.cluster or len(self.cluster) > 64:
            raise BadInput("a cluster's name has 1 to 64 characters")

    def parameters(self, dimension: int, founders: int) -> Parameters:
        """The protocol's own."""
        return Parameters(
            dimension,
            founders=founders,
            window=self.window,
            eager=self.eager,
            calm=self.calm,
            direct=self.direct,
            max_batch=self.max_batch,
            max_batch_bytes=self.max_batch_bytes,
            aggregation=Aggregation.ON if self.aggregation else Aggregation.OFF,
            retry=self.retry,
            ack_delay=self.ack_delay,
            detection=Detection.DIAGNOSIS,
            round_length=self.round_length,
            patience=self.patience,
        )
