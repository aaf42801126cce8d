"""Looks at each row once, in an order in which causes come first, and says where something may be wrong.

It is made to be quick and to miss nothing that a longer run could not explain: K0 to K3, P1, P1b, P2, P5 to P8, P10 and
P11. What it points at is then decided by the reference checker on the rows of that topic; so a suspicion that is
unfounded costs time and nothing else. Follows decision 0062.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cubecast.check.follow.topics import FollowedMessage, FollowedSubscription, FollowedTopic, Line, LogTopic, Publisher
from cubecast.trace.schema import Kind

ENDS = (Kind.STOP, Kind.CRASH, Kind.QUIESCENT)
DELIVER = str(Kind.DELIVER)


@dataclass(frozen=True)
class Suspicion:
    topic: str
    node: int
    incarnation: int
    reason: str
    is_an_end: bool = False
    """Nothing looks wrong, but something can be decided that could not be before."""


@dataclass
class Node:
    """What was read of a node's journal and not looked at yet."""

    node: int
    incarnation: int = 0
    waiting: deque[list[Any]] = field(default_factory=deque)
    waits_for: tuple[str, Publisher, int] | None = None
    has_ended: bool = False
    rows: int = 0
    time: float = 0.0

    @property
    def log(self) -> Publisher:
        return self.node, self.incarnation


class Wait(Exception):  # noqa: N818 - a state, not an accident
    """A cause is not there yet: topic, publisher, counter."""


