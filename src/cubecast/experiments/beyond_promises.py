"""What only an observer who sees the whole simulated world can judge: its clock is everybody's, and faults are known.

The promises of the checker speak of what happened before what; users care about more. What they asked to be published
is published, what they want to receive is subscribed to, a confirmed subscription misses nothing published *later*,
a node that left is left alone, nobody restarts without a reason, and a gap says what is missing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from cubecast.ids import NodeId, Topic
from cubecast.sim.swarm_run import Asked
from cubecast.trace.event import Event
from cubecast.trace.schema import Kind

MOST_ENDED = 2
"""Lives of one process that a partition may cost: its own, and that of a newcomer whose welcomes came late."""

Life = tuple[NodeId, int]
Message = tuple[Topic | None, int | None, int | None, int | None]


def requested_and_published(events: Iterable[Event], asked: Asked) -> tuple[str, ...]:
    """Per process and topic, publications are the requests: in order, none invented, none twice in one life.

    A process ends when it crashes, and then what it had queued ends with it; one that ends an incarnation by itself
    goes on, and its queue with it.
    """
    requested: dict[tuple[NodeId, Topic, int], list[tuple[float, int]]] = defaultdict(list)
    published: dict[tuple[NodeId, Topic, int], list[tuple[int, int | None]]] = defaultdict(list)
    crashes: dict[NodeId, list[float]] = defaultdict(list)
    process: Counter[NodeId] = Counter()
    for event in events:
        if event.kind == Kind.CRASH:
            crashes[event.node].append(event.time)
            process[event.node] += 1
        elif event.kind == Kind.PUBLISH and event.topic is not None:
            published[event.node, event.topic, process[event.node]].append((event.incarnation, event.digest))
    for at, node, topic, digests in asked.requests:
        number = sum(time < at for time in crashes[node])
        requested[node, topic, number] += [(at, digest) for digest in digests]
    found: list[str] = []
    for place in sorted({*requested, *published}):
        node, topic, number = place
        lives_on = node in asked.wishes and number == process[node]
        found += _differences(node, topic, requested[place], published[place], lives_on)
    return tuple(found)


def _differences(
    node: NodeId,
    topic: Topic,
    wanted: list[tuple[float, int]],
    published: list[tuple[int, int | None]],
    lives_on: bool,
) -> Iterator[str]:
    place = {digest: number for number, (_, digest) in enumerate(wanted)}
    last: dict[int, int] = {}
    seen: set[int] = set()
    for incarnation, digest in published:
        if digest not in place:
            yield f"node {node} publishes on {topic} what was not asked for"
            return
        if place[digest] <= last.get(incarnation, -1):
            yield f"node {node} publishes on {topic} in another order than was asked, or twice"
            return
        last[incarnation] = place[digest]
        seen.add(place[digest])
    missing = [number for number in range(len(wanted)) if number not in seen]
    if missing and (lives_on or missing[0] < max(seen, default=-1)):
        yield f"node {node} never publishes on {topic} what was asked at {wanted[missing[0]][0]:g}"


def wished_and_open(events: Iterable[Event], asked: Asked, interests_known: Iterable[NodeId]) -> tuple[str, ...]:
    """At rest, what applications want is subscribed to and confirmed, and nothing else is open."""
    open_at_end: dict[NodeId, dict[Topic, bool]] = defaultdict(dict)
    for event in events:
        if event.kind == Kind.START:
            open_at_end[event.node] = {}
        elif event.topic is not None and event.kind == Kind.SUBSCRIBE:
            open_at_end[event.node][event.topic] = False
        elif event.topic is not None and event.kind == Kind.SUBSCRIBED:
            open_at_end[event.node][event.topic] = True
        elif event.topic is not None and event.kind in (Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBED):
            open_at_end[event.node].pop(event.topic, None)
    found = []
    for node, topics in asked.wishes.items():
        ready = open_at_end[node]
        found += [
            f"node {node} wants {topic} and has no confirmed subscription"
            for topic in sorted(topics)
            if not ready.get(topic)
        ]
        found += [
            f"node {node} is subscribed to {topic}, which it does not want" for topic in sorted(ready.keys() - topics)
        ]
    found += [
        f"the interest of node {node} never became known" for node in asked.followers.keys() - set(interests_known)
    ]
    return tuple(found)


def traffic_to_leavers(events: Iterable[Event], asked: Asked) -> tuple[str, ...]:
    """When everything is settled, publications reach nobody who does not want them."""
    return tuple(
        f"node {event.node} does not want {event.topic} and still gets {_message(event)}"
        for event in events
        if event.kind == Kind.RECEIVE
        and event.time >= asked.epilogue_at
        and event.topic is not None
        and event.topic not in asked.wishes.get(event.node, {event.topic})
    )


def needless_restarts(events: Iterable[Event], asked: Asked) -> tuple[str, ...]:
    """A life that ends itself was suspected by a node, or a node that came back and began without it contradicts it.

    Of two sides that do not live with each other one gives way, and the newcomers' side may be the larger one: then
    the other side ends its lives, though no node ever held them faulty.
    """
    suspected: set[NodeId] = set()
    found, doubt = [], False
    for event in events:
        if event.kind == Kind.SUSPECT and event.peer is not None:
            suspected.add(event.peer)
        doubt = doubt or event.kind in (Kind.SUSPECT, Kind.CRASH)
        if event.kind == Kind.STOP:
            if not doubt:
                found.append(f"node {event.node} ended an incarnation although nobody suspected anybody")
            elif (
                event.node not in suspected
                and event.incarnation == 0
                and (event.node, event.incarnation) not in asked.contradicted
            ):
                found.append(f"node {event.node} ended its first incarnation although nobody suspected it")
    return tuple(found)


def everybody_gave_way(events: Iterable[Event], nodes: Iterable[NodeId]) -> tuple[str, ...]:
    """After a single partition, for schedules that have nothing else: one side keeps its lives."""
    ended = {event.node for event in events if event.kind == Kind.STOP}
    return ("both sides of a partition gave way",) if ended >= set(nodes) else ()


def gave_way_again_and_again(events: Iterable[Event]) -> tuple[str, ...]:
    """After a single partition, for schedules that have nothing else: who gives way joins those it gave way to, and not
    others that are about to give way as well."""
    ended = Counter(event.node for event in events if event.kind == Kind.STOP)
    return tuple(f"node {node} ended {lives} incarnations" for node, lives in ended.items() if lives > MOST_ENDED)


def convicted_by_the_slow(events: Iterable[Event], disturbed: int) -> tuple[str, ...]:
    """For schedules in which only time goes wrong, and only for these nodes (a mask): no other node is blamed."""
    return tuple(
        f"node {event.node} holds node {event.peer} faulty at {event.time:g}, which did nothing wrong"
        for event in events
        if event.kind == Kind.SUSPECT and event.peer is not None and not disturbed >> event.peer & 1
    )


def unnamed_gaps(events: Iterable[Event], asked: Asked) -> tuple[str, ...]:
    """A gap names what is missing; only at the end of an incarnation, which says it all, it names nothing.

    And what it names was published: nobody misses what never was.
    """
    ends, published, named = set(), set(), []
    for event in events:
        if event.kind == Kind.STOP:
            ends.add((event.node, event.incarnation, event.time))
        elif event.kind == Kind.PUBLISH:
            published.add(_message(event))
        elif event.kind == Kind.GAP:
            named.append(event)
    found = [
        f"node {node} announces a gap on {topic} at {at:g} that names nothing"
        for node, incarnation, topic, at in asked.unnamed_gaps
        if (node, incarnation, at) not in ends
    ]
    found += [
        f"node {event.node} misses {_message(event)}, which nobody published"
        for event in named
        if _message(event) not in published
    ]
    return tuple(found)


def missed_although_ready(events: list[Event], interests: Mapping[NodeId, tuple[float, str]]) -> tuple[str, ...]:
    """Publications of nodes that live to the end which a subscription, confirmed earlier and open to the end, misses.

    `interests` are those known at the end: since when, and how the topics they match begin.
    """
    to_the_end = {(event.node, event.incarnation) for event in events if event.kind == Kind.QUIESCENT}
    ready = _ready(events, to_the_end)
    delivered = {(event.node, _message(event)) for event in events if event.kind == Kind.DELIVER}
    missed = []
    for event in events:
        if event.kind != Kind.PUBLISH or (event.node, event.incarnation) not in to_the_end or event.topic is None:
            continue
        since = dict(ready.get(event.topic, ()))
        since |= {node: at for node, (at, begin) in interests.items() if event.topic.startswith(begin)}
        missed += [
            f"node {node}, ready for {event.topic} at {at:g}, misses {_message(event)}, published at {event.time:g}"
            for node, at in since.items()
            if at < event.time and (node, _message(event)) not in delivered
        ]
    return tuple(missed)


def _ready(events: Iterable[Event], to_the_end: set[Life]) -> dict[Topic, dict[NodeId, float]]:
    """Subscriptions of lives that last to the end and are not ended by the application: since when they are ready."""
    ready: dict[Topic, dict[NodeId, float]] = defaultdict(dict)
    for event in events:
        if event.topic is not None and (event.node, event.incarnation) in to_the_end:
            if event.kind == Kind.SUBSCRIBED:
                ready[event.topic][event.node] = event.time
            elif event.kind == Kind.UNSUBSCRIBE:
                ready[event.topic].pop(event.node, None)
    return ready


def _message(event: Event) -> Message:
    return event.topic, event.source, event.source_incarnation, event.counter
