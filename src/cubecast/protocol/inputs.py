"""What a machine is told besides packets, as data: `machine.handle(now, input)` returns the effects.

Packets come by `on_packet`, which is called millions of times. Everything else is one of these values, so that what
wraps a machine (recording, replaying, tampering, measuring) wraps one method, and a family can say by type what an
application may ask of it. `method` is what a machine calls it that has a method per input (`contract.Handlers`); it
gets the time and the fields. Follows decision 0056.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from cubecast.ids import Incarnation, NodeId, Topic

if TYPE_CHECKING:
    from cubecast.protocol.filters.values import Attributes

Interest: TypeAlias = Callable[[Topic], bool]
"""Is this topic, whenever it comes to be, to be subscribed?"""


@dataclass(frozen=True, slots=True)
class Start:
    """The node begins; nothing else comes before it."""

    method: ClassVar[str] = "on_start"


@dataclass(slots=True)
class Timer:
    """A timer that was set with `SetTimer` is due."""

    method: ClassVar[str] = "on_timer"
    timer: Hashable


@dataclass(frozen=True, slots=True)
class PeerUp:
    """The driver may reach this peer again."""

    method: ClassVar[str] = "on_peer_up"
    peer: NodeId


@dataclass(frozen=True, slots=True)
class PeerDown:
    """The driver holds this peer faulty, or the link to it broke."""

    method: ClassVar[str] = "on_peer_down"
    peer: NodeId


@dataclass(slots=True)  # not frozen, for the reason given in `effects`
class Publish:
    method: ClassVar[str] = "publish"
    topic: Topic
    payloads: Sequence[bytes]
    hurry: bool = False
    """The application waits until these are stable."""
    attributes: "Attributes | Sequence[Attributes] | None" = None
    """What filters of subscriptions look at: the same for all of these messages, or one by one."""


@dataclass(frozen=True, slots=True)
class Crosspost:
    """Publish the same in each of several topics, in one message where the protocol can."""

    method: ClassVar[str] = "crosspost"
    topics: tuple[Topic, ...]
    payloads: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Subscribe:
    method: ClassVar[str] = "subscribe"
    topic: Topic
    filter: str | None = None
    """Only messages whose attributes it matches, in the text form of `protocol.filters`; None: all."""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    method: ClassVar[str] = "unsubscribe"
    topic: Topic


@dataclass(frozen=True, slots=True)
class Advertise:
    """Everything that will be published here on the topic matches this filter; None: anything may be."""

    method: ClassVar[str] = "advertise"
    topic: Topic
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """Nothing more is published here on the topic, until it is advertised anew."""

    method: ClassVar[str] = "unadvertise"
    topic: Topic


@dataclass(frozen=True, slots=True)
class Follow:
    """Subscribe to every topic this interest matches, present and future; None: to none any more."""

    method: ClassVar[str] = "follow"
    interest: Interest | None


@dataclass(frozen=True, slots=True)
class Expelled:
    """Incarnations of this id up to `newest` were lived already, as others know: come back as the next."""

    method: ClassVar[str] = "on_expelled"
    newest: Incarnation


@dataclass(frozen=True, slots=True)
class LinkFull:
    """The link to this peer takes nothing more for now, because the peer reads too slowly; or it has room again.
    Told to machines that have a method for it."""

    method: ClassVar[str] = "on_link_full"
    peer: NodeId
    full: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Subscribers here do not read, or read again. A machine that has no method for it is not handed what they would
    get; one that relays goes on meanwhile."""

    method: ClassVar[str] = "on_reader"
    topic: Topic
    reads: bool


@dataclass(frozen=True, slots=True)
class Leave:
    """The node ends on purpose: the machine may say goodbye; nothing else comes after it."""

    method: ClassVar[str] = "leave"


Request: TypeAlias = Publish | Crosspost | Subscribe | Unsubscribe | Advertise | Unadvertise | Follow | Leave
Input: TypeAlias = Start | Timer | PeerUp | PeerDown | LinkFull | Reader | Expelled | Request
