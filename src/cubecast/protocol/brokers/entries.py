"""What stands in a broker's tables: publishers, subscriptions, and those of its own clients."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from cubecast.ids import Counter, Incarnation, NodeId, Topic
from cubecast.protocol.brokers.packets import PublisherId
from cubecast.protocol.filters import Filter

Source = tuple[NodeId, Incarnation]
Side = NodeId | None
"""The neighbour something is behind; None: it is here."""


@dataclass(slots=True)
class Advertisement:
    topic: Topic
    template: Filter
    side: Side
    count: Counter
    """Events published here, where the publisher is local; else what it had published when it advertised."""
    known: bool = False
    echoes: set[NodeId] = field(default_factory=set)
    echoed: bool = False
    passed_over: set[NodeId] = field(default_factory=set)
    """Brokers that were taken back when this was under way: who is behind them counts instead."""


@dataclass(slots=True)
class Entry:
    """A subscription in a broker's table."""

    wanted: Filter
    side: Side
    issued: set[NodeId] = field(default_factory=set)


class Wanted(NamedTuple):
    """What a subscription wants of an event: pieces of consecutive messages, each with the counter of its first."""

    topic: Topic
    publisher: PublisherId
    first: Counter
    last: Counter
    """Of the whole event."""
    pieces: list[tuple[Counter, list[bytes]]]


@dataclass(slots=True)
class Local:
    """A subscription of this broker's clients: where it begins, per publisher, and what waits for that."""

    topic: Topic
    cut: dict[PublisherId, Counter] = field(default_factory=dict)
    partial: set[PublisherId] = field(default_factory=set)
    floor: dict[PublisherId, Counter] = field(default_factory=dict)
    stated: set[Source] = field(default_factory=set)
    """Brokers for which it was told where the subscription begins: once, also where one advertises anew."""
    last: dict[PublisherId, Counter] = field(default_factory=dict)
    """The last event that was delivered."""
    over: dict[Source, Counter] = field(default_factory=dict)
    """Where it would have begun for publishers that ended before that was known."""
    queue: deque[Wanted] = field(default_factory=deque)
    is_read: bool = True
    """Its clients take what comes."""
