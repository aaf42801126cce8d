"""One flow of Brisa at one process: who feeds it, whom it feeds, and how a broken tree heals.

A flow's first message floods the overlay; every process keeps the neighbour that brought it (its primary parent) and
tells the others to stop, so that the second message goes along a tree. Links are on until told otherwise.

**Label.** (messages it has, least metric announced while it had so many). A process adopts a parent that brings a new
message unconditionally, and any other one only if that one's label is better than its own. So along parents labels only
get better, at every instant: parents form a forest, however much goes on at once.

**Order.** Messages are accepted one after the other; what comes too early is held and the hole is fetched.

Symbols of the paper: a parent's link is *active* when it is on here; soft repair asks one neighbour, hard repair all.
Follows decision 0057.
"""

# DEVIATION brisa §4.3.2: a parent is adopted by its label, not because the last known path does not contain the child:
# two that lose their parents together would adopt each other, and no message would ever show the cycle.
# DEVIATION brisa §4.2.7: spare parents are told by paths; by depth alone two neighbours race below each other.
# DEVIATION brisa §4.3.3: who gets a mutual deactivation from a parent objects; it may have crossed an activation.

from math import inf
from typing import Any

from cubecast.ids import Counter, NodeId
from cubecast.protocol.epidemic.brisa_buffer import Buffer, Early, in_pieces
from cubecast.protocol.epidemic.brisa_host import Host, Rules
from cubecast.protocol.epidemic.brisa_late import Lateness
from cubecast.protocol.epidemic.brisa_packets import (
    MOST_PATH,
    Data,
    Feed,
    Fetch,
    FlowId,
    Info,
    Lost,
    Path,
    Position,
    Standing,
)

MOST_ROUTE = 16
PIECE = 1 << 18
"""Bytes sent in one step to a process that is behind: its link may be full after them."""
PATIENCE_TICKS = 2
"""Without an answer the next candidate is asked."""
SURE_TICKS, UNSURE_TICKS = 3, 20
"""How long messages that no process has are waited for, by whether the root said so."""


