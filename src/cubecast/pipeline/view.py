"""One subscription beside its topic's message table: what both the quick and the exact check look at."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cubecast.pipeline.filters import matching
from cubecast.pipeline.findings import Finding
from cubecast.pipeline.messages import RunMessages, TopicMessages
from cubecast.pipeline.rows import CODE, Flags, Ints, Log, Rows
from cubecast.pipeline.subscriptions import Subscription, by_topic, pack, pack_one, unpack, within
from cubecast.trace.schema import Kind

# Where in a log the rows of each topic are: looked up once for all its subscriptions, which may be many thousands.
#
# A subscription that looked through the log for its rows would make judging quadratic in topics.

RECEIVE = CODE[Kind.RECEIVE]
_NOTHING = np.zeros(0, np.int64)


class Places:
    def __init__(self, rows: Rows, log: Log) -> None:
        self._rows, self._log = rows, log
        self._of = cache(lambda *kinds: by_topic(rows, log, *kinds))

    def of(self, topic: int, *kinds: int) -> Ints:
        """All rows of these kinds on the topic, in order."""
        return self._of(*kinds).get(topic, _NOTHING)

    def received(self, topic: int) -> tuple[Ints, Ints, Ints]:
        """Messages on the topic that came in packets: the row, the packed publisher and the counter of each."""
        return self._received.get(topic, (_NOTHING, _NOTHING, _NOTHING))

    @cached_property
    def _received(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        """A packet lists its messages, or names the one that it is."""
        rows, log = self._rows, self._log
        at = np.flatnonzero(rows.kind[log.start : log.stop] == RECEIVE) + log.start
        if not len(at):
            return {}
        silent = rows.untold(at)
        row, topics, source, incarnation, counter = rows.contents_at(at[~silent])
        alone = at[silent & rows.named[at] & (rows.topic[at] >= 0)]
        row = np.concatenate((row, alone))
        topic = np.concatenate((self._codes(row[: len(row) - len(alone)], topics), rows.topic[alone]))
        key = np.concatenate((pack(source, incarnation), pack(rows.source[alone], rows.source_incarnation[alone])))
        number = np.concatenate((counter, rows.counter[alone])).astype(np.int64)
        kept = (number >= 1) & (topic >= 0)
        order = np.lexsort((row[kept], topic[kept]))
        topic, columns = topic[kept][order], [one[kept][order] for one in (row, key, number)]
        edges = np.flatnonzero(np.diff(topic)) + 1
        parts = zip(*(np.split(one, edges) for one in columns), strict=True)
        return {int(topic[begin]): part for begin, part in zip([0, *edges.tolist()], parts, strict=True) if len(topic)}

    def _codes(self, row: Ints, topics: pa.Array) -> Ints:
        """Of the topics that the packets' lists name; where they name none, the row's."""
        known = pa.array(self._rows.topics, pa.string())
        found = pc.fill_null(pc.index_in(topics, known), -1).to_numpy(zero_copy_only=False)
        told, of_row = topics.is_valid().to_numpy(zero_copy_only=False), self._rows.topic[row]
        fits = (of_row < 0) | (of_row == found)
        codes: Ints = np.where(told, np.where(fits, found, -1), of_row)
        return codes


# A subscription beside its topic.

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
