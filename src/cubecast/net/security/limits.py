"""How much others may ask for: requests and handshakes per second, memory, topics. Clocks are arguments.

Each handshake costs a node milliseconds of its processor, and the caller next to nothing. Who comes too often waits its
turn; when that would take too long it is sent away.

Memory is counted per client, per address, per principal and in all: a client that opens a thousand connections has a
thousand times what one may have. The weights are what was measured, rounded up; they need not be exact, because the
limits are far below what a machine has. Topics are counted per principal: a node keeps the counters of a topic for as
long as it lives, and so does everybody who hears of it.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Protocol

from cubecast.errors import BadInput
from cubecast.ids import Topic
from cubecast.net.security.policy import Principal
from cubecast.net.settings.security import Limits


class Bucket:
    """Fills at `rate` up to `rate × burst`. Taking is allowed while there is anything in it, and may leave a debt: what
    comes in pieces larger than the bucket still comes, but then nothing does for as long as it was too much."""

    __slots__ = ("_level", "_most", "_rate", "_since")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._most, self._since = rate, rate * burst, now
        self._level = self._most

    def wait(self, now: float) -> float:
        """Seconds until something may be taken; 0 when it may be now."""
        self._level = min(self._most, self._level + (now - self._since) * self._rate)
        self._since = now
        return 0.0 if self._level > 0 else (1e-3 - self._level / self._rate)

    def take(self, amount: float) -> None:
        self._level -= amount


ADDRESSES_REMEMBERED = 4096
"""Beyond, those that called longest ago begin anew: what many addresses do together is not for one node to stop."""


class Handshakes:
    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[Limits, Bucket]] = OrderedDict()

    def wait(self, address: str, limits: Limits, now: float) -> float | None:
        """Seconds until one more may begin, which is counted; None when its time for a greeting would be over then."""
        if not limits.handshakes_per_second:
            return 0.0
        known, bucket = self._buckets.get(address, (None, None))
        if bucket is None or known is not limits:
            bucket = Bucket(limits.handshakes_per_second, limits.burst, now)
            self._buckets[address] = limits, bucket
        self._buckets.move_to_end(address)
        if len(self._buckets) > ADDRESSES_REMEMBERED:
            self._buckets.popitem(last=False)
        wait = bucket.wait(now)
        if wait >= limits.greeting_time:
            return None
        bucket.take(1)
        return wait

    def __len__(self) -> int:
        return len(self._buckets)


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


class TopicShares:
    """Counts per name; a policy names only so many."""

    def __init__(self, is_known: Callable[[Topic], bool]) -> None:
        self._is_known = is_known
        self._brought: Counter[str] = Counter()

    def take(self, principal: Principal, topic: Topic, most: int) -> None:
        """BadInput when the topic is new here, and one too many."""
        if principal.is_unrestricted or self._is_known(topic):
            return
        if self._brought[principal.name] >= most:
            raise BadInput(
                f"{principal.name} brought up {most} topics at this node, which keeps each of them, and may not "
                f"bring up {topic}: say it on one that exists, or have limits.topics_per_principal raised"
            )
        self._brought[principal.name] += 1
