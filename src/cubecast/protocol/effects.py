"""What a machine wants done: the effects that drivers interpret.

They are not frozen: building a frozen dataclass costs three times as much, and the simulator builds millions. Nobody
but their maker and one driver ever holds them. Those a node makes with every message have their `__init__` written
out: where this module is compiled, one that a dataclass generates is interpreted all the same. Follows decision 0035.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cubecast.ids import Counter, MessageId, NodeId, Topic


@dataclass(slots=True)
class Send:
    """Hand the packet to the network, one copy per peer, in this order."""

    peers: tuple[NodeId, ...]
    packet: Any

    def __init__(self, peers: tuple[NodeId, ...], packet: Any) -> None:
        self.peers = peers
        self.packet = packet


@dataclass(slots=True)
class Deliver:
    """Give a batch of one publisher, with consecutive counters from that of `message`, to the application."""

    topic: Topic
    message: MessageId
    payloads: Sequence[bytes]
    packet: Any = field(default=None, repr=False, compare=False)
    """Which holds exactly this batch, where one does: drivers may use its encoded form."""
    subscription: Topic | None = None
    """What the subscription is called that it is for, where that is not the topic."""

    def __init__(
        self,
        topic: Topic,
        message: MessageId,
        payloads: Sequence[bytes],
        packet: Any = None,
        subscription: Topic | None = None,
    ) -> None:
        self.topic = topic
        self.message = message
        self.payloads = payloads
        self.packet = packet
        self.subscription = subscription


@dataclass(slots=True)
class Published:
    """An own publication got its place in the causal order: `count` messages from `counter`.

    `dependencies` are those of the first; each further message of the batch depends on the one before it.
    """

    topic: Topic
    counter: Counter
    count: int
    dependencies: tuple[MessageId, ...]
    payloads: Sequence[bytes] = field(default=(), repr=False, compare=False)
    """What was published, for the drivers' records."""
    attributes: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """What filters look at, for the same."""

    def __init__(
        self,
        topic: Topic,
        counter: Counter,
        count: int,
        dependencies: tuple[MessageId, ...],
        payloads: Sequence[bytes] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self.counter = counter
        self.count = count
        self.dependencies = dependencies
        self.payloads = payloads
        self.attributes = attributes


@dataclass(slots=True)
class Acknowledged:
    """Own publications up to and including `counter` reached everyone they were addressed to."""

    topic: Topic
    counter: Counter

    def __init__(self, topic: Topic, counter: Counter) -> None:
        self.topic = topic
        self.counter = counter


@dataclass(slots=True)
class Failed:
    """Own publications from `counter` definitely reached nobody."""

    topic: Topic
    counter: Counter
    count: int
    reason: str


@dataclass(slots=True)
class Cut:
    """The starting cut of this node's subscription for one source: nothing up to `last_excluded` is for us."""

    topic: Topic
    last_excluded: MessageId


@dataclass(slots=True)
class Subscribed:
    """The subscription is confirmed: whatever is published from now on, anywhere, arrives."""

    topic: Topic
    cut: tuple[MessageId, ...] = ()


@dataclass(slots=True)
class Unsubscribed:
    """Nothing of this topic will be delivered any more."""

    topic: Topic


@dataclass(slots=True)
class InterestMatched:
    """The interest the application declared makes this node subscribe to a topic, or, not `on`, leave it.

    What follows is as if the application had asked for it by name.
    """

    topic: Topic
    on: bool


@dataclass(slots=True)
class InterestKnown:
    """Whatever is published from now on, anywhere, to a topic the interest matches, arrives: old topics and new."""


@dataclass(slots=True)
class Gap:
    """These messages will never be delivered to this subscription; the application must know before what follows."""

    topic: Topic
    missing: Sequence[MessageId]
    reason: str


@dataclass(slots=True)
class Undelivered:
    """Own publications that the process at `peer` will not get although it lives; each is told once."""

    topic: Topic
    missing: Sequence[MessageId]
    peer: NodeId


@dataclass(slots=True)
class Reincarnated:
    """Others hold this node's incarnation faulty: its history ends here, what follows belongs to the new incarnation.

    Subscriptions to `topics` end with the old incarnation and are opened again in the new one.
    """

    incarnation: int
    topics: tuple[Topic, ...]


@dataclass(slots=True)
class Released:
    """Own publications up to and including `counter` take no more room here. Who has them it does not say."""

    topic: Topic
    counter: Counter


@dataclass(slots=True)
class Link:
    """Keep a connection to this peer. When it ends, those who keep it are told at once (`PeerDown`), nobody else."""

    peer: NodeId


@dataclass(slots=True)
class Unlink:
    """This end needs the connection no more; the other, if it keeps it, is told."""

    peer: NodeId


@dataclass(slots=True)
class SetTimer:
    """Call `on_timer(timer)` at that time; setting a timer again moves it."""

    timer: Hashable
    at: float

    def __init__(self, timer: Hashable, at: float) -> None:
        self.timer = timer
        self.at = at


@dataclass(slots=True)
class CancelTimer:
    timer: Hashable


@dataclass(slots=True)
class Observe:
    """Something worth a trace row that changes nothing: kind is one of suspect, view, discard."""

    kind: str
    topic: Topic | None = None
    message: MessageId | None = None
    peer: NodeId | None = None
    detail: str = field(default="")


Effect: TypeAlias = (
    Send
    | Deliver
    | Published
    | Acknowledged
    | Released
    | Failed
    | Cut
    | Subscribed
    | Unsubscribed
    | InterestMatched
    | InterestKnown
    | Gap
    | Undelivered
    | Reincarnated
    | Link
    | Unlink
    | SetTimer
    | CancelTimer
    | Observe
)
Effects: TypeAlias = list[Effect]
