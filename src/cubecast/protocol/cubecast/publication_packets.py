"""The packets every message travels in. Apart from the others because these are compiled where anything is: what is
read with every message should be found without a look-up. So they derive from nothing, and say themselves what a
`contract.Packet` has; the `__init__` is written out because one that a dataclass generates is interpreted all the same.
Follows decision 0036.
"""

from dataclasses import dataclass, field, fields

from cubecast.ids import Counter, Incarnation, MessageId, NodeId, Topic
from cubecast.protocol.contract import Carried
from cubecast.protocol.cubecast.vocabulary import Bitmap, Dependency, Life, Member, Start


@dataclass(slots=True)
class Publication:
    """A batch of messages with consecutive counters, one barrier and one set of destinations, fixed by the source."""

    by: Incarnation
    dead: tuple[Life, ...]
    topic: Topic
    message: MessageId
    payloads: tuple[bytes, ...]
    members: Bitmap
    epochs: tuple[Member, ...]
    """Of the destinations that are not in their first epoch."""
    starts: tuple[Start, ...]
    dependencies: tuple[Dependency, ...]
    stable: Counter
    """All of the source's publications up to this one reached everybody they were for."""
    hurry: bool
    """Whether the source waits for the acknowledgement; otherwise it may be kept until there are more."""
    frame: bytes | None = field(default=None, init=False, repr=False, compare=False)
    born: float = field(default=0.0, init=False, repr=False, compare=False)
    publication: bool = field(default=True, init=False, repr=False, compare=False)
    bundle: bool = field(default=False, init=False, repr=False, compare=False)

    def __init__(
        self,
        by: Incarnation,
        dead: tuple[Life, ...],
        topic: Topic,
        message: MessageId,
        payloads: tuple[bytes, ...],
        members: Bitmap,
        epochs: tuple[Member, ...],
        starts: tuple[Start, ...],
        dependencies: tuple[Dependency, ...],
        stable: Counter,
        hurry: bool = False,
    ) -> None:
        self.by = by
        self.dead = dead
        self.topic = topic
        self.message = message
        self.payloads = payloads
        self.members = members
        self.epochs = epochs
        self.starts = starts
        self.dependencies = dependencies
        self.stable = stable
        self.hurry = hurry
        self.frame = None
        self.born = 0.0
        self.publication = True
        self.bundle = False

    def carried(self) -> tuple[Carried, ...]:
        return (Carried(self.topic, self.message, len(self.payloads)),)

    def mentions(self) -> tuple[NodeId, ...]:
        return ()


@dataclass(slots=True, init=False)
class Direct(Publication):
    """A publication that its source sends to everybody itself: a receiver hands it on to nobody, answers for itself."""

    def handed_on(self) -> Publication:
        """As it travels when its source is faulty and others take it further."""
        return Publication(*(getattr(self, one.name) for one in fields(self) if one.init))
