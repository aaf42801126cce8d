"""LoCaPS: content-based publish/subscribe on LoCaMu, where a subscription begins as soon as a nearby path allows.

A subscription travels towards every publisher whose advertisement it meets. The publisher's broker answers with a
marker, which says behind which of its events the subscription begins (its cut). Where the subscription passes a broker
at which a subscription that covers it branches off, nothing needs to go farther: what it wants passes there already.
f + 1 brokers in a row say so with partial markers; together they settle the cut for all publishers behind that pivot.

Symbols of the paper: `ads` the advertisement table, `table` the subscription table, `stable[p, S]` the markers passed
on, `partials` the paper's pm. Handlers come in the paper's order; corrections are in docs/papers/locaps.md.
"""

from collections import deque
from collections.abc import Iterator

from cubecast.ids import Counter, NodeId, Topic
from cubecast.protocol.brokers.entries import Advertisement, Entry, Local, Side, Wanted
from cubecast.protocol.brokers.interests import Interests
from cubecast.protocol.brokers.locamu import Post
from cubecast.protocol.brokers.packets import (
    Advertise,
    AdvertiseEcho,
    Body,
    Event,
    Gone,
    Marker,
    Partial,
    PublisherId,
    Restore,
    Subscribe,
    SubscriptionId,
    Unadvertise,
    Unsubscribe,
)
from cubecast.protocol.brokers.received import Numbers
from cubecast.protocol.brokers.tree import BrokerTree
from cubecast.protocol.filters import Filter
from cubecast.protocol.filters.conditions import from_wire
from cubecast.protocol.filters.covering import CoveringIndex

Outcome = tuple[set[NodeId], list[Post]]
RESTORED_AT_ONCE = 200
"""Publishers and subscriptions in one message: a packet holds them however large their filters are."""


