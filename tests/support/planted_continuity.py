"""Bugs planted in what a process keeps through its incarnations; the others are in `planted`."""

from contextlib import AbstractContextManager
from unittest.mock import patch

from cubecast.protocol.cubecast.context import Context
from cubecast.protocol.cubecast.continuation import Continuation
from cubecast.protocol.cubecast.delivery import Delivery
from cubecast.protocol.cubecast.ledger import Ledger, ProcessMemory, Reports


def past_forgotten() -> AbstractContextManager[object]:
    """What an incarnation knew ends with it."""
    return patch.object(Continuation, "end", lambda self: None)


def past_untold() -> AbstractContextManager[object]:
    """A process that comes back does not say how far what it published and read reaches."""
    return patch.object(Ledger, "reached", lambda self: ())


def former_topics_left() -> AbstractContextManager[object]:
    """A process that comes back says nothing on topics where it has nothing to publish any more."""
    return patch.object(ProcessMemory, "published", lambda self: [])


def lives_that_are_over_untold() -> AbstractContextManager[object]:
    """Who answers tells a subscription that goes on nothing of lives that are over."""
    return patch.object(Continuation, "_reached", lambda self, packet: ())


def handed_over_at_once() -> AbstractContextManager[object]:
    """A subscription that goes on does not wait until it knows what it missed."""
    return patch.object(Delivery, "hold_back", lambda self, foreign: setattr(self, "_foreign", foreign))


def accounted_unseen() -> AbstractContextManager[object]:
    """Everybody says that what a process brings is accounted for, and does that later."""
    is_accounted = Continuation._is_accounted

    def hasty(self, packet):
        is_accounted(self, packet)
        return True

    return patch.object(Continuation, "_is_accounted", hasty)


def lost_before_agreed() -> AbstractContextManager[object]:
    """What may still come of the faulty is named as missing."""
    return patch.object(Continuation, "_may_come", lambda self, life, first, last: False)


def asked_once() -> AbstractContextManager[object]:
    """Who was held faulty while a subscription was asked for counts as if it had not been."""
    opened = Continuation.open

    def hasty(self, *, settled):
        self._deaths = self._context.deaths
        opened(self, settled=settled)

    return patch.object(Continuation, "open", hasty)


def claims_from_the_first_message() -> AbstractContextManager[object]:
    """Who meets a publisher late has a claim to all it ever published, not to what it published since it knew."""

    def greedy(self, publisher, since):
        self.ledger.claims.setdefault(publisher.node, 0)

    return patch.object(Continuation, "_meet", greedy)


def claims_from_the_meeting() -> AbstractContextManager[object]:
    """A publisher does not remember since when it knows of a subscription."""
    meet = Continuation._meet
    return patch.object(Continuation, "_meet", lambda self, publisher, since: meet(self, publisher, ()))


def claims_of_the_unconfirmed_kept() -> AbstractContextManager[object]:
    """What a subscription was handed that was never confirmed begins its claims in the next life."""
    return patch.object(Continuation, "_forget_claims", lambda self: self._write_down(self._progress()))


def publisher_not_told() -> AbstractContextManager[object]:
    """What a subscriber names as missing stays with it."""
    return patch.object(Context, "report", lambda self, topic, life, first, last: None)


def publisher_told_twice() -> AbstractContextManager[object]:
    """Each subscriber's news of the same message is told."""
    return patch.object(Reports, "news", lambda self, topic, run: [(run.first, run.last)])
