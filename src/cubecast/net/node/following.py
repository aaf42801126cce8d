"""What a node follows: the distinct patterns of its subscriptions with wildcards, told to the machine once a turn.

Each time the machine looks through all its topics and asks everybody for theirs. A client with many patterns, and many
clients with the same one, must not cost that much each.
"""

import asyncio
from collections.abc import Callable

from cubecast.net.node.subscriptions import Subscriptions
from cubecast.patterns import Selection


class Following:
    def __init__(self, subscriptions: Subscriptions, call: Callable[..., None]) -> None:
        self._subscriptions, self._call = subscriptions, call
        self._told: Selection | None = None
        self._is_known = False
        self.is_due = False
        """Is something to be told at the end of the turn?"""

    def changed(self) -> None:
        """A subscription with wildcards came or went."""
        if not self.is_due:
            self.is_due = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self.is_due = False
        wanted = self._subscriptions.interest
        if _patterns(wanted) != _patterns(self._told):
            self._told, self._is_known = wanted, False
            self._call("follow", wanted)
        elif self._is_known:
            self.known()
        self._subscriptions.forget_unheard(self._subscriptions.topics)

    def known(self) -> None:
        """No node publishes what was told without addressing this node. What is to be told yet is not part of it."""
        self._is_known = True
        self._subscriptions.interest_known(_patterns(self._told))

    def unknown(self) -> None:
        """The machine asks anew, in another life."""
        self._is_known = False

    def end(self) -> None:
        """Follow nothing any more."""
        if self._told is not None:
            self._call("follow", None)
        self.forget()

    def forget(self) -> None:
        """No subscriber is left to be told."""
        self._told, self._is_known = None, False


def _patterns(selection: Selection | None) -> frozenset[str]:
    return frozenset() if selection is None else frozenset(selection.patterns)
