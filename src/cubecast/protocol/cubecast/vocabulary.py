"""The words of packets: sets of nodes, lives, subscriptions, dependencies.

Sets of nodes travel as little-endian bit maps without trailing zero bytes: N/8 bytes at most.
"""

from typing import NamedTuple, TypeAlias

from cubecast.ids import Counter, Incarnation, NodeId, Topic

Bitmap: TypeAlias = bytes


def bitmap(mask: int) -> Bitmap:
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def mask_from(bits: Bitmap) -> int:
    return int.from_bytes(bits, "little")


class Life(NamedTuple):
    """One incarnation of a node."""

    node: NodeId
    incarnation: Incarnation


class Member(NamedTuple):
    """One subscription of a node: the epoch is the incarnation, then the number of the subscription in it, from 1."""

    node: NodeId
    incarnation: Incarnation
    number: int


class Entry(NamedTuple):
    """What is known of a node in a topic's view: its newest subscription, and whether it is still on."""

    node: NodeId
    incarnation: Incarnation
    number: int
    subscribed: bool


class Standing(NamedTuple):
    """What is known of a node: its newest incarnation, and whether that is held correct."""

    node: NodeId
    incarnation: Incarnation
    alive: bool


class Start(NamedTuple):
    """These members were addressed by this source for the first time by the publication that opens with `counter`."""

    counter: Counter
    members: Bitmap


class Dependency(NamedTuple):
    """A publication (by its last counter) to be delivered first, except by the excused; `starts` as it carried them."""

    source: NodeId
    incarnation: Incarnation
    counter: Counter
    excused: Bitmap
    starts: tuple[Start, ...]


class Holding(NamedTuple):
    """Publications of a faulty source that a node has, and whether it knows all their destinations to have them."""

    topic: Topic
    source: NodeId
    incarnation: Incarnation
    done: bool
    ranges: tuple[tuple[Counter, Counter], ...]


class Reach(NamedTuple):
    """A life published that far on a topic, as the sender knows."""

    node: NodeId
    incarnation: Incarnation
    counter: Counter


class Since(NamedTuple):
    """The first message a publisher could have meant for a subscription of the receiver's, and that subscription."""

    epoch: Incarnation
    number: int
    incarnation: Incarnation
    counter: Counter


class Run(NamedTuple):
    """Consecutive messages of one incarnation of the receiver."""

    incarnation: Incarnation
    first: Counter
    last: Counter
