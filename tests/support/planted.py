"""Bugs planted on purpose, to see that testing finds them. Each replaces one method of the protocol."""

from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from unittest.mock import patch

from cubecast.errors import LocalProtocolError
from cubecast.ids import MessageId
from cubecast.protocol.cubecast.barriers import Barrier
from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.copies import Copy, Destinations
from cubecast.protocol.cubecast.delivery import Delivery
from cubecast.protocol.cubecast.dissemination import Dissemination
from cubecast.protocol.cubecast.interests import OpenInquiry, Subscribing
from cubecast.protocol.cubecast.joining import Joining
from cubecast.protocol.cubecast.lifetime import Lifetime
from cubecast.protocol.cubecast.machine import Cubecast
from cubecast.protocol.cubecast.packets import Ask, Settle
from cubecast.protocol.cubecast.postponing import Postponing, _causes
from cubecast.protocol.cubecast.registry import Detector
from cubecast.protocol.cubecast.settlement import Pieces, Settlement
from cubecast.protocol.cubecast.topics import TopicState
from cubecast.protocol.cubecast.views import View
from cubecast.protocol.effects import Deliver, Published, Send
from cubecast.protocol.hypercube.packets import Pub
from cubecast.protocol.hypercube.vcube_ps import VCubePS
from support.planted_continuity import (  # noqa: F401 - the table finds all of them here
    accounted_unseen,
    asked_once,
    claims_from_the_first_message,
    claims_from_the_meeting,
    claims_of_the_unconfirmed_kept,
    former_topics_left,
    handed_over_at_once,
    lives_that_are_over_untold,
    lost_before_agreed,
    past_forgotten,
    past_untold,
    publisher_not_told,
    publisher_told_twice,
)


def ack_before_forward() -> AbstractContextManager[object]:
    """Acknowledges for its whole block as soon as it has the publication itself."""
    advance = Dissemination.advance

    def hasty(self, copy, *, again=False):
        for parent in list(copy.parents):
            del copy.parents[parent]
            self._context.acknowledge(parent, self._topic, copy.packet.message, copy.packet.hurry)
        advance(self, copy, again=again)

    return patch.object(Dissemination, "advance", hasty)


def forget_before_stable() -> AbstractContextManager[object]:
    """Forgets a publication once it is acknowledged upwards, not once everybody has it."""
    advance = Dissemination.advance

    def forgetful(self, copy, *, again=False):
        advance(self, copy, again=again)
        if not copy.parents and copy.source != (self._context.node, self._context.by):
            self.stable[copy.source] = max(copy.last, self.stable.get(copy.source, 0))
            self._copies[copy.source].pop(copy.first, None)

    return patch.object(Dissemination, "advance", forgetful)


def one_message_per_source() -> AbstractContextManager[object]:
    """R1: keeps only the newest publication of every source."""
    keep = Dissemination._keep

    def narrow(self, source, packet, destinations):
        copy = keep(self, source, packet, destinations)
        if copy.source.node != self._context.node:
            self._copies[copy.source] = {copy.first: copy}
        return copy

    return patch.object(Dissemination, "_keep", narrow)


def excuse_omitted() -> AbstractContextManager[object]:
    """V3: a newcomer waits for what was published before its time."""
    dependencies = Barrier.dependencies

    def strict(self, me, destinations):
        named, direct = dependencies(self, me, destinations)
        return tuple(one._replace(excused=b"") for one in named), direct

    return patch.object(Barrier, "dependencies", strict)


def excuse_too_wide() -> AbstractContextManager[object]:
    """Excuses every destination as soon as one has an excuse."""
    dependencies = Barrier.dependencies

    def generous(self, me, destinations):
        named, direct = dependencies(self, me, destinations)
        return tuple(one._replace(excused=destinations.members if one.excused else b"") for one in named), direct

    return patch.object(Barrier, "dependencies", generous)


def settle_skipped() -> AbstractContextManager[object]:
    """Declares lost what is missing when its source is held faulty, without asking anybody."""
    return patch.object(Settlement, "_counts", lambda self, node: node in self._heard)