class Certifier:
    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, FollowedTopic] = {}
        self.suspicions: list[Suspicion] = []
        self.rows = 0
        self._ready: deque[Node] = deque()
        self._blocked: defaultdict[tuple[str, Publisher], list[Node]] = defaultdict(list)

    def add(self, node: int, lines: Iterable[list[Any]]) -> None:
        """Lines of a journal, in their order: kind, time, and what the kind has."""
        one = self.nodes.get(node) or self.nodes.setdefault(node, Node(node))
        one.waiting.extend(lines)
        if one.waits_for is None and one.waiting:
            self._ready.append(one)

    def run(self) -> None:
        """As far as causes are there."""
        while self._ready:
            node = self._ready.popleft()
            try:
                while node.waiting:
                    self._take(node, node.waiting[0])
                    node.waiting.popleft()
            except Wait as wait:
                topic, publisher, counter = wait.args
                node.waits_for = topic, publisher, counter
                self._blocked[topic, publisher].append(node)

    def _take(self, node: Node, line: list[Any]) -> None:
        kind, node.time = line[0], line[1]
        if kind == DELIVER and len(line) >= 7:  # nearly every line is one
            many = line[6]
            self._deliver(node, line[2], (line[3], line[4]), line[5], many, line[7] if len(line) > 7 else None)
        else:
            many = self._take_other(node, kind, line[2:])
        if node.has_ended and kind not in (*ENDS, Kind.START):
            for topic in self.topics:
                self._suspect(topic, node, f"says {kind} after its end")
        node.rows += many
        self.rows += many

    def _take_other(self, node: Node, kind: str, values: list[Any]) -> int:
        """How many rows it is."""
        match kind, values:
            case Kind.PUBLISH, [topic, first, count, _, *told]:
                self._publish(node, topic, first, count, told[0] if told else None)
                return int(count)
            case Kind.START, [incarnation, *_]:
                self._start(node, incarnation)
            case "base", [published, *_]:
                for topic, last in published.items():
                    self._topic(topic).of(node.log).last = self._topic(topic).of(node.log).forgotten = last
            case ((Kind.SUBSCRIBE | Kind.CUT | Kind.SUBSCRIBED | Kind.UNSUBSCRIBE | Kind.UNSUBSCRIBED), [topic, *told]):
                states = kind in (Kind.CUT, Kind.SUBSCRIBED)
                self._subscription(node, kind, topic, told[0] if told and states else ())
            case Kind.GAP, [topic, missing, *_]:
                self._gap(node, topic, missing)
            case Kind.ACKNOWLEDGED, [topic, last, *_]:
                if last > self._topic(topic).of(node.log).last:
                    self._suspect(topic, node, f"acknowledges {last}, which it has not published")
            case Kind.FAILED, [topic, first, count, *_]:
                self._failed(node, topic, first, first + count - 1)
            case ((Kind.STOP | Kind.CRASH | Kind.QUIESCENT), _):
                node.has_ended = True
                self._end(node, kind)
        return 1

    def _topic(self, name: str) -> FollowedTopic:
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = FollowedTopic()
        return found

    def _suspect(self, topic: str, node: Node, reason: str) -> None:
        self.suspicions.append(Suspicion(topic, node.node, node.incarnation, reason))

    # Lives

    def _end(self, node: Node, kind: str) -> None:
        """Of a log that ended at rest it can be said what it lacks."""
        for name, topic in self.topics.items() if kind == Kind.QUIESCENT else ():
            if node.log in topic.logs:
                self.suspicions.append(Suspicion(name, *node.log, "it ended", is_an_end=True))

    def _start(self, node: Node, incarnation: int) -> None:
        """A new life: earlier ones of the node are over, and what they delivered is not to come again."""
        for topic in self.topics.values():
            ended = topic.logs.pop(node.log, None) if incarnation != node.incarnation else None
            if ended is not None:
                before = topic.before.setdefault(node.node, {})
                for publisher, (first, last) in ended.delivered.items():
                    low, high = before.get(publisher, (first, last))
                    before[publisher] = min(low, first), max(high, last)
        node.incarnation, node.has_ended = incarnation, False

    # Publications

    def _publish(self, node: Node, name: str, first: int, count: int, digests: list[int] | None) -> None:
        topic = self._topic(name)
        told, log = topic.of(node.log), topic.log(node.log)
        if first != told.last + 1:
            self._suspect(name, node, f"publishes {first} behind {told.last}")
        told.last = first + count - 1
        told.lines.append(Line(first, told.last, tuple(log.new.items()), digests or None))
        log.new = {}
        log.past[node.log] = told.last
        topic.lines += 1
        if topic.lines > 64 + len(topic.logs):
            topic.forget()
        for one in self._blocked.pop((name, node.log), ()):
            one.waits_for = None
            self._ready.append(one)

    def _failed(self, node: Node, name: str, first: int, last: int) -> None:
        topic = self._topic(name)
        topic.of(node.log).failed.append((first, last))
        if any(log.delivered.get(node.log, (0, 0))[1] >= first for log in topic.logs.values()):
            self._suspect(name, node, f"{first} to {last} reached nobody, and were delivered")

    # Deliveries

    def _deliver(
        self, node: Node, name: str, publisher: Publisher, first: int, count: int, digests: Sequence[int] | None
    ) -> None:
        topic, last = self._topic(name), first + count - 1
        told, log = topic.of(publisher), topic.log(node.log)
        if last > told.last:
            raise Wait(name, publisher, last)
        if _is_next(topic, told, log, node.node, publisher, (first, last), digests):
            return
        known = told.digests(first, last) if digests else None
        if known is not None and known != digests:
            self._suspect(name, node, f"delivers other bytes than {publisher} published as {first} to {last}")
        if told.failed and any(low <= last and first <= high for low, high in told.failed):
            self._suspect(name, node, f"delivers {first} to {last} of {publisher}, which failed")
        low, high = topic.before.get(node.node, {}).get(publisher, (1, 0))
        if first <= high and last >= low:
            self._suspect(name, node, f"delivers {first} of {publisher} again in another life")
        if log.subscription is None:
            self._suspect(name, node, f"delivers {first} of {publisher} without a subscription")
        else:
            self._check(node, name, log.subscription, told, publisher, first, last)
        self._learn(log, told, publisher, first, last)

    def _learn(self, log: LogTopic, told: FollowedMessage, publisher: Publisher, first: int, last: int) -> None:
        past, new = log.past, log.new
        for cause, counter in told.causes(past.get(publisher, 0), last):
            if counter > past.get(cause, 0):
                past[cause] = new[cause] = counter
        if last > past.get(publisher, 0):
            past[publisher] = new[publisher] = last
        begin, end = log.delivered.get(publisher, (first, last))
        log.delivered[publisher] = (first if first < begin else begin), (last if last > end else end)

    def _check(
        self,
        node: Node,
        name: str,
        one: FollowedSubscription,
        told: FollowedMessage,
        publisher: Publisher,
        first: int,
        last: int,
    ) -> None:
        got = one.got.get(publisher, 0)
        if first <= got:
            self._suspect(name, node, f"delivers {first} of {publisher} behind {got}")
        excused = one.excused.get(publisher)
        if excused and not excused.isdisjoint(range(first, last + 1)):
            self._suspect(name, node, f"delivers of {publisher} what it was told it misses")
        if first > got + 1 and not (excused and excused.issuperset(range(got + 1, first))):
            self._suspect(name, node, f"delivers {first} of {publisher} without {got + 1}")
        if one.needed.pop(publisher, 0) >= first:
            self._suspect(name, node, f"delivers {first} of {publisher} after what depends on it")
        for cause, counter in told.causes(got, last):
            if cause != publisher and counter > one.got.get(cause, 0):
                self._missing(node, name, one, cause, counter, f"{first} to {last} of {publisher}")
        one.got[publisher] = max(got, last)
        if excused:
            one.excused[publisher] = {counter for counter in excused if counter > last}

    def _missing(
        self, node: Node, name: str, one: FollowedSubscription, cause: Publisher, counter: int, what: str
    ) -> None:
        """A cause that the subscription does not have: wrong, unless it owes nothing of that publisher."""
        excused = one.excused.get(cause, ())
        if cause in one.got:
            if not all(number in excused for number in range(one.got[cause] + 1, counter + 1)):
                self._suspect(name, node, f"delivers {what} without {counter} of {cause}, which came before")
        elif not (excused and all(number in excused for number in range(1, counter + 1))):
            one.needed[cause] = max(one.needed.get(cause, 0), counter)

    def _gap(self, node: Node, name: str, missing: Iterable[Sequence[int]]) -> None:
        subscription = self._topic(name).log(node.log).subscription
        for source, incarnation, counter in missing:
            if subscription is not None:
                if subscription.got.get((source, incarnation), 0) >= counter:
                    self._suspect(name, node, f"misses {counter} of {(source, incarnation)}, which it has")
                subscription.excused.setdefault((source, incarnation), set()).add(counter)

    # Subscriptions

    def _subscription(self, node: Node, kind: str, name: str, cut: Sequence[Sequence[int]] | None) -> None:
        topic = self._topic(name)
        for source, incarnation, counter in cut or ():
            if counter > topic.of((source, incarnation)).last:
                raise Wait(name, (source, incarnation), counter)
        log = topic.log(node.log)
        one = log.subscription
        if (one is None) != (kind == Kind.SUBSCRIBE):
            self._suspect(name, node, f"says {kind} while {'nothing' if one is None else 'a subscription'} is open")
        if kind == Kind.SUBSCRIBE:
            log.subscription = FollowedSubscription()
        elif kind == Kind.UNSUBSCRIBED:
            log.subscription = None
        elif one is not None:
            again = (
                one.is_confirmed if kind == Kind.SUBSCRIBED else one.is_leaving if kind == Kind.UNSUBSCRIBE else False
            )
            if again:
                self._suspect(name, node, f"says {kind} twice")
            one.is_leaving = one.is_leaving or kind == Kind.UNSUBSCRIBE
            if kind == Kind.SUBSCRIBED:
                one.is_confirmed = True
                one.published = {publisher: told.last for publisher, told in topic.published.items()}
            self._state(node, name, topic, one, cut or ())

    def _state(
        self, node: Node, name: str, topic: FollowedTopic, one: FollowedSubscription, cut: Sequence[Sequence[int]]
    ) -> None:
        for source, incarnation, counter in cut:
            publisher = source, incarnation
            if publisher in one.stated or publisher in one.got or counter < 0:
                self._suspect(name, node, f"states where it begins with {publisher} twice, late, or wrongly")
            if one.is_confirmed and counter > one.published.get(publisher, 0):
                self._suspect(name, node, f"begins behind {counter} of {publisher}, perhaps of after its confirmation")
            if one.needed.pop(publisher, 0) > counter:
                self._suspect(name, node, f"begins with {counter} of {publisher} behind what depends on more of it")
            one.stated[publisher] = counter
            one.got[publisher] = max(one.got.get(publisher, 0), counter)
        for publisher, counter in one.stated.items() if cut else ():
            for cause, number in topic.of(publisher).causes(0, counter) if counter > 0 else ():
                if cause != publisher and cause not in one.stated and cause in one.got:
                    self._suspect(
                        name, node, f"begins behind {counter} of {publisher}, and not behind {number} of {cause}"
                    )
                elif cause != publisher and number > one.got.get(cause, 0):
                    self._missing(node, name, one, cause, number, f"behind {counter} of {publisher}")


