"""So much per second, and a little more at once. Pure bookkeeping: the clock is an argument."""


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