def nothing_lost() -> AbstractContextManager[object]:
    """R3: waits for ever for what only crashed nodes had."""
    return patch.object(Delivery, "declare_lost", lambda self, exists: None)


def perfect_detector_assumed() -> AbstractContextManager[object]:
    """R2: a node that others hold faulty goes on as if nothing had happened."""

    def stubborn(self, sender, packet):
        return None

    return patch.object(Lifetime, "on_obituary", stubborn)


def incarnation_ignored() -> AbstractContextManager[object]:
    """V5: a restarted node counts from 1 again under its old name."""
    born = Cubecast._born

    def same(self, incarnation, founders=0, version=0):
        return born(self, 0, founders, version)

    return patch.object(Cubecast, "_born", same)


def epoch_ignored() -> AbstractContextManager[object]:
    """V4: what was meant for an earlier subscription is taken for this one."""
    original = Cubecast._on_publication

    def careless(self, sender, packet):
        delivery = self._life.topic(packet.topic).delivery
        if delivery is not None:
            delivery.number = Destinations.carried(packet.members, packet.epochs).epoch(self.node)[1]
        original(self, sender, packet)

    return patch.object(Cubecast, "_on_publication", careless)


def publish_before_own_wave() -> AbstractContextManager[object]:
    """Publishes with whatever view it has."""
    return patch.object(TopicState, "registered", property(lambda self: True, lambda self, value: None), create=True)


def destinations_not_learned() -> AbstractContextManager[object]:
    """What a publication tells about the membership is not merged into the view."""
    return patch.object(View, "merge_destinations", lambda self, destinations: None)


def starts_not_repeated() -> AbstractContextManager[object]:
    """A member's start is stated once, in the publication that may be lost."""
    note = TopicState._note_starts

    def once(self, first, destinations):
        self._starts = []
        note(self, first, destinations)

    return patch.object(TopicState, "_note_starts", once)


def verdicts_kept_private() -> AbstractContextManager[object]:
    """Verdicts do not ride in packets."""
    return patch.object(Context, "dead", property(lambda self: (), lambda self, value: None), create=True)


def no_fence() -> AbstractContextManager[object]:
    """Goes on accepting packets from nodes it holds faulty."""
    admit, receive = Lifetime.admit, Cubecast._receive

    def open_door(self, sender, packet):
        return admit(self, sender, packet) or self.context.registry.is_dead((sender, packet.by))

    def careless(self, now, sender, packet):
        registry = self._life.context.registry
        if registry.is_dead((sender, packet.by)) and packet.publication:
            self._dispatch(sender, packet)
        else:
            receive(self, now, sender, packet)

    both = ExitStack()
    both.enter_context(patch.object(Lifetime, "admit", open_door))
    both.enter_context(patch.object(Cubecast, "_receive", careless))
    return both


def no_relay() -> AbstractContextManager[object]:
    """Nobody takes over when a source is faulty."""

    def indifferent(self, source):
        return None

    original = Dissemination.receive

    def receive(self, sender, source, packet, destinations):
        copy = original(self, sender, source, packet, destinations)
        if copy is not None and copy.duty == -1:
            copy.duty = 0
        return copy

    return patch.multiple(Dissemination, source_died=indifferent, receive=receive)


def covered_dropped_early() -> AbstractContextManager[object]:
    """The barrier drops a covered dependency before it is stable, as barriers usually do."""

    def prune(self):
        for source, entry in list(self._entries.items()):
            if entry.covered:
                del self._entries[source]

    return patch.object(Barrier, "prune", prune)


def lost_unnamed() -> AbstractContextManager[object]:
    """What was given up is not named by what is published next."""
    return patch.object(Barrier, "lost", lambda self, dependency, dependant: None)


def interest_after_the_answer() -> AbstractContextManager[object]:
    """Answers a wave first and subscribes to what its interest matches afterwards."""
    original = Cubecast._on_wave

    def late(self, sender, packet):
        with patch.object(Subscribing, "consider", lambda self, topic: None):
            original(self, sender, packet)
        self.life.subscribing.consider(packet.topic)

    return patch.object(Cubecast, "_on_wave", late)


