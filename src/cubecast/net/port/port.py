"""What a node offers to its user, in its own process or through a connection; where a subscription starts in the log,
as an application says it and as it travels.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec

from cubecast.errors import BadInput, CubecastError
from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.log.record import Cut, Logged

if TYPE_CHECKING:
    from cubecast.net.port.ranges import LogPiece, TopicLog, Wanted


MOST_PUBLISHERS = 20_000
"""Entries of a cut, which must fit into a frame."""

PublisherCut: TypeAlias = Mapping[tuple[Topic, NodeId, Incarnation], Counter]
"""The last message of each publisher on each topic that is known already."""


class FromBeginning(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Everything that is kept."""


class FromNow(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Nothing of the past; but what comes is read from the log whenever the reader is slow."""


class FromOffset(msgspec.Struct, frozen=True, array_like=True, tag=3):
    offset: int


class FromTime(msgspec.Struct, frozen=True, array_like=True, tag=4):
    time: float


class FromCut(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """All that is not in the cut."""

    known: list[tuple[Topic, NodeId, Incarnation, Counter]]
    resumes: bool = False
    """The subscription was served by another node before: better live with a gap than not at all."""
    is_causal: bool = False
    """What the cut holds was delivered already: what may be a cause of it is announced instead of delivered."""

    @property
    def cut(self) -> dict[tuple[Topic, NodeId, Incarnation], Counter]:
        return {(topic, source, incarnation): counter for topic, source, incarnation, counter in self.known}


Since: TypeAlias = FromBeginning | FromNow | FromOffset | FromTime | FromCut


def start(since: Any) -> Since:
    """What an application said: a whole number is an offset, a float or datetime a time, a mapping a cut."""
    match since:
        case FromBeginning() | FromNow() | FromOffset() | FromTime() | FromCut():
            return since
        case "beginning":
            return FromBeginning()
        case "now":
            return FromNow()
        case datetime():
            return FromTime(since.timestamp())
        case bool():
            pass
        case int() if 0 <= since < 1 << 63:
            return FromOffset(since)
        case float() if since == since:
            return FromTime(since)
        case Mapping():
            return from_cut(since)
    raise BadInput(
        f'since is an offset, a time (float or datetime), a cut, "beginning" or "now"; {since!r} is none of them'
    )


def from_cut(cut: PublisherCut, *, resumes: bool = False, is_causal: bool = False) -> FromCut:
    if len(cut) > MOST_PUBLISHERS:
        raise BadInput(f"a cut names at most {MOST_PUBLISHERS} publishers, not {len(cut)}")
    try:
        known = [(str(topic), int(source), int(life), int(last)) for (topic, source, life), last in cut.items()]
    except (TypeError, ValueError):
        raise BadInput("a cut maps (topic, source, incarnation) to a counter") from None
    return FromCut(known, resumes, is_causal)


def oldest_known(topic: Topic, known: Iterable[tuple[Topic, NodeId, Incarnation, Counter]]) -> Cut:
    """Of each publisher the oldest place to look behind."""
    oldest: Cut = {}
    for one, source, incarnation, counter in known:
        if one == topic:
            oldest[source] = min((incarnation, counter), oldest.get(source, (incarnation, counter)))
    return oldest


def parse(text: str) -> Since:
    """From a command line: beginning, now, an offset, or a date and time."""
    if text in ("beginning", "now"):
        return start(text)
    if text.isdecimal():
        return start(int(text))
    try:
        return start(datetime.fromisoformat(text))
    except ValueError:
        raise BadInput(f'{text!r} is no offset, no date and time, and neither "beginning" nor "now"') from None


__all__ = ["COMPLETE", "GapNotice", "Logged", "NodePort", "Port", "ProducerState", "Run", "Sink"]

COMPLETE = "the subscription is complete again: nothing is missing from here on"
"""Why the second of two gaps is announced, between which something may be missing."""


class Run(NamedTuple):
    """Consecutive messages of a publisher."""

    source: NodeId
    incarnation: Incarnation
    first: Counter
    last: Counter


@dataclass(frozen=True, slots=True)
class GapNotice:
    """Something of this subscription will not be delivered; what follows comes after it."""

    topic: Topic
    missing: tuple[MessageId, ...]
    """The messages, where they are known by name."""
    reason: str
    runs: tuple[Run, ...] = ()
    """More of them, where there may be many."""
    count: int = 0
    """How many more than those of `missing` are known to be concerned."""
    offsets: tuple[int, int] | None = None
    """The first and last offset, where they are missing in a log."""


class ProducerState(NamedTuple):
    """What a member knows of a producer."""

    numbers: dict[Topic, int]
    """The last number in the log, of the topics that it keeps."""
    others: list[str]
    """Addresses of the other members that live."""
    is_settled: bool
    """Nothing of members that are gone will be delivered here any more."""


class Sink(Protocol):
    """Where the events of one subscription go. Called in the event loop, must not block."""

    def on_batch(self, topic: Topic, first: MessageId, payloads: Sequence[bytes], logged: Logged | None = None) -> None:
        """Messages of one publisher with consecutive counters, the first one's identity given."""

    def on_ready(self) -> None:
        """Whatever is published from now on, anywhere, arrives."""

    def on_live(self, known: "PublisherCut") -> None:
        """A subscription that began in the log has caught up, it may fall behind again; what is in the log by now."""

    def on_gap(self, gap: GapNotice) -> None: ...

    def on_end(self, error: CubecastError | None) -> None:
        """Nothing comes any more: None after `unsubscribe`, an error when the port itself is lost."""


class Port(Protocol):
    def subscribe(self, pattern: str, sink: Sink, since: "Since | None" = None, where: str | None = None) -> int:
        """Open a subscription to a topic, or to all that match; the number names it in the calls below.

        With `since` it begins there in the node's log, never slows anybody down, and reads on in the log when paused.
        With `where` it gets only what this filter matches; BadInput with the column when it is none.
        """

    def unsubscribe(self, subscription: int) -> None: ...

    def pause(self, subscription: int) -> None:
        """The sink is full: send nothing more until `resume`. Publishers of the topic are slowed down."""

    def resume(self, subscription: int) -> None: ...

    def publish(self, topic: Topic, payloads: Sequence[bytes]) -> int:
        """Queue a batch; the number of messages this port has accepted for the topic so far, these included.

        Raises `BadInput` for what can never be published; never waits, so look at `has_room` first.
        """

    def ask(self, topic: Topic, payload: bytes) -> Awaitable[bool]:
        """Publish a question; done when it leaves: is there any subscriber that it is for?"""

    def advertise(self, topic: Topic, where: str | None) -> Awaitable[None]:
        """Everything published on the topic by this node will match the filter; `BadInput` where no protocol needs
        that."""

    def unadvertise(self, topic: Topic) -> Awaitable[None]: ...

    def doubt(self, accepted: range) -> tuple[int, CubecastError] | None:
        """Of messages that were accepted under these numbers: the first that was refused since, or of which nobody can
        know any more whether it was published, and why."""

    def has_room(self, topic: Topic) -> bool:
        """Is there budget for another publication on the topic?"""

    def room(self, topic: Topic) -> Awaitable[None]:
        """Done when `has_room` turned true; raises when the port closes meanwhile."""

    def stable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        """Done when the first `accepted` messages reached everybody they were for; raises `OutcomeUnknown`."""

    def durable(self, topic: Topic, accepted: int) -> Awaitable[None]:
        """Done when the first `accepted` messages are on the disk of the node's log; raises `NotDurable`.

        With 0 it only asks whether that could be: `BadInput` when the node does not log the topic.
        """

    def read_log(
        self, topic: Topic, start: int | None, stop: int | None, wanted: "Wanted" = ...
    ) -> Awaitable["LogPiece"]:
        """The first piece of a range of offsets in the node's log; without limits all there is by now."""

    def log_topics(self, after: Topic = "") -> Awaitable[list["TopicLog"]]:
        """What is in the node's log, of topics whose names come after this one; not all of them when they are many."""

    def log_cut(self, topic: Topic, offset: int) -> Awaitable["PublisherCut"]:
        """What the node's log has of the topic up to this offset, as a cut."""

    def log_place(self, topic: Topic, cut: "PublisherCut") -> Awaitable[int]:
        """The first offset in the node's log of a message of the topic that is not in the cut."""

    def log_at(self, topic: Topic, at: float) -> Awaitable[int]:
        """The first offset in the node's log of a message delivered at that time or later."""

    def log_reach(self, topic: Topic, cut: "PublisherCut") -> Awaitable[int]:
        """The first offset in the node's log behind all of its messages that are in the cut."""

    def status(self) -> Awaitable[dict[str, Any]]:
        """What the node says about itself: members, topics, queues, held messages."""

    def close(self) -> Awaitable[None]: ...


class NodePort(Port, Protocol):
    """A node's own, which gateways hand out."""

    def read_log_packed(
        self, topic: Topic, start: int | None, stop: int | None, wanted: "Wanted" = ...
    ) -> Awaitable[bytes]:
        """As `read_log`, ready to be sent."""

    def register_producer(
        self, name: str, epoch: int, topics: Sequence[Topic], on_fenced: Callable[[str], None]
    ) -> Awaitable[ProducerState]:
        """Take over a producer's name; who had it is told. What the node knows of it, when all of that is durable."""

    def forget_producer(self, on_fenced: Callable[[str], None]) -> None:
        """Who registered so is gone."""
