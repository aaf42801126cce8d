"""What drivers, status and pages may ask of a machine, whatever its family.

This one is for families that tell nothing more than the contract: it answers for any machine. A family that can say
more (who lives, what is held and why, by which way messages travel) declares an inspector of its own.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from cubecast.ids import Incarnation, MessageId, NodeId, Topic


class Standing(NamedTuple):
    """What is known of a node: its newest incarnation, and whether that is held correct."""

    node: NodeId
    incarnation: Incarnation
    alive: bool


class Reached(NamedTuple):
    """How far a subscription is."""

    topic: Topic
    is_confirmed: bool
    delivered: tuple[MessageId, ...]
    """The last one of every source whose cut was stated."""


class Overlay(NamedTuple):
    """How nodes are connected, as far as a machine knows: what pages draw."""

    shape: str
    """cube (ids are corners, those that differ in one bit are neighbours), tree, or graph."""
    edges: tuple[tuple[NodeId, NodeId, str], ...] = ()
    """(from, to, label); of a cube none, ids say it all."""

    def to_json(self, most: int) -> dict[str, Any]:
        return {"shape": self.shape, "edges": [list(edge) for edge in self.edges[:most]]}


def topic_told(**known: Any) -> dict[str, Any]:
    """What status and pages read of a topic, with what this family knows: `unstable` counts messages, `window`
    publications under way and how many may be."""
    said: dict[str, Any] = {
        "members": [],
        "subscribed": False,
        "confirmed": False,
        "published": 0,
        "unstable": 0,
        "waiting": 0,
        "window": {"used": 0, "size": 0},
        "kept": 0,
        "kept_bytes": 0,
        "publishers": [],
    }
    assert known.keys() <= said.keys()
    return said | known


class Inspector:
    """To look at, not to touch."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine

    # The node

    @property
    def incarnation(self) -> Incarnation:
        found: Incarnation = self.machine.incarnation
        return found

    @property
    def is_active(self) -> bool:
        """Does it take part?"""
        return True

    @property
    def living(self) -> list[NodeId]:
        """Whom it holds to live, itself included."""
        return [self.machine.node]

    def standings(self) -> Mapping[NodeId, Standing]:
        """Everybody it has an opinion about."""
        return {}

    def waiting(self) -> list[str]:
        """What it waits for, as far as that is worth saying; none when it is at rest."""
        lines: list[str] = self.machine.waiting()
        return lines

    @property
    def is_at_rest(self) -> bool:
        return not self.waiting()

    def describe(self, now: float, most_topics: int | None = None) -> dict[str, Any]:
        in_all = len(self.topics)
        return {
            "active": self.is_active,
            "settled": True,
            "standings": [one._asdict() for one in self.standings().values()],
            "topics": self.describe_topics(self.some_topics(in_all if most_topics is None else most_topics)),
            "topics_in_all": in_all,
            "held": [],
            "waiting": self.waiting(),
        }

    # Topics

    @property
    def topics(self) -> Collection[Topic]:
        """Those it knows."""
        return ()

    def describe_topics(self, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
        """Each as `topic_told` has it."""
        published = self.published()
        return {name: topic_told(published=published.get(name, 0)) for name in names}

    def some_topics(self, most: int) -> list[Topic]:
        """Those with something under way first."""
        return list(self.topics)[:most]

    def envelope_bytes(self, topic: Topic) -> int:
        """What a publication would take at most besides its messages, where that may be much."""
        return 0

    def published(self) -> Mapping[Topic, int]:
        """How many messages this incarnation published."""
        return {}

    def reached(self) -> list[Reached]:
        return []

    def has_delivered(self, topic: Topic, message: MessageId) -> bool:
        return False

    # Ways

    def destinations(self, topic: Topic | None) -> list[NodeId]:
        """Whom a publication reaches; without a topic, everybody."""
        return []

    def reaches(self, topic: Topic, me: NodeId) -> bool:
        """May another node hear what is published there? True where nobody can say."""
        return True

    def tree(self, root: NodeId, topic: Topic | None) -> dict[NodeId, tuple[NodeId, ...]]:
        """By which way a publication of `root` travels: children by node. Empty where there is no such way."""
        return {}

    knows_whole_trees = True
    """`tree` names everybody a publication reaches; else the part of it that touches this node."""

    def streams(self, most: int) -> list[dict[str, Any]]:
        """This node's place in the tree of each publisher, where trees are all it has."""
        return []

    def remarks(self) -> list[tuple[str, str]]:
        """What else people may want to know of this node, as pairs: of what, and a text."""
        return []

    def overlay(self) -> Overlay:
        """The way of this node's publications where there is one, else its neighbours."""
        me = self.machine.node
        ways = self.tree(me, None)
        if ways:
            return Overlay("tree", tuple((node, child, "") for node, below in ways.items() for child in below))
        return Overlay("graph", tuple((me, peer, "") for peer in self.living if peer != me))

    # What is held

    def held(self, now: float) -> list[dict[str, Any]]:
        return []

    def parent(self, topic: Topic, source: NodeId) -> NodeId | None:
        """Who hands this node what the source publishes, when nothing goes wrong."""
        return None

    def outlook(self, source: NodeId, standing: str, *, connected: bool, via: NodeId | None) -> str:
        """What will happen to a message that is missing."""
        return "nothing is known about what comes next"

    # What only this family knows of its own

    def metadata(self, packet: Any) -> Mapping[str, Any] | None:
        """What travels with the messages of a publication, by part; None: it does not tell."""
        return None

    def timer(self, recorded: Any) -> Hashable:
        """The timer that was written down like this."""
        found: Hashable = tuple(recorded) if isinstance(recorded, list) else recorded
        return found

    def is_retry(self, timer: Hashable) -> bool:
        """Is what this timer makes it send a repetition?"""
        return False
