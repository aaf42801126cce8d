"""The quick check of a subscription: proves at array speed that nothing is wrong, or says that it cannot.

Give every message of the topic a place: −1 inside the stated cut, its position when delivered, far away otherwise. If
nothing is delivered twice, unpublished, failed or from inside the cut, then *no cause lies behind its effect* certifies
K2, P5, P6, P7 and P8 at once: the cut is closed, so looking at direct causes is as good as looking at all of them.
"""

import numpy as np

from cubecast.pipeline.messages import TopicMessages
from cubecast.pipeline.rows import Ints
from cubecast.pipeline.view import View

FAR = np.int32(2**31 - 1)


def certify(view: View) -> Ints | None:
    """Places of the topic's messages (and one far place at the end), or None when the exact check must decide."""
    topic = view.topic
    if len(view.gaps) or (len(view.slot) and int(view.slot.min()) < 0):
        return None
    if view.altered.any() or view.wanted is not None:
        return None
    places = np.full(len(topic) + 1, FAR, np.int32)
    order = np.arange(len(view.slot), dtype=np.int32)
    places[view.slot] = order
    if not (places[view.slot] == order).all():
        return None
    if not _exclude(view, places) or not _causes_first(topic, places):
        return None
    if topic.failed.any() and (places[:-1][topic.failed] < FAR).any():
        return None
    if view.correct and (topic.owed & (places[:-1] == FAR)).any():
        return None
    return places


def _exclude(view: View, places: Ints) -> bool:
    """Put what the stated cuts exclude at place −1; False when a cut names too much or hides a delivery."""
    topic = view.topic
    if any(cut < 0 for cut, _ in view.subscription.stated.values()):
        return False
    for key, cut in view.stated.items():
        rank = int(topic.rank(np.array([key]))[0])
        if cut > (int(topic.count[rank]) if rank >= 0 else 0):
            return False
        if cut:
            low = int(topic.base[rank])
            if (places[low : low + cut] < FAR).any():
                return False
            places[low : low + cut] = -1
    return True


def _causes_first(topic: TopicMessages, places: Ints) -> bool:
    chain = places[:-2] > places[1:-1]
    if len(topic) > 1 and (chain & topic.same_publisher_as_next).any():
        return False
    # An unpublished cause has slot −1: the last place, which is far away.
    return not (places[topic.cause_slot] > places[topic.cause_owner]).any()