def _is_next(
    topic: FollowedTopic,
    told: FollowedMessage,
    log: LogTopic,
    node: int,
    publisher: Publisher,
    span: tuple[int, int],
    digests: Sequence[int] | None,
) -> bool:
    """Is it what nearly every delivery is, all of the publisher's next line, with nothing to say against it?

    Then the line is looked up once and its causes are gone through once. What is learned here stays true otherwise.
    """
    one, line, (first, last) = log.subscription, told.line(span[0]), span
    if (
        one is None
        or line is None
        or line.first != first
        or line.last != last
        or one.got.get(publisher, 0) != first - 1
        or log.past.get(publisher, 0) < first - 1
        or (digests and line.digests and digests != line.digests)
        or told.failed
        or publisher in one.needed
        or (one.excused and one.excused.get(publisher))
        or (topic.before and publisher in topic.before.get(node, ()))
    ):
        return False
    got, past, new, is_missing = one.got, log.past, log.new, False
    for cause, counter in line.adds:
        if counter > got.get(cause, 0) and cause != publisher:
            is_missing = True
        if counter > past.get(cause, 0):
            past[cause] = new[cause] = counter
    if is_missing:
        return False
    got[publisher] = last
    if last > past.get(publisher, 0):
        past[publisher] = new[publisher] = last
    begin, end = log.delivered.get(publisher, span)
    log.delivered[publisher] = (first if first < begin else begin), (last if last > end else end)
    return True