class Flow:
    def __init__(self, host: Host, flow: FlowId, have: Counter) -> None:
        self.id = flow
        self.have = have
        self.primary: NodeId | None = None
        self.parents: dict[NodeId, None] = {}
        self.orphan = False
        self.copies = self.fresh = 0
        """Messages that came, and those of them that were new."""
        self._host = host
        self._root = flow[1:] == (host.me, host.incarnation)
        """Of a flow that an earlier life published, the process is a receiver like others."""
        self._metric = 0.0 if self._root else inf
        self._depth = 0
        self._path: Path = (host.me,) if self._root else ()
        self._least = self._metric
        self._off_in: set[NodeId] = set()
        """Whom this process told not to feed it."""
        self._off_out: set[NodeId] = set()
        """Who told it not to be fed."""
        self._known: dict[NodeId, Standing] = {}
        self._early: Early[tuple[NodeId, Data]] = Early(host.buffer_messages, host.buffer_bytes)
        self._asked_upto: dict[NodeId, Counter] = {}
        """Up to where messages were fetched from a neighbour since the last tick."""
        self._served: dict[NodeId, int] = {}
        """Bytes that a neighbour fetched since the last tick."""
        self.kept = Buffer(host.buffer_messages, host.buffer_bytes)
        self.behind: dict[NodeId, Counter] = {}
        """Processes fed from here that were not sent everything yet, and up to where they were."""
        self._asking: NodeId | None = None
        self._asked_at = 0
        self._tried: dict[NodeId, None] = {}
        self._lost: tuple[Counter, int, bool] | None = None
        """Messages that no process asked so far has: up to which, since which tick, and whether the root said so."""
        self._late = Lateness(have)
        self._ticks = 0

    # -- what this process says of itself ----------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def path(self) -> Path:
        return self._path

    @property
    def stopped(self) -> int:
        """How many neighbours were told not to feed this process."""
        return len(self._off_in)

    @property
    def lag(self) -> int:
        """Messages that a neighbour is known to have, and this process has not."""
        return max(0, max((one.have for one in self._known.values()), default=0) - self.have)

    @property
    def children(self) -> list[NodeId]:
        return [peer for peer in self._host.neighbours if peer not in self._off_out and peer not in self.parents]

    @property
    def held(self) -> int:
        """Messages that came before something they follow."""
        return self._early.messages

    def standing(self) -> Standing:
        position = Position(self._metric, self._depth, self._path, self._host.own_cost(len(self.children)))
        return Standing(self.have, position, self.orphan)

    def uses(self, peer: NodeId) -> bool:
        return peer in self.parents or peer not in self._off_out

    # -- messages ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """At the root: no parent feeds it."""
        for peer in self._host.neighbours:
            self._stop(peer, mutual=False)

    def publish(self, payloads: tuple[bytes, ...]) -> None:
        for batch in in_pieces(payloads):
            self._take(self.have + 1, batch)

    def _take(self, first: Counter, payloads: tuple[bytes, ...], sender: NodeId | None = None) -> None:
        """Keep, deliver and forward what comes next."""
        self.have = first + len(payloads) - 1
        self._least = self._metric
        self.kept.append(first, payloads)
        host = self._host
        host.deliver(self.id, first, payloads)
        ready = []
        for peer in host.neighbours:
            if peer != sender and peer not in self._off_out:
                if peer not in self.behind and not host.is_full(peer):
                    ready.append(peer)
                else:
                    self.behind.setdefault(peer, first - 1)
        if ready:
            host.send_all(tuple(ready), Data(self.id, first, payloads, self.standing().position, False, ()))

    def catch_up(self) -> None:
        """Send those that are behind the next piece of what they lack, where their links have room."""
        for peer in [one for one in self.behind if not self._host.is_full(one)]:
            before = self.behind.pop(peer)
            have = self._bring_piece(peer, before)
            if before < have < self.have:
                self.behind[peer] = have
                self._host.go_on_soon()

    def _bring_piece(self, peer: NodeId, have: Counter) -> Counter:
        """What it has then. Messages that are kept no more it will miss, and ask for."""
        position = self.standing().position
        for first, payloads in self.kept.after(have, PIECE):
            self._host.send(peer, Data(self.id, first, payloads, position, True, ()))
            have = first + len(payloads) - 1
        return have

    def on_data(self, sender: NodeId, data: Data) -> None:
        self.copies += len(data.payloads)
        known = self._known.get(sender)
        if not data.recovered or known is None or data.last > known.have:
            self._known[sender] = Standing(data.last, data.position, False)
        if data.last <= self.have:
            if not data.recovered:
                self._duplicate(sender, data.position)
        elif data.first <= self.have + 1:
            self._accept(sender, data)
        else:
            self._hold(sender, data)

    def _accept(self, sender: NodeId, data: Data) -> None:
        following: tuple[NodeId, Data] | None = (sender, data)
        while following is not None:
            bringer, brought = following
            self._adopt_for_news(bringer, brought.position)
            self.fresh += brought.last - self.have
            self._take(self.have + 1, brought.payloads[self.have + 1 - brought.first :], bringer)
            following = self._next_held()
        self._lost = None  # something comes: what is missing now will be asked for anew

    def _next_held(self) -> tuple[NodeId, Data] | None:
        """What was held and comes next; what came meanwhile another way is dropped."""
        while (held := self._early.pop_upto(self.have + 1)) is not None:
            if held[1].last > self.have:
                return held
        return None

    def _hold(self, sender: NodeId, data: Data) -> None:
        """What is missing before it is asked for once: the answer will come, or a tick will ask again."""
        self._early.hold(data.first, (sender, data), len(data.payloads), sum(map(len, data.payloads)))
        if self._asked_upto.get(sender, 0) < self._hole_ends:
            self._asked_upto[sender] = self._hole_ends
            self._fetch(sender, self._hole_ends)

    @property
    def _hole_ends(self) -> Counter:
        """The last of the messages that are missing before what is held."""
        return (self._early.first or self.have + 2) - 1

    def _fetch(self, peer: NodeId, upto: Counter) -> None:
        self._host.send(peer, Fetch(self.id, self.have + 1, upto, (self._host.me,)))

    # -- parents -----------------------------------------------------------------------------------------------------

    def _adopt_for_news(self, peer: NodeId, position: Position) -> None:
        """Who brings a new message is the primary parent from here on."""
        if not self._root:
            self._become_child(peer, position)
            self._least = self._metric

    def _become_child(self, peer: NodeId, position: Position) -> None:
        host = self._host
        before, self.primary = self.primary, peer
        self.parents[peer] = None
        self.orphan, self._asking = False, None
        self._tried.clear()
        self._metric = position.metric + host.link_cost(peer, position)
        self._depth = max(self._depth, position.depth + 1) if self._by_depth else position.depth + 1
        self._path = (*position.path, host.me)[-MOST_PATH:]
        if peer in self._off_in:
            self._start(peer)
        surplus = [one for one in self.parents if one != peer]
        if before in surplus:  # the one that was primary goes first
            surplus.remove(before)
            surplus.insert(0, before)
        for one in surplus[: max(0, len(self.parents) - host.parents_wanted)]:
            del self.parents[one]
            self._stop(one, mutual=host.mutual)

    def _duplicate(self, sender: NodeId, position: Position) -> None:
        host = self._host
        if self._by_depth and not self._root and self.primary is not None:
            self._duplicate_by_depth(sender, position)
        elif sender in self.parents:
            if sender != self.primary and host.me in position.path:
                del self.parents[sender]
                self._stop(sender, mutual=False)
        elif self._root:
            self._stop(sender, mutual=False)
        elif len(self.parents) < host.parents_wanted and self.primary is not None and host.me not in position.path:
            self.parents[sender] = None
        elif not host.mutual and self._cheaper(sender, position):
            self._become_child(sender, position)
            self._least = min(self._least, self._metric)
        else:
            self._stop(sender, mutual=host.mutual)

    @property
    def _by_depth(self) -> bool:
        """As printed for several parents: a process may be fed by those that are no deeper than itself."""
        return self._host.rules is Rules.PAPER and self._host.parents_wanted > 1

    def _duplicate_by_depth(self, sender: NodeId, position: Position) -> None:
        if position.depth > self._depth or (
            sender not in self.parents and len(self.parents) >= self._host.parents_wanted
        ):
            if sender not in self.parents:
                self._stop(sender, mutual=False)
            return
        self.parents[sender] = None
        self._move_below(position)

    def _move_below(self, position: Position) -> None:
        if position.depth == self._depth:
            self._depth += 1
            for peer in self.children:
                self._host.send(peer, Info(self.id, self.standing()))

    def _cheaper(self, peer: NodeId, position: Position) -> bool:
        less = position.metric + self._host.link_cost(peer, position) < self._metric
        return less and self._better(self._known[peer]) and self._host.me not in position.path

    def _better(self, standing: Standing) -> bool:
        """Is its label better than this process's?"""
        metric = standing.position.metric
        return standing.have > self.have or (standing.have == self.have and metric < self._least)

    def _start(self, peer: NodeId) -> None:
        self._off_in.discard(peer)
        self._host.send(peer, Feed(self.id, True, False, self.standing()))

    def _stop(self, peer: NodeId, *, mutual: bool) -> None:
        if peer in self._off_in:
            return
        self._off_in.add(peer)
        if mutual:
            self._off_out.add(peer)
            self.behind.pop(peer, None)
        self._host.send(peer, Feed(self.id, False, mutual, self.standing()))

    def on_feed(self, sender: NodeId, packet: Feed) -> None:
        self._known[sender] = packet.standing
        if packet.on:
            self._off_out.discard(sender)
            if packet.standing.orphan and sender in self.parents:
                self._lose_parent(sender)
            self._bring(sender, packet.standing.have)
            return
        self._off_out.add(sender)
        self.behind.pop(sender, None)
        if packet.mutual:
            wanted = sender in self.parents or sender == self._asking
            if wanted and self._host.rules is Rules.LABEL:
                self._start(sender)
            elif sender not in self.parents:
                self._off_in.add(sender)

    def _bring(self, peer: NodeId, have: Counter) -> None:
        """What it lacks and is kept here; else how things stand."""
        if have >= self.have or not self.kept.first:
            self._host.send(peer, Info(self.id, self.standing()))
        elif peer not in self.behind or have > self.behind[peer]:
            self.behind[peer] = have
            self.catch_up()

    def on_info(self, sender: NodeId, standing: Standing) -> None:
        self._known[sender] = standing
        if self.primary is None and not self._root:
            self._consider(sender, standing)
        elif self._by_depth and sender in self.parents:
            self._move_below(standing.position)

    def _consider(self, peer: NodeId, standing: Standing) -> None:
        below = self._host.me in standing.position.path
        if below or standing.orphan:
            if peer == self._asking:
                self._repair()
        elif self._better(standing) or self._host.rules is Rules.PAPER:
            self._become_child(peer, standing.position)
            self._least = min(self._least, self._metric)

    # -- repair ------------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId) -> None:
        self._off_in.discard(peer)
        self._off_out.discard(peer)
        wanted = not self._root and len(self.parents) < self._host.parents_wanted
        if wanted:
            self._start(peer)
        else:
            self._stop(peer, mutual=False)

    def link_down(self, peer: NodeId) -> None:
        self._off_in.discard(peer)
        self._off_out.discard(peer)
        self._known.pop(peer, None)
        self.behind.pop(peer, None)
        self._late.forget(peer)
        self._tried.pop(peer, None)
        self._asked_upto.pop(peer, None)
        self._early.forget(lambda held: held[0] == peer)
        if peer in self.parents:
            self._lose_parent(peer)
        elif peer == self._asking:
            self._repair()

    def _lose_parent(self, peer: NodeId) -> None:
        del self.parents[peer]
        if peer != self.primary:
            return
        self.primary = None
        for spare in self.parents:
            standing = self._known.get(spare)
            if standing is not None and (self._better(standing) or self._host.rules is Rules.PAPER):
                self._become_child(spare, standing.position)
                self._least = min(self._least, self._metric)
                return
        self._tried.clear()
        self._repair()

    def _repair(self) -> None:
        """Ask the best neighbour that is not below; when there is none, all of them, as an orphan."""
        candidates = [peer for peer in self._host.neighbours if self._eligible(peer)]
        if not candidates:
            self._asking = None
            if not self.orphan:
                self.orphan, self._metric, self._path = True, inf, (self._host.me,)
                for peer in self._host.neighbours:
                    self._start(peer)
            return
        peer = min(candidates, key=self._preference)
        self._tried[peer] = None
        self._asking, self._asked_at = peer, self._ticks
        self._start(peer)

    def _eligible(self, peer: NodeId) -> bool:
        standing = self._known.get(peer)
        if peer in self._tried or (standing is not None and standing.orphan):
            return False
        return standing is None or self._host.me not in standing.position.path

    def _preference(self, peer: NodeId) -> tuple[Any, ...]:
        standing = self._known.get(peer)
        if standing is None:
            return (1, 0, inf, peer)
        cost = standing.position.metric + self._host.link_cost(peer, standing.position)
        return (0 if self._better(standing) else 1, -standing.have, cost, peer)

    # -- holes -------------------------------------------------------------------------------------------------------

    def on_fetch(self, sender: NodeId, packet: Fetch) -> None:
        """What is kept of it goes back; for what was before that the primary is asked."""
        low, high, back, route = packet.low, packet.high, packet.route[-1], packet.route[:-1]
        kept_from = max(low, self.kept.first)
        wanted = self.kept.covering(kept_from, high)
        if wanted:
            if self._served.get(sender, 0) > self._host.buffer_bytes:
                return  # it had as much as is kept, and asks again after a tick
            self._served[sender] = self._served.get(sender, 0) + sum(size for _, _, size in wanted)
            position = self.standing().position
            for first, payloads, _ in wanted:
                self._host.send(back, Data(self.id, first, payloads, position, True, route))
            high = kept_from - 1
        if low > high:
            return
        if self._root or self.primary in (None, sender) or len(packet.route) >= MOST_ROUTE:
            self._host.send(back, Lost(self.id, high, self._root, route))
        else:
            assert self.primary is not None
            self._host.send(self.primary, Fetch(self.id, low, high, (*packet.route, self._host.me)))

    def on_lost(self, sender: NodeId, packet: Lost) -> None:
        if packet.upto <= self.have:
            return
        if self._lost is None:
            self._lost = (packet.upto, self._ticks, packet.sure)
            for peer in self._host.neighbours:
                if peer != sender:
                    self._fetch(peer, packet.upto)
        else:
            upto, since, sure = self._lost
            self._lost = (max(upto, packet.upto), since, sure or packet.sure)

    def _give_up(self) -> None:
        if self._lost is None:
            return
        upto, since, sure = self._lost
        if self._ticks - since < (SURE_TICKS if sure else UNSURE_TICKS):
            return
        self._lost = None
        self._host.report_gap(self.id, self.have + 1, upto)
        self.have = upto
        following = self._next_held()
        if following is not None:
            self._accept(*following)
            return
        # Having skipped messages makes no better parent: without a neighbour that brought the next one it begins anew.
        self.primary, self._metric, self._least = None, inf, inf
        self.parents.clear()
        self._tried.clear()
        self._repair()

    # -- time --------------------------------------------------------------------------------------------------------

    def on_keep_alive(self, sender: NodeId, standing: Standing) -> None:
        self._known[sender] = standing
        if self._root:
            return
        if self.primary is None:
            self._consider(sender, standing)
        if self._late.turns_to(sender, standing.have, self.have) and self._host.rules is Rules.LABEL:
            if sender not in self._off_in and not self._late.moved:
                self._fetch(sender, standing.have)  # it feeds this process, and began itself behind what is missing
            self._start(sender)

    def tick(self) -> None:
        self._ticks += 1
        self._asked_upto.clear()
        self._served.clear()
        self._late.tick(self.have)
        self._give_up()
        if self._early and self.primary is not None:
            self._fetch(self.primary, self._hole_ends)
        if self._asking is not None and self._ticks - self._asked_at >= PATIENCE_TICKS:
            self._repair()
        elif self.primary is None and not self._root and self._asking is None:
            self._tried.clear()
            self.orphan = False if any(self._eligible(peer) for peer in self._host.neighbours) else self.orphan
            self._repair()
