"""The exact check of a subscription, asked when the quick one cannot certify it. One column of causes at a time.

For every publisher q, H(m)[q] is the highest counter of q among the causes of m. "Everything up to H(m)[q] came before
m" is a question about a running maximum: sort q's messages by counter, and keep the latest row so far.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from cubecast.pipeline.findings import MOST_PER_PROPERTY, Finding
from cubecast.pipeline.messages import FOREVER
from cubecast.pipeline.rows import Flags, Ints
from cubecast.pipeline.subscriptions import pack, pack_one
from cubecast.pipeline.view import View, message_id


class Examination:
    """Predicates over one subscription; columns over `keys`, all publishers it could have to do with."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.topic = view.topic
        rows = view.rows
        gap_key = pack(rows.source[view.gaps], rows.source_incarnation[view.gaps])
        stated = np.array(list(view.stated), np.int64)
        self.keys = np.unique(np.concatenate((self.topic.publishers, view.key, gap_key, stated)))
        self.rank = self.topic.rank(self.keys)
        self.column = np.searchsorted(self.keys, view.key)
        first = np.sort(_first_of_each(self.column, view.counter))
        self.repeats = np.setdiff1d(np.arange(len(view.at)), first)
        self.at = view.at[first]
        """Each message at its first delivery."""
        self.column, self.counter, self.slot = self.column[first], view.counter[first], view.slot[first]
        self.gap_column, self.gap_counter = np.searchsorted(self.keys, gap_key), rows.counter[view.gaps]

    @cached_property
    def cut(self) -> Ints:
        """The starting cut: stated, zero because something was delivered, or implied by the confirmation."""
        cut = np.full(len(self.keys), FOREVER)
        cut[np.unique(self.column)] = 0
        for place in np.flatnonzero(self.implied & (self.rank >= 0)).tolist():
            view = self.view
            where = (int(self.rank[place]), view.log_key, view.subscribed_seq)
            cut[place] = view.run.implied_cut(self.topic, *where)
        for key, counter in self.view.stated.items():
            cut[np.searchsorted(self.keys, key)] = counter
        return cut

    @cached_property
    def implied(self) -> Flags:
        implied = np.ones(len(self.keys), bool)
        implied[np.unique(self.column)] = False
        implied[np.searchsorted(self.keys, np.array(list(self.view.stated), np.int64))] = False
        return implied

    def causes(self, place: int) -> Ints:
        """H(m)[q] of every delivered message, for the publisher in this column."""
        known = np.zeros(len(self.at), np.int64)
        if self.rank[place] >= 0:
            published = self.slot >= 0
            known[published] = self.topic.closure[self.slot[published], self.rank[place]]
        own = self.column == place
        known[own] = np.maximum(known[own], self.counter[own]) - 1
        return known

    def accounted(self, place: int) -> tuple[Ints, int]:
        """Latest row so far of q's counters cut + 1, cut + 2, … delivered or excused without a hole, and the cut.

        What the filter does not match is excused from the beginning.
        """
        cut = int(self.cut[place])
        mine, gone, skipped = self.column == place, self.gap_column == place, self.unwanted(place)
        counter = np.concatenate((self.counter[mine], self.gap_counter[gone], skipped))
        beginning = np.full(len(skipped), self.view.subscription.start)
        row = np.concatenate((self.at[mine], self.view.gaps[gone], beginning))
        order = np.lexsort((row, counter))
        order = order[counter[order] > cut]
        _, first = np.unique(counter[order], return_index=True)
        counter, row = counter[order][first], row[order][first]
        if len(counter):
            # Not `cut + 1 + arange`: an infinite cut must not wrap around.
            gapless = counter - np.arange(len(counter)) - 1 == cut
            row = row[: len(row) if gapless.all() else int(np.argmin(gapless))]
        return np.maximum.accumulate(row), cut

    def unwanted(self, place: int) -> Ints:
        """Counters of this publisher that the filter does not match."""
        rank = int(self.rank[place])
        if self.view.wanted is None or rank < 0:
            return np.zeros(0, np.int64)
        low, high = int(self.topic.base[rank]), int(self.topic.base[rank + 1])
        return np.flatnonzero(~self.view.wanted[low:high]) + 1

    def findings(self) -> Iterator[Finding]:
        if self.view.wanted is not None:
            yield from self.filtered()
        yield from self.cuts()
        yield from self.creation_and_duplication()
        yield from self.fifo()
        yield from self.causal()
        yield from self.gapless()
        if self.view.correct:
            yield from self.validity()

    def filtered(self) -> Iterator[Finding]:
        """P11: published, delivered, and the filter does not match it."""
        assert self.view.wanted is not None, "the caller looked"
        strange = ~np.append(self.view.wanted, True)[self.slot]
        for which, weight in first_few(strange):
            row = int(self.at[which])
            reason = f"{self.view.message(row)} is delivered and the filter does not match it"
            yield self.view.finding("P11", row, reason)._replace(weight=weight)

    def cuts(self) -> Iterator[Finding]:
        """K1 and K2, at the row that states the cut."""
        for (source, incarnation), (cut, row) in self.view.subscription.stated.items():
            place = int(np.searchsorted(self.keys, pack_one(source, incarnation)))
            rank = int(self.rank[place])
            published = int(self.topic.count[rank]) if rank >= 0 else 0
            who = f"{source}.{incarnation}"
            if cut < 0:
                yield self.view.finding("K1", row, f"the cut of publisher {who} is {cut}")
            elif cut > published:
                reason = f"the cut of publisher {who} ends at {cut}, but it published {published}"
                certain = pack_one(source, incarnation) in self.view.run.whole
                yield self.view.finding("K1", row, reason, certain=certain)
            if min(cut, published) >= 1:
                yield from self.closed(place, min(cut, published), row)

    def closed(self, place: int, last: int, row: int) -> Iterator[Finding]:
        """K2: the causes of the last excluded message, and with them those of all, are excluded too."""
        known = np.zeros(len(self.keys), np.int64)
        inside = self.rank >= 0
        known[inside] = self.topic.closure[int(self.topic.base[self.rank[place]]) + last - 1, self.rank[inside]]
        known[place] = 0
        outside = np.flatnonzero(known > self.cut)
        if len(outside):
            column = min(outside.tolist(), key=lambda one: bool(self.implied[one]))
            message, cause = message_id(self.keys[place], last), message_id(self.keys[column], known[column])
            reason = f"the cut excludes {message} but not {cause}, which it depends on"
            certain = self.view.log.whole or not self.implied[column]
            yield self.view.finding("K2", row, reason, cause, bool(certain))

    def creation_and_duplication(self) -> Iterator[Finding]:
        """P1, P1b and P2."""
        view = self.view
        wrong = np.append(self.topic.failed, True)[view.slot]
        sure = (view.slot >= 0) | np.isin(view.key, list(view.run.whole))
        for certain in (True, False):
            for which, weight in first_few(wrong & (sure == certain)):
                yield created(view, int(view.at[which]), int(view.slot[which]))._replace(weight=weight)
        for which, weight in first_few(view.altered):
            yield altered(view, int(view.at[which]))._replace(weight=weight)
        for which in self.repeats.tolist():
            row = int(view.at[which])
            message = view.message(row)
            yield view.finding("P2", row, f"{message} is delivered a second time", message)
        stated = np.zeros(len(self.keys), np.int64)
        for key, counter in view.stated.items():
            stated[np.searchsorted(self.keys, key)] = counter
        for row in self.at[self.counter <= stated[self.column]].tolist():
            yield view.finding("P2", row, f"{view.message(row)} is delivered although the cut excludes it")

    def fifo(self) -> Iterator[Finding]:
        """P5: a counter lower than one delivered before."""
        for place in np.unique(self.column).tolist():
            mine = np.flatnonzero(self.column == place)
            highest = np.maximum.accumulate(self.counter[mine])
            for late, weight in first_few(self.counter[mine] < highest):
                row = int(self.at[mine[late]])
                before = message_id(self.keys[place], highest[late])
                reason = f"{self.view.message(row)} is delivered after {before}"
                yield self.view.finding("P5", row, reason, before)._replace(weight=weight)

    def causal(self) -> Iterator[Finding]:
        """P7: a cause that is delivered, but later."""
        blamed = np.zeros(len(self.at), bool)
        for place in np.unique(self.column).tolist():
            mine = self.column == place
            order = np.argsort(self.counter[mine])
            counter, row = self.counter[mine][order], self.at[mine][order]
            latest = np.maximum.accumulate(row)
            upto = np.searchsorted(counter, self.causes(place), side="right") - 1
            late = (upto >= 0) & (latest[np.maximum(upto, 0)] > self.at) & ~blamed
            blamed |= late
            for which, weight in first_few(late):
                cause = message_id(self.keys[place], counter[np.argmax(row > self.at[which])])
                message = self.view.message(int(self.at[which]))
                reason = f"{message} is delivered before {cause}, which it depends on"
                yield self.view.finding("P7", int(self.at[which]), reason, cause)._replace(weight=weight)

    def gapless(self) -> Iterator[Finding]:
        """P6 and P8: a cause that is neither excluded nor delivered nor excused before."""
        size = len(self.at)
        blamed, missing, sure = np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, bool)
        for place in np.flatnonzero(self.cut < FOREVER).tolist():
            latest, cut = self.accounted(place)
            reach = cut + np.searchsorted(latest, self.at)
            own = (self.column == place) & (self.counter > cut) & (reach < self.counter - 1)
            for which, weight in first_few(own):
                lacking = message_id(self.keys[place], reach[which] + 1)
                message = self.view.message(int(self.at[which]))
                reason = f"{message} is delivered, but {lacking} was not delivered before it"
                yield self.view.finding("P6", int(self.at[which]), reason, lacking)._replace(weight=weight)
            certain = bool(self.view.log.whole or not self.implied[place])
            worse = (self.causes(place) > reach) & ((blamed < 0) | (certain & ~sure))
            blamed[worse], missing[worse], sure[worse] = place, reach[worse] + 1, certain
        for certain in (True, False):
            for which, weight in first_few((blamed >= 0) & (sure == certain)):
                lacking = message_id(self.keys[blamed[which]], missing[which])
                message = self.view.message(int(self.at[which]))
                reason = f"{message} is delivered without {lacking}, which it depends on"
                finding = self.view.finding("P8", int(self.at[which]), reason, lacking, certain)
                yield finding._replace(weight=weight)

    def validity(self) -> Iterator[Finding]:
        """P3: acknowledged by a correct publisher, not excluded, and not here."""
        owed = self.topic.owed.copy()
        owed[self.slot[self.slot >= 0]] = False
        if self.view.wanted is not None:
            owed &= self.view.wanted
        publisher = self.topic.publishers[self.topic.publisher_of]
        owed &= self.topic.counter_of > self.cut[np.searchsorted(self.keys, publisher)]
        for slot, weight in first_few(owed):
            message = message_id(publisher[slot], self.topic.counter_of[slot])
            reason = f"{message} was acknowledged but is not delivered here"
            yield self.view.finding("P3", self.view.last_row, reason, message=message)._replace(weight=weight)


def first_few(wrong: Flags) -> Iterator[tuple[int, int]]:
    """The first wrong places, and how many each stands for: the last one for all that follow."""
    places = np.flatnonzero(wrong)
    for number, place in enumerate(places[:MOST_PER_PROPERTY].tolist(), 1):
        yield place, len(places) - number + 1 if number == MOST_PER_PROPERTY else 1


def _first_of_each(column: Ints, counter: Ints) -> Ints:
    order = np.lexsort((counter, column))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(column[order]) != 0) | (np.diff(counter[order]) != 0)
    return order[new]


def altered(view: View, row: int) -> Finding:
    """P1b: a delivery of other bytes."""
    return view.finding("P1b", row, f"{view.message(row)} is delivered with other bytes than were published")


def created(view: View, row: int, slot: int) -> Finding:
    """P1: a delivery without a publication, or of one whose publisher was told that it failed."""
    message = view.message(row)
    if slot >= 0:
        return view.finding("P1", row, f"{message} was delivered although its publisher was told that it failed")
    certain = pack_one(int(view.rows.source[row]), int(view.rows.source_incarnation[row])) in view.run.whole
    return view.finding("P1", row, f"{message} was never published on {view.name}", certain=certain)