class Tables:
    """LoCaPS at one broker, without transport: bodies in, targets and following bodies out.

    What the clients are to see collects in `deliveries` and `cuts`, which the machine takes after a step.
    """

    def __init__(self, me: NodeId, tree: BrokerTree, faults: int, *, covering: bool = True) -> None:
        self.me = me
        self.tree = tree
        self.faults = faults
        self.reach = 2 * faults + 1
        self.near = tree.within(me, self.reach)
        self.covering = covering
        self.removed: set[NodeId] = set()
        self.ads: dict[PublisherId, Advertisement] = {}
        self.table: dict[SubscriptionId, Entry] = {}
        self.interests = Interests(me, tree, self.reach)
        self.coverage: CoveringIndex[SubscriptionId] = CoveringIndex(self.interests)
        self.locals: dict[SubscriptionId, Local] = {}
        self.stable: dict[SubscriptionId, dict[PublisherId, Counter]] = {}
        self.seen: dict[PublisherId, Counter] = {}
        self.partials: dict[SubscriptionId, dict[NodeId, dict[int, dict[PublisherId, Counter]]]] = {}
        self.posted: dict[SubscriptionId, set[tuple[PublisherId, NodeId]]] = {}
        self.ended: dict[tuple[NodeId, int], Numbers] = {}
        self.restored: set[NodeId] = set()
        """Brokers that restarted, and were told by this one what is on its side."""
        self.gone: dict[NodeId, int] = {}
        """Of brokers that were removed, the last life that is over."""
        self.deliveries: list[tuple[Topic, Wanted, range]] = []
        """With the counters of what is missing before it."""
        self.cuts: list[tuple[SubscriptionId, PublisherId, Counter]] = []
        self.discarded: list[tuple[Topic, Wanted]] = []
        """Events from before a subscription begins."""
        self.looked_for: set[SubscriptionId] | None = set()
        """Subscriptions that may have become settled; None: any."""

    def settle(self, subscription: SubscriptionId, topic: Topic, wanted: Filter) -> None:
        """Enter a subscription that every broker knows from the start."""
        self.table[subscription] = Entry(wanted, self.tree.side(self.me, subscription.broker))
        self.interests.add(subscription, wanted)
        self.coverage.add(subscription, wanted)
        self.stable[subscription] = {}
        if subscription.broker == self.me:
            self.locals[subscription] = Local(topic)

    def handle(self, body: Body, side: Side, origin: NodeId) -> Outcome:
        match body:
            case Event():
                return self._event(body, side), []
            case Advertise():
                return self._advertise(body, side)
            case AdvertiseEcho():
                return self._echo(body)
            case Subscribe():
                return self._subscribe(body)
            case Marker():
                return self._marker(body)
            case Partial():
                return self._partial(body)
            case Unsubscribe():
                return self._unsubscribe(body), []
            case Unadvertise():
                return self._unadvertise(body, side), []
            case Gone():
                return self._gone(body, side), []
            case Restore():
                return set(), [] if side is None else self._restore(body, side, origin)

    # -- advertisements ----------------------------------------------------------------------------------------------

    def _advertise(self, body: Advertise, side: Side) -> Outcome:
        publisher = body.publisher
        posts: list[Post] = []
        if not self._has_ended(publisher) and publisher not in self.ads:
            ad = self.ads[publisher] = Advertisement(body.topic, from_wire(body.template), side, body.published)
            way = self._way(publisher.broker)
            for subscription, entry in self.table.items():
                if not ad.template.intersects(entry.wanted):
                    continue
                if entry.side != side and not way <= entry.issued:
                    entry.issued |= way
                    posts.append((Subscribe(subscription, entry.wanted.to_wire()), way))
                if side is None:
                    posts.append((Marker(publisher, subscription, ad.count), None))
            posts.extend(self._echo_on(publisher))
        return self._flood(side), posts

    def _echo(self, body: AdvertiseEcho) -> Outcome:
        ad = self.ads.get(body.publisher)
        if ad is not None:
            ad.echoes.add(body.broker)
        targets = self._way(body.publisher.broker) if body.broker == self.me else set()
        return targets, list(self._echo_on(body.publisher))

    def _echo_on(self, publisher: PublisherId) -> Iterator[Post]:
        """When everybody behind this broker knows of the advertisement, its publisher's side is told."""
        ad = self.ads.get(publisher)
        if ad is None or ad.echoed:
            return
        if all(self._echoed(ad, near) for near in self.tree.neighbours[self.me] if near != ad.side):
            ad.echoed = True
            if ad.side is None:
                ad.known = True
            else:
                yield AdvertiseEcho(publisher, self.me), None

    def _echoed(self, ad: Advertisement, broker: NodeId) -> bool:
        """A removed broker counts when all behind it do."""
        if broker in ad.echoes:
            return True
        is_out = broker in self.removed or broker in ad.passed_over
        return is_out and all(self._echoed(ad, one) for one in self.tree.beyond(self.me, broker))

    def _unadvertise(self, body: Unadvertise, side: Side) -> set[NodeId]:
        self._end(body.publisher, body.last)
        return self._flood(side)

    def _end(self, publisher: PublisherId, ended_with: Counter | None = None) -> None:
        """For good: its id is not used again. Nothing begins for it any more, and nothing waits for a beginning."""
        ended = self.ended.setdefault((publisher.broker, publisher.incarnation), Numbers())
        ended.add(publisher.number)
        ad = self.ads.pop(publisher, None)
        self.looked_for = None
        seen = self.seen.pop(publisher, 0)
        for stable in self.stable.values():
            stable.pop(publisher, None)
        for subscription, local in self.locals.items():
            local.partial.discard(publisher)
            passed = local.floor.pop(publisher, 0)
            if publisher not in local.cut:
                dropped = [event for event in local.queue if event.publisher == publisher]
                local.queue = deque(event for event in local.queue if event.publisher != publisher)
                self.discarded.extend((local.topic, event) for event in dropped)
                wanted = ad is not None and ad.template.intersects(self.table[subscription].wanted)
                last = max([passed, (ended_with or seen) if wanted else 0, *(event.last for event in dropped)])
                if last and ended_with is not None:
                    local.over[publisher[:2]] = max(last, local.over.get(publisher[:2], 0))
            self._drain(local)

    def _has_ended(self, publisher: PublisherId) -> bool:
        ended = self.ended.get((publisher.broker, publisher.incarnation))
        is_gone = publisher.incarnation <= self.gone.get(publisher.broker, -1)
        return is_gone or (ended is not None and publisher.number in ended)

    def _gone(self, body: Gone, side: Side) -> set[NodeId]:
        if body.life > self.gone.get(body.broker, -1):
            self.gone[body.broker] = body.life
            over = [one for one in self.ads if one.broker == body.broker and one.incarnation <= body.life]
            for publisher in over:
                self._end(publisher)
        return self._flood(side)

    # -- subscriptions -----------------------------------------------------------------------------------------------

    def _subscribe(self, body: Subscribe) -> Outcome:
        subscription = body.subscription
        if subscription in self.table:
            return set(), []  # it comes again for those behind: they are owed it
        wanted = from_wire(body.wanted)
        own_side = self.tree.side(self.me, subscription.broker)
        entry = self.table[subscription] = Entry(wanted, own_side)
        self.interests.add(subscription, wanted)
        self.coverage.add(subscription, wanted)
        self.stable.setdefault(subscription, {})
        posts: list[Post] = []
        for publisher, ad in self.ads.items():
            if ad.template.intersects(wanted):
                if ad.side is None:
                    posts.append((Marker(publisher, subscription, ad.count), None))
                elif ad.side != own_side:
                    entry.issued |= self._way(publisher.broker)
        posts.extend(self._cover(subscription, entry))
        return set(entry.issued), posts

    def _marker(self, body: Marker) -> Outcome:
        entry = self.table.get(body.subscription)
        if entry is None:
            return set(), []
        posts = self._settle(body.publisher, body.subscription, body.last)
        return self._way(body.subscription.broker), posts

    def _settle(self, publisher: PublisherId, subscription: SubscriptionId, last: Counter) -> list[Post]:
        """What passes here for the subscription is complete behind `last`. The first value counts."""
        stable = self.stable[subscription]
        if publisher in stable or self._has_ended(publisher):
            return []
        stable[publisher] = last
        local = self.locals.get(subscription)
        if local is not None and publisher not in local.cut:
            local.cut[publisher] = max(last, local.floor.pop(publisher, 0))
            local.partial.discard(publisher)
            self.cuts.append((subscription, publisher, local.cut[publisher]))
            if self.looked_for is not None:
                self.looked_for.add(subscription)
            self._drain(local)
        return list(self._cover_others(publisher, subscription))

    def _cover(self, subscription: SubscriptionId, entry: Entry) -> Iterator[Post]:
        """Partial markers for a subscription that others cover here, side by side."""
        if self.covering:
            for side in self.tree.neighbours[self.me]:
                if side != entry.side:
                    yield from self._cover_from(subscription, entry, side)

    def _cover_from(self, subscription: SubscriptionId, entry: Entry, side: NodeId) -> Iterator[Post]:
        """The publishers behind `side` are settled together, or an effect could arrive without its cause."""
        publishers = [p for p, ad in self.ads.items() if ad.side == side and ad.template.intersects(entry.wanted)]
        if not publishers:
            return
        posted = self.posted.setdefault(subscription, set())
        for other in self.coverage.covering(entry.wanted):
            if other == subscription or self.table[other].side == side:
                continue
            stable = self.stable[other]
            if not all(publisher in stable for publisher in publishers):
                continue
            shared = self._shared(subscription.broker, other.broker)
            if shared > self.faults:
                continue
            pivot = self.me if not shared else self.tree.path(self.me, subscription.broker)[shared - 1]
            if all((publisher, pivot) in posted for publisher in publishers):
                continue
            posted.update((publisher, pivot) for publisher in publishers)
            lasts = [(one, max(stable[one], self.seen.get(one, 0))) for one in publishers]
            yield Partial(subscription, pivot, shared, lasts), None

    def _shared(self, one: NodeId, other: NodeId) -> int:
        """How many brokers the paths from here have in common at their beginning, as far as f + 1 hops."""
        shared = 0
        ahead = self.faults + 1
        for a, b in zip(self.tree.path(self.me, one)[:ahead], self.tree.path(self.me, other)[:ahead], strict=False):
            if a != b:
                break
            shared += 1
        return shared

    def _cover_others(self, publisher: PublisherId, covering: SubscriptionId) -> Iterator[Post]:
        """A subscription got settled for a publisher: what it covers may be settled now."""
        ad = self.ads.get(publisher)
        if not self.covering or ad is None or ad.side is None:
            return
        wide = self.table[covering]
        if wide.side == ad.side:
            return
        for subscription in self.coverage.covered(wide.wanted):
            entry = self.table[subscription]
            if subscription != covering and entry.side != ad.side:
                yield from self._cover_from(subscription, entry, ad.side)

    def _partial(self, body: Partial) -> Outcome:
        subscription = body.subscription
        if subscription not in self.table:
            return set(), []
        by_hops = self.partials.setdefault(subscription, {}).setdefault(body.pivot, {})
        heard = by_hops.setdefault(body.hops, {})
        for publisher, last in body.lasts:
            heard[publisher] = max(last, heard.get(publisher, 0))
        local = self.locals.get(subscription)
        if local is not None:
            local.partial |= {
                publisher
                for publisher, _ in body.lasts
                if publisher not in local.cut and not self._has_ended(publisher)
            }
        return self._way(subscription.broker), self._settle_together(subscription, by_hops)

    def _settle_together(
        self, subscription: SubscriptionId, by_hops: dict[int, dict[PublisherId, Counter]]
    ) -> list[Post]:
        first = by_hops.get(0, {})
        needed = range(self.faults + 1)
        complete = all(publisher in by_hops.get(hops, {}) for hops in needed for publisher in first)
        if not first or not complete or any(publisher in self.stable[subscription] for publisher in first):
            return []
        posts: list[Post] = []
        for publisher in first:
            last = max(by_hops[hops][publisher] for hops in needed)
            posts.extend(self._settle(publisher, subscription, last))
        return posts

    def _unsubscribe(self, body: Unsubscribe) -> set[NodeId]:
        subscription = body.subscription
        entry = self.table.pop(subscription, None)
        self.interests.discard(subscription)
        self.coverage.discard(subscription)
        for table in (self.stable, self.partials, self.posted, self.locals):
            table.pop(subscription, None)
        return set() if entry is None else entry.issued

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(self, event: Event, side: Side) -> set[NodeId]:
        publisher = event.publisher
        if side is not None and not self._has_ended(publisher):
            self.seen[publisher] = max(event.last, self.seen.get(publisher, 0))
        for subscription, wanted in self.interests.wanted_here(event).items():
            self._queue(self.locals.get(subscription), wanted)
        return self.interests.targets(event.runs, side)

    def _queue(self, local: Local | None, event: Wanted) -> None:
        if local is None:
            return
        publisher = event.publisher
        cut = local.cut.get(publisher)
        if cut is None and publisher not in local.partial:
            self.discarded.append((local.topic, event))
            if not self._has_ended(publisher):
                local.floor[publisher] = max(event.last, local.floor.get(publisher, 0))
        elif cut is None or event.last > cut:
            local.queue.append(event)
            self._drain(local)

    def repeated(self, event: Event) -> None:
        """It was processed before, perhaps when a subscription that is open now was not."""
        for subscription, wanted in self.interests.wanted_here(event).items():
            local = self.locals.get(subscription)
            if local is not None and event.publisher not in local.cut and wanted not in local.queue:
                self.discarded.append((local.topic, wanted))

    def _drain(self, local: Local) -> None:
        """Strictly from the front: behind an undecided event may be its effects."""
        queue = local.queue
        while queue and local.is_read:
            cut = local.cut.get(queue[0].publisher)
            if cut is None:
                break
            event = queue.popleft()
            publisher = event.publisher
            last = max(cut, local.last.get(publisher, 0))
            if event.last > last:
                lost = range(last + 1, event.first) if publisher.broker in self.removed else range(0)
                local.last[publisher] = event.last
                self.deliveries.append((local.topic, event, lost))

    def reads(self, subscription: SubscriptionId, reads: bool) -> None:
        """Its clients take what comes, or do not: then it waits here."""
        local = self.locals.get(subscription)
        if local is not None:
            local.is_read = reads
            self._drain(local)

    # -- ways ----------------------------------------------------------------------------------------------------------

    def _way(self, broker: NodeId) -> set[NodeId]:
        return set(self.interests.way(broker))

    def _flood(self, side: Side) -> set[NodeId]:
        return {broker for broker in self.near if side is None or self.tree.side(self.me, broker) != side}

    def settled(self, subscription: SubscriptionId) -> bool:
        """Is it known, for every publisher whose advertisement is known, where the subscription begins?"""
        entry, local = self.table[subscription], self.locals[subscription]
        return all(p in local.cut for p, ad in self.ads.items() if ad.template.intersects(entry.wanted))

    def open_ads(self, subscription: SubscriptionId) -> list[PublisherId]:
        """Publishers of which it is not known yet where the subscription begins."""
        entry, local = self.table[subscription], self.locals[subscription]
        return [p for p, ad in self.ads.items() if p not in local.cut and ad.template.intersects(entry.wanted)]

    def covering_of(self, subscription: SubscriptionId, entry: Entry) -> SubscriptionId | None:
        """Another subscription known here that covers this one."""
        return next((one for one in self.coverage.covering(entry.wanted) if one != subscription), None)

    def may_want(self, entry: Entry, topic: Topic) -> bool:
        return any("topic" not in one.domains or topic in one.domains["topic"] for one in entry.wanted.alternatives)

    def remove(self, broker: NodeId, life: int) -> list[Post]:
        """This life of it will not come back."""
        posts: list[Post] = [] if self.gone.get(broker, -1) >= life else [(Gone(broker, life), None)]
        for publisher in list(self.ads):
            posts.extend(self._echo_on(publisher))
        return posts

    # -- brokers that come back ----------------------------------------------------------------------------------------

    def admit(self, broker: NodeId, *, tells: bool) -> list[Post]:
        """It is there again, and knows nothing: what is on this side of it, where no nearer broker tells."""
        self.removed.discard(broker)
        for ad in self.ads.values():
            if not ad.echoed:
                ad.passed_over.add(broker)
        if not tells:
            return []
        side = self.tree.side(self.me, broker)
        told: list[Restore] = []
        for publisher, ad in self.ads.items():
            if ad.side != side:
                _last(told).ads.append((publisher, ad.topic, ad.template.to_wire(), ad.count))
            elif ad.echoed:
                _last(told).echoed.append(publisher)
        for subscription, entry in self.table.items():
            if entry.side != side and subscription.incarnation > self.gone.get(subscription.broker, -1):
                _last(told).subscriptions.append((subscription, entry.wanted.to_wire()))
        self.restored.add(broker)
        parts = [*told, Restore([], [], [], True)]
        return [(part, self._way(broker)) for part in parts]

    def _restore(self, body: Restore, side: NodeId, origin: NodeId) -> list[Post]:
        """What a neighbour knew while this broker was away. It is settled there, and no broker needs to hear of it but
        those that restarted too, and were told before by this one, which did not know."""
        others = {one for one in self.restored if self.tree.side(self.me, one) != side}
        posts: list[Post] = [(body._replace(echoed=[], is_last=False), self._way(one)) for one in sorted(others)]
        for publisher, topic, template, published in body.ads:
            if publisher not in self.ads and not self._has_ended(publisher) and publisher.broker != self.me:
                ad = Advertisement(topic, from_wire(template), side, published, echoed=True)
                self.ads[publisher] = ad
                way = self._way(publisher.broker)
                for subscription, entry in self.table.items():
                    if entry.side != side and ad.template.intersects(entry.wanted):
                        entry.issued |= way
                        if entry.side is None:
                            posts.append((Subscribe(subscription, entry.wanted.to_wire()), way))
        for publisher in body.echoed:
            if publisher in self.ads:
                self.ads[publisher].echoes.add(origin)
                posts.extend(self._echo_on(publisher))
        for subscription, wire in body.subscriptions:
            if subscription not in self.table and subscription.broker != self.me:
                self._restore_subscription(subscription, from_wire(wire), posts)
        return posts

    def _restore_subscription(self, subscription: SubscriptionId, wanted: Filter, posts: list[Post]) -> None:
        entry = self.table[subscription] = Entry(wanted, self.tree.side(self.me, subscription.broker))
        self.interests.add(subscription, wanted)
        self.coverage.add(subscription, wanted)
        self.stable.setdefault(subscription, {})
        for publisher, ad in self.ads.items():
            if ad.template.intersects(wanted):
                if ad.side is None:
                    posts.append((Marker(publisher, subscription, ad.count), None))
                elif ad.side != entry.side:
                    entry.issued |= self._way(publisher.broker)

    def forget_subscriptions(self, broker: NodeId) -> None:
        """Of lives of it that are over; by now what others covered by them found its own way."""
        over = self.gone.get(broker, -1)
        for subscription in [one for one in self.table if one.broker == broker and one.incarnation <= over]:
            self._unsubscribe(Unsubscribe(subscription))

    def invariants(self) -> None:
        for subscription, local in self.locals.items():
            assert subscription in self.table
            waits = not local.is_read or not local.queue or local.queue[0].publisher not in local.cut
            assert waits, "an event that could leave waits"
            assert not local.floor.keys() & local.cut.keys()
        assert self.stable.keys() == self.table.keys(), "markers are kept of a subscription that is gone"


def _last(told: list[Restore]) -> Restore:
    """The part that has room for more."""
    if not told or len(told[-1].ads) + len(told[-1].subscriptions) + len(told[-1].echoed) >= RESTORED_AT_ONCE:
        told.append(Restore([], [], [], False))
    return told[-1]
