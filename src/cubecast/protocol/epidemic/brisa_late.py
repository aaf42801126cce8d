"""When a process that is behind its neighbours in a flow turns to one of them.

Soon if nothing comes at all. If that did not help, it is this process or all that are slow: it waits twice as long
before the next.
"""

from cubecast.ids import Counter, NodeId

MOST_WAIT, LATE_TICKS = 8, 4


class Lateness:
    def __init__(self, have: Counter) -> None:
        self.moved = False
        """Has anything come between the last two ticks?"""
        self._had = have
        self._ahead: dict[NodeId, Counter] = {}
        self._ticks = 0
        self._wait, self._next, self._since = 1, 0, 0

    def tick(self, have: Counter) -> None:
        self._ticks += 1
        self.moved, self._had = have > self._had, have

    def forget(self, peer: NodeId) -> None:
        self._ahead.pop(peer, None)

    def turns_to(self, peer: NodeId, its: Counter, have: Counter) -> bool:
        """A neighbour says what it has. It is turned to when it had a tick ago what has not come here."""
        was_ahead = self._ahead.get(peer, 0) > have
        self._ahead[peer] = its
        if was_ahead:
            return self._is_time()
        if its <= have:
            self._wait, self._since = 1, self._ticks
        return False

    def _is_time(self) -> bool:
        is_fed = self.moved and self._ticks - self._since < LATE_TICKS
        if is_fed or self._ticks < self._next:
            return False
        self._next, self._wait = self._ticks + self._wait, min(MOST_WAIT, 2 * self._wait)
        return True
