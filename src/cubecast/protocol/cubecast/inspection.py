"""What a node can tell about itself without changing anything: who lives, and per topic what is under way and held.

Plain lists and dictionaries of numbers and text, so that drivers can hand them on as they are. A node does nothing else
meanwhile, and there is no limit to its topics: so none of this looks at all of them but what is said once in a life.
Topics with something under way are known to the node, because it looks after them; at most so many are described.
"""

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from cubecast.ids import MessageId, NodeId, Topic
from cubecast.protocol.cubecast.delivery import Delivery
from cubecast.protocol.cubecast.lifetime import Lifetime
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.cubecast.vocabulary import Life, Standing
from cubecast.protocol.masks import ids_of

MOST_LOOKED_AT: Final = 5000
"""Topics with something under way; a look at one takes some microseconds."""
MOST_LINES: Final = 1000
"""Of what is waited for."""


def describe(life: Lifetime, now: float, most: int | None = None) -> dict[str, Any]:
    """At most so many topics."""
    registry, busy = life.context.registry, under_way(life)
    return {
        "active": life.joining is None,
        "settled": not life.settlement.open,
        "standings": [one._asdict() for one in registry.standings()],
        "topics": describe_topics(life, some_topics(life, busy, most)),
        "topics_in_all": len(life.topics),
        "held": describe_held(life, now, busy),
        "waiting": list(islice(lines_of_waiting(life, busy), MOST_LINES)),
    }


def under_way(life: Lifetime) -> list[Topic]:
    """Topics of which something is queued, kept or held here, or asked of the others; so many of them at most."""
    looked_after = dict.fromkeys(chain(life.queued, life.context.stirring))
    return [name for name in islice(looked_after, MOST_LOOKED_AT) if life.topics[name].queue or life.topics[name].busy]


def some_topics(life: Lifetime, first: Iterable[Topic], most: int | None) -> list[Topic]:
    """The first ones, and of others, as far as there is room, those that are known for longest; by name."""
    if most is None or len(life.topics) <= most:
        return sorted(life.topics)
    chosen = nsmallest(most, first)
    return sorted(islice(dict.fromkeys(chain(chosen, islice(life.topics, most))), most))


def describe_topics(life: Lifetime, names: Iterable[Topic]) -> dict[Topic, dict[str, Any]]:
    return {name: _topic(life, life.topics[name]) for name in names}


def describe_held(life: Lifetime, now: float, names: Iterable[Topic]) -> list[dict[str, Any]]:
    return [one for name in sorted(names) for one in _held(life, name, now)]


def describe_waiting(life: Lifetime, most: int = MOST_LINES) -> list[str]:
    """What this node waits for, so many lines at most; none when it is at rest."""
    return list(islice(lines_of_waiting(life, under_way(life)), most))


def lines_of_waiting(life: Lifetime, names: Iterable[Topic]) -> Iterator[str]:
    """In general and in these topics."""
    lines = [] if life.joining is None else [f"joining: waits for nodes {life.joining.missing}"]
    if life.unmet:
        lines.append(
            f"introductions: nodes {list(ids_of(life.unmet))} did not say yet that they began knowing this one"
        )
    reports, lives = life.context.process.reports, life.context.registry.lives
    if life.joining is None and reports.is_owed(lives):
        told = sorted({node for node, _, _ in reports.owed(lives)})
        lines.append(f"missing messages: nodes {told} were not told yet that theirs are")
    yield from lines + life.settlement.waiting() + life.inquiry.waiting() + life.subscribing.waiting()
    for name in names:
        yield from life.topics[name].waiting()


def destinations(life: Lifetime, topic: Topic | None) -> list[NodeId]:
    """Whom a publication reaches: on a topic those who want it, otherwise everybody who lives."""
    registry, state = life.context.registry, None if topic is None else life.topics.get(topic)
    wanted = 0 if state is None else state.view.destinations(registry).mask
    return list(ids_of(registry.alive if topic is None else wanted))


class Reached(NamedTuple):
    """How far a subscription is."""

    topic: Topic
    is_confirmed: bool
    delivered: tuple[MessageId, ...]
    """The last one of every source whose cut was stated."""


def reached(life: Lifetime) -> list[Reached]:
    return [
        Reached(name, topic.confirmed, tuple(MessageId(*source, last) for source, last in topic.delivery.stated()))
        for name, topic in sorted(life.topics.items())
        if topic.delivery is not None
    ]


def published(life: Lifetime) -> dict[Topic, int]:
    """How many messages this incarnation published, per topic."""
    return {name: topic.counter for name, topic in sorted(life.topics.items()) if topic.counter}


def standings(life: Lifetime) -> dict[NodeId, Standing]:
    """Everybody ever heard of."""
    return {one.node: one for one in life.context.registry.standings()}


def has_delivered(life: Lifetime, topic: Topic, message: MessageId) -> bool:
    """Delivered here, or declared lost, or from before this subscription."""
    state = life.topics.get(topic)
    if state is None or state.delivery is None:
        return False
    return state.delivery.last_delivered(Life(message.source, message.incarnation)) >= message.counter


def _topic(life: Lifetime, topic: TopicState) -> dict[str, Any]:
    """`unstable` counts messages, `window` publications, that is batches."""
    copies = list(topic.dissemination.copies())
    return {
        "members": list(ids_of(topic.view.destinations(life.context.registry).mask)),
        "subscribed": topic.delivery is not None,
        "confirmed": topic.confirmed,
        "published": topic.counter,
        "unstable": topic.counter - topic.stable,
        "waiting": len(topic.queue),
        "window": {"used": topic.unstable, "size": life.context.parameters.window},
        "kept": len(copies),
        "kept_bytes": sum(len(payload) for copy in copies for payload in copy.packet.payloads),
        "publishers": [] if topic.delivery is None else _publishers(topic.delivery),
    }


def _publishers(delivery: Delivery) -> list[dict[str, Any]]:
    """How far the subscription is with each source, and how many of its messages have arrived and wait."""
    lag: dict[tuple[int, int], int] = {}
    for _, _, copy in delivery.held():
        lag[copy.source] = lag.get(copy.source, 0) + len(copy.packet.payloads)
    return [
        {"node": source.node, "incarnation": source.incarnation, "delivered": last, "lag": lag.get(source, 0)}
        for source, last in delivery.progress()
    ]


def _held(life: Lifetime, topic: Topic, now: float) -> list[dict[str, Any]]:
    """Oldest first. `waits_for` is the dependency it waits for at present; there may be more. `first_missing` is the
    first message of that source that is not delivered here, `source` how this node holds it."""
    delivery = life.topics[topic].delivery
    if delivery is None:
        return []
    held = [
        {
            "topic": topic,
            "message": list(copy.packet.message),
            "messages": len(copy.packet.payloads),
            "bytes": sum(map(len, copy.packet.payloads)),
            "waits_for": [*source, counter],
            "first_missing": [*source, min(counter, delivery.last_delivered(source) + 1)],
            "source": _standing(life, source),
            "for": now - copy.packet.born,
        }
        for source, counter, copy in delivery.held()
    ]
    return sorted(held, key=lambda one: (-one["for"], one["message"]))


def _standing(life: Lifetime, source: Life) -> str:
    if life.context.is_closed(source):
        return "settled"
    if life.context.registry.is_dead(source):
        return "faulty"
    return "alive" if life.context.registry.is_alive(*source) else "unknown"