def one_queue_for_all_topics() -> AbstractContextManager[object]:
    """V1, in VCube-PS: publications are numbered when asked for, and what cannot leave yet goes to the end of one queue
    for all topics."""

    def publish(self, now, topic, payloads):
        state, effects, shared = self._topic(topic), [], next(iter(self.topics.values())).queue
        if not state.view.subscribed:
            raise LocalProtocolError("only subscribers publish")
        for payload in payloads:
            state.published += 1
            effects.append(Published(topic, state.published, 1, ()))
            shared.append((state, MessageId(self.node, self.incarnation, state.published), payload))
        return effects + self._propagate(state)

    def propagate(self, _):
        effects, shared = [], next(iter(self.topics.values())).queue
        for _ in range(len(shared)):
            state, message, payload = shared.popleft()
            if state.outstanding is not None:
                shared.append((state, message, payload))
                continue
            packet = Pub(state.name, message, (payload,), state.delivery.publish(message, effects))
            effects.append(Deliver(state.name, message, packet.payloads))
            targets = state.view.children_below(None)
            if targets:
                state.outstanding = packet
                state.acks[packet.number] = state.view.place_below(None).awaited
                effects.append(Send(targets, packet))
            else:
                self._completed(state, packet, [], effects)
            break
        return effects

    return patch.multiple(VCubePS, publish=publish, _propagate=propagate)


def nothing() -> AbstractContextManager[object]:
    """The algorithm as published has the defect already."""
    return nullcontext()


@contextmanager
def postponed_for_ever():
    """A forwarder waits for the cause of a publication whatever became of it, and however long it takes."""
    spread = Dissemination._spread

    def stubborn(self, copy, wanted, again):
        spread(self, copy, wanted, False)
        if again:
            spread(self, copy, wanted & ~copy.postponed, True)

    def trusting(self, copy, s, part):
        for source, counter, excused in _causes(copy):
            here = self._kept.find(source, counter) or self._kept.is_stable(source, counter)
            if not here and not excused & part:
                return source
        return None

    with patch.object(Dissemination, "_spread", stubborn), patch.object(Postponing, "_awaited", trusting):
        yield


def greeting_taken_for_an_introduction() -> AbstractContextManager[object]:
    """Whoever says hello is one of us, even if it began to take part elsewhere before its greeting arrived."""
    return patch.object(Lifetime, "unmet", property(lambda self: 0))


def losers_joined_again() -> AbstractContextManager[object]:
    """A node that gave way to another side joins its own side again, if that answers first."""
    return patch.object(Joining, "speaks_for_losers", lambda self, packet: False)


def winners_not_waited_for() -> AbstractContextManager[object]:
    """A node that gave way takes part before the side it gave way to has welcomed it."""
    return patch.object(Joining, "_heard_the_winner", True)


def strangers_joined() -> AbstractContextManager[object]:
    """A node begins with two that take part and do not know each other."""
    return patch.object(Joining, "unacquainted", 0)


def joined_at_the_first_welcome() -> AbstractContextManager[object]:
    """Takes part as soon as one member has welcomed it, known to the others or not."""
    return patch.object(Joining, "is_complete", property(lambda self: self.is_sure))


def takes_a_side() -> AbstractContextManager[object]:
    """A joining node goes on with what it was told although the living contradict each other."""
    return patch.object(Joining, "contradicts", lambda self, sender, packet: False)


def no_echo() -> AbstractContextManager[object]:
    """A joining node lets those wait who settle what the faulty left."""
    return patch.object(Settlement, "echo", lambda self, sender, packet: None)


def strangers_ignored() -> AbstractContextManager[object]:
    """Whoever takes part and is unknown gets no answer."""
    send = Lifetime.send_obituary

    def silent(self, peer, incarnation, *, stranger=False):
        if not stranger:
            send(self, peer, incarnation)

    return patch.object(Lifetime, "send_obituary", silent)


