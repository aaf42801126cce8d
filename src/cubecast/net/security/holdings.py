"""What a node keeps in memory for its clients: counted per client, per address, per principal and in all.

A limit per connection alone is none: a client that opens a thousand connections has a thousand times as much. The
weights are what was measured, rounded up; they need not be exact, because the limits are far below what a machine has.
"""

from collections import Counter
from typing import Protocol

from cubecast.errors import BadInput
from cubecast.net.settings.security import Limits

SUBSCRIPTION = 2 << 10
"""Bytes that an open subscription takes, at the node and in what it tells the others."""
CUT_ENTRY = 512
"""Bytes for a publisher in the cut a subscription began with."""
FILTER_CHARACTER = 128
"""Bytes for each character of a filter: terms, domains, and their places in an index."""


class Asks(Protocol):
    """Where the limits come from: they may change while the node lives."""

    def __call__(self) -> Limits: ...


class Holdings:
    """Of all clients of a node."""

    def __init__(self, limits: Asks) -> None:
        self.limits = limits
        self.total = 0
        self.of: Counter[str] = Counter()
        """By address and by principal; their names cannot be the same."""

    def change(self, sources: tuple[str, ...], by: int) -> None:
        self.total += by
        for source in sources:
            self.of[source] += by
            if not self.of[source]:
                del self.of[source]


class Share:
    """Of one client."""

    def __init__(self, holdings: Holdings, address: str, principal: str | None) -> None:
        self._holdings = holdings
        self._sources = (f"address {address}",) + (() if principal is None else (f"principal {principal}",))
        self.held = 0

    def take(self, size: int) -> None:
        """BadInput, with the limit that stands in the way, when that would be too much; nothing is counted then."""
        holdings, limits = self._holdings, self._holdings.limits()
        if self.held + size > limits.memory_per_client:
            raise BadInput(f"this node keeps {limits.memory_per_client} bytes for a client, and this would be more")
        for source in self._sources:
            if holdings.of[source] + size > limits.memory_per_source:
                raise BadInput(
                    f"this node keeps {limits.memory_per_source} bytes for one {source.split()[0]} of clients"
                )
        if holdings.total + size > limits.memory:
            raise BadInput("this node keeps as much for its clients as it may; try another node, or later")
        self.held += size
        holdings.change(self._sources, size)

    def give_back(self, size: int) -> None:
        self.held -= size
        self._holdings.change(self._sources, -size)
