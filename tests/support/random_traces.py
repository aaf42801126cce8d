"""Small traces that are well formed but mostly wrong: anything may be delivered, excluded, claimed or lost."""

import json
import random

from cubecast.ids import MessageId
from cubecast.trace.event import Event, Inside
from cubecast.trace.reader import Trace
from support.model_traces import ALL_PROMISES, header

ENDS = ("quiescent", "quiescent", "quiescent", "stop", "crash")
FILTERS = {
    "n >= 2": lambda given: given.get("n", 0) >= 2,
    "n = 1 or exists(word)": lambda given: given.get("n") == 1 or "word" in given,
    "not exists(n) and word ^= 'a'": lambda given: "n" not in given and given.get("word", "").startswith("a"),
    "topic in ('a', 'c') and n not in (2, 3.0)": lambda given: (
        given["topic"] == "a" and given.get("n", 2) not in (2, 3)
    ),
}
"""As text, and what each means."""
ATTRIBUTES = (None, {"n": 1}, {"n": 2}, {"n": 3.0}, {"n": 2, "word": "b"}, {"word": "ab"}, {})


class RandomWorld:
    """Time is shared, so nothing is delivered before it is published, unless it never is."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.logs: dict[int, list[Event]] = {node: [] for node in range(rng.randint(2, 4))}
        self.topics = ("a", "b")[: rng.randint(1, 2)]
        self.published: dict[str, list[MessageId]] = {topic: [] for topic in self.topics}
        self.open: set[tuple[int, str]] = set()
        self.leaving: set[tuple[int, str]] = set()
        self.confirmed: set[tuple[int, str]] = set()
        self.known_sources: dict[tuple[int, str], set[int]] = {}
        self.filtering = rng.random() < 0.4

    def run(self, short: bool) -> list[Event]:
        actions = [self.publish] * 5 + [self.deliver] * 8 + [self.subscription] * 4 + [self.cut] * 3
        actions += [self.gap, self.receive, self.discard, self.acknowledge, self.fail]
        for _ in range(self.random.randint(5, 80)):
            node, topic = self.random.choice(list(self.logs)), self.random.choice(self.topics)
            self.random.choice(actions)(node, topic)
        for node in self.logs:
            if not (short and self.random.random() < 0.4):
                self.log(node, self.random.choice(ENDS), None)
        return [event for log in self.logs.values() for event in log]

    def log(self, node: int, kind: str, topic: str | None, message: MessageId | None = None, **rest: object) -> None:
        source, incarnation, counter = message if message is not None else (None, None, None)
        event = Event(node, 0, len(self.logs[node]), 0.0, kind, topic, source, incarnation, counter)
        if message is not None and kind in ("publish", "deliver"):
            event = event._replace(digest=self.random.choices((counter, 0, None, -2), (90, 3, 5, 2))[0])
        self.logs[node].append(event._replace(**rest))

    def publish(self, node: int, topic: str) -> None:
        known = self.published[topic]
        message = MessageId(node, 0, 1 + sum(m.source == node for m in known))
        delivered = [
            MessageId(e.source, 0, e.counter) for e in self.logs[node] if e.kind == "deliver" and e.topic == topic
        ]
        pool = delivered if self.random.random() < 0.8 else known
        count = len(pool) if self.random.random() < 0.6 else self.random.randint(0, len(pool))
        told = self.random.choice(ATTRIBUTES) if self.filtering else None
        attributes = None if told is None else json.dumps(told)
        self.log(node, "publish", topic, message, deps=tuple(self.random.sample(pool, count)), attributes=attributes)
        known.append(message)

    def deliver(self, node: int, topic: str) -> None:
        if (node, topic) not in self.open and self.random.random() < 0.95:
            return
        here = [e for e in self.logs[node] if e.kind == "deliver" and e.topic == topic]
        fresh = [m for m in self.published[topic] if all(e[6:9] != m for e in here)]
        pool = fresh if self.random.random() < 0.9 else self.published[topic]
        if pool:
            message = pool[0] if self.random.random() < 0.6 else self.random.choice(pool)
            if self.random.random() < 0.02:
                message = message._replace(counter=message.counter + 20)
            if message not in self.published[topic] and message.source == node:
                return
            self.known_sources.setdefault((node, topic), set()).add(message.source)
            self.log(node, "deliver", topic, message)

    def subscription(self, node: int, topic: str) -> None:
        key = (node, topic)
        if key not in self.open:
            self.open.add(key)
            self.known_sources[key] = set()
            wants = self.random.choice((None, *FILTERS)) if self.filtering else None
            self.log(node, "subscribe", topic, filter=wants)
        elif key not in self.confirmed:
            self.confirmed.add(key)
            self.log(node, "subscribed", topic)
        elif key not in self.leaving:
            self.leaving.add(key)
            self.log(node, "unsubscribe", topic)
        else:
            for group in (self.open, self.confirmed, self.leaving):
                group.discard(key)
            self.log(node, "unsubscribed", topic)

    def cut(self, node: int, topic: str) -> None:
        sources = [n for n in self.logs if n not in self.known_sources.get((node, topic), set())]
        if (node, topic) in self.open and sources:
            source = self.random.choice(sources)
            self.known_sources[node, topic].add(source)
            published = sum(m.source == source for m in self.published[topic])
            counter = self.random.choice((0, published, self.random.randint(0, published + 1)))
            self.log(node, "cut", topic, cut=(MessageId(source, 0, counter),))

    def gap(self, node: int, topic: str) -> None:
        self.about("gap", node, topic)

    def receive(self, node: int, topic: str) -> None:
        """A packet with messages of any publishers; now and then its row tells only the first, or several topics."""
        if not self.published[topic]:
            return
        several = self.random.random() < 0.2
        messages = [self.random.choice(self.published[topic]) for _ in range(self.random.randint(1, 3))]
        inside = tuple(Inside(*message, topic if several else None) for message in messages)
        first = None if several else messages[0]
        told = inside if several or self.random.random() < 0.8 else None
        self.log(node, "receive", None if several else topic, first, messages=told)

    def discard(self, node: int, topic: str) -> None:
        self.about("discard", node, topic)

    def about(self, kind: str, node: int, topic: str, **rest: object) -> None:
        if self.published[topic]:
            self.log(node, kind, topic, self.random.choice(self.published[topic]), **rest)

    def acknowledge(self, node: int, topic: str) -> None:
        for message in self.published[topic]:
            if message.source == node:
                self.log(node, "acknowledged", topic, message)

    def fail(self, node: int, topic: str) -> None:
        own = [message for message in self.published[topic] if message.source == node]
        if own and self.random.random() < 0.2:
            self.log(node, "failed", topic, own[-1])


def random_trace(seed: int, short: bool = False) -> Trace:
    """A well-formed trace; some logs may lack their end."""
    events = RandomWorld(random.Random(seed)).run(short)
    return Trace(header(events, ALL_PROMISES, f"random-{seed}"), events)