def nobody_gives_way() -> AbstractContextManager[object]:
    """Of two sides that hold each other faulty each stays as it is."""
    original = Lifetime.on_obituary

    def proud(self, sender, packet):
        if self.context.registry.is_alive(sender, packet.by):
            original(self, sender, packet)

    return patch.object(Lifetime, "on_obituary", proud)


def waves_not_repeated() -> AbstractContextManager[object]:
    """A subscription is told once."""

    def tick(self):
        self.dissemination.tick()
        if self._owed:
            self.tell_stable()

    return patch.object(TopicState, "tick", tick)


def sends_not_repeated() -> AbstractContextManager[object]:
    """What is not answered is not sent again."""
    return patch.object(Dissemination, "tick", lambda self: None)


def never_asked() -> AbstractContextManager[object]:
    """A holder that was not told that everybody has it waits for ever."""
    original = Dissemination.tick

    def shy(self):
        kept = len(self._context.effects)
        original(self)
        later = self._context.effects[kept:]
        self._context.effects[kept:] = [one for one in later if type(getattr(one, "packet", None)) is not Ask]

    return patch.object(Dissemination, "tick", shy)


def first_page_only() -> AbstractContextManager[object]:
    """Of many topics those of the first page are learned."""
    original = OpenInquiry.answered

    def hasty(self, sender, packet):
        return original(self, sender, replace(packet, more=False))

    return patch.object(OpenInquiry, "answered", hasty)


def interest_asks_nobody() -> AbstractContextManager[object]:
    """An interest concerns topics that come to be later, and none that exist elsewhere."""

    def begin(self):
        self.must_announce = True

    return patch.object(OpenInquiry, "begin", begin)


def a_piece_for_the_whole() -> AbstractContextManager[object]:
    """What a part of an announcement does not name counts as denied."""

    def add(self, sender, packet):
        return Settle(packet.by, packet.dead, packet.version, packet.asking, packet.faulty, packet.holdings)

    return patch.object(Pieces, "add", add)


def closed_early() -> AbstractContextManager[object]:
    """A faulty life is closed before all destinations have what others hold of it."""
    return patch.object(Settlement, "_is_done", Settlement._counts)


def further_death_does_not_restart() -> AbstractContextManager[object]:
    """An announcement counts whatever verdicts it rests on, as long as it names one."""

    def counts(self, node):
        heard = self._heard.get(node)
        return heard is not None and bool(heard.faulty) and self._context.registry.is_alive(node, heard.by)

    return patch.object(Settlement, "_counts", counts)


def direct_left_alone() -> AbstractContextManager[object]:
    """What came directly is handed on by nobody when its source is faulty."""
    return patch.object(Copy, "orphaned", lambda self: None if self.is_direct else _orphaned(self))


_orphaned = Copy.orphaned


def healed_sides_never_meet() -> AbstractContextManager[object]:
    """Nodes test only those they hold correct."""
    return patch.object(Detector, "_stranger", lambda self, others: ())


def newcomers_relied_upon() -> AbstractContextManager[object]:
    """Who stands first in a cluster is left to test those behind it, even while it takes no part and tests nobody, and
    newcomers are left to others that may not know them."""
    watched = Detector._watched
    return patch.object(Detector, "_watched", lambda self, others, idle: watched(self, others, 0))


def nobody_is_tested() -> AbstractContextManager[object]:
    """Nodes that are to find out by themselves who crashed wait for a report."""
    return patch.object(Detector, "round", lambda self, now, others, **_: ((), ()))


def window_ignored() -> AbstractContextManager[object]:
    """However much is under way, the next one leaves."""
    return patch.object(TopicState, "_may_publish", lambda self: True)


def queue_forgotten() -> AbstractContextManager[object]:
    """What was asked and has no place in the order yet ends with the incarnation."""
    return patch.object(Cubecast, "_restore", lambda self, queues: None)


def late_round_convicts() -> AbstractContextManager[object]:
    """A node that stood still holds the silence of that time against the others."""
    original = Detector.round

    def unforgiving(self, now, others, **standing):
        self._last_round = now
        return original(self, now, others, **standing)

    return patch.object(Detector, "round", unforgiving)
