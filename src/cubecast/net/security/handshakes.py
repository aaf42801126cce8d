"""How often callers from one address may begin a TLS handshake.

Each costs a node milliseconds of its processor, and the caller next to nothing. Who comes too often waits its turn;
when that would take too long it is sent away.
"""

from collections import OrderedDict

from cubecast.net.security.buckets import Bucket
from cubecast.net.settings.security import Limits

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
