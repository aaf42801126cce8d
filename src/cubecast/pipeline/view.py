"""One subscription beside its topic's message table: what both the quick and the exact check look at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cubecast.pipeline.filters import matching
from cubecast.pipeline.findings import Finding
from cubecast.pipeline.messages import RunMessages, TopicMessages
from cubecast.pipeline.places import Places
from cubecast.pipeline.rows import CODE, Flags, Ints, Log, Rows
from cubecast.pipeline.subscriptions import Subscription, pack, pack_one, unpack, within
from cubecast.trace.schema import Kind

GAP = CODE[Kind.GAP]


@dataclass
class View:
    """Columns are parallel to `at`, the deliver rows inside the subscription in order."""

    rows: Rows
    log: Log
    subscription: Subscription
    run: RunMessages
    topic: TopicMessages
    at: Ints
    places: Places

    @cached_property
    def key(self) -> Ints:
        return pack(self.rows.source[self.at], self.rows.source_incarnation[self.at])

    @cached_property
    def counter(self) -> Ints:
        return self.rows.counter[self.at]

    @cached_property
    def rank(self) -> Ints:
        return self.topic.rank_of(self.rows.source[self.at], self.rows.source_incarnation[self.at])

    @cached_property
    def slot(self) -> Ints:
        return self.topic.slots(self.rank, self.counter)

    @cached_property
    def wanted(self) -> Flags | None:
        """Per message of the topic: does the subscription's filter match it? None: it has no filter."""
        if self.subscription.wants is None:
            return None
        matched = matching(self.subscription.wants, [*self.topic.texts, ""], self.name)
        wanted: Flags = matched[self.topic.attributes]
        return wanted

    @cached_property
    def altered(self) -> Flags:
        """Which deliveries have other bytes than were published; only where both rows tell."""
        told = np.append(self.topic.digest, -1)[self.slot]
        here = self.rows.digest[self.at]
        altered: Flags = (told != here) & (told >= 0) & (here >= 0)
        return altered

    @cached_property
    def gaps(self) -> Ints:
        """Gap rows on the topic inside the subscription."""
        return within(self.places.of(self.subscription.topic, GAP), self.subscription)

    @cached_property
    def stated(self) -> dict[int, int]:
        """Packed publisher → last excluded counter, as the subscription's own rows say; nothing lies below 0."""
        return {pack_one(*publisher): max(counter, 0) for publisher, (counter, _) in self.subscription.stated.items()}

    @property
    def log_key(self) -> int:
        return pack_one(self.log.node, self.log.incarnation)

    @property
    def correct(self) -> bool:
        return self.log.correct and not self.subscription.left

    @property
    def subscribed_seq(self) -> int | None:
        row = self.subscription.subscribed
        return None if row is None else int(self.rows.seq[row])

    @property
    def name(self) -> str:
        return self.rows.topics[self.subscription.topic]

    @property
    def last_row(self) -> int:
        return self.log.stop - 1

    def message(self, row: int) -> tuple[int, int, int]:
        """The message a row names; only rows that name one are asked."""
        rows = self.rows
        return int(rows.source[row]), int(rows.source_incarnation[row]), int(rows.counter[row])

    def finding(
        self,
        promise: str,
        row: int,
        reason: str,
        other: tuple[int, int, int] | None = None,
        certain: bool = True,
        message: tuple[int, int, int] | None = None,
    ) -> Finding:
        return Finding(
            promise,
            self.log.node,
            self.log.incarnation,
            int(self.rows.seq[row]),
            reason,
            self.name,
            self.subscription.ordinal,
            message or (self.message(row) if self.rows.named[row] else None),
            other,
            None if other is None else self.delivered_at(other),
            certain,
        )

    def delivered_at(self, message: tuple[int, int, int]) -> int | None:
        """The `seq` at which the subscription first delivers a message, if it does."""
        key = pack_one(message[0], message[1])
        here = np.flatnonzero((self.key == key) & (self.counter == message[2]))
        return int(self.rows.seq[self.at[here[0]]]) if len(here) else None


def message_id(key: int, counter: int) -> tuple[int, int, int]:
    return (*unpack(int(key)), int(counter))
