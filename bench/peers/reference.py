"""What aims for latencies mean on this machine.

They were set on another one of two cores, where the peers had been measured as well. How much longer everything takes
here is what the peers say that are in the same run: the one in the middle of them, for each percentile.
"""

from collections.abc import Mapping
from statistics import median

LATENCIES: Mapping[str, tuple[float, float]] = {
    "ZeroMQ mesh": (0.25, 0.52),
    "ZeroMQ proxy": (0.34, 0.68),
    "Zenoh mesh": (0.28, 0.49),
    "NATS": (0.37, 0.82),
    "Redis pub/sub": (0.40, 0.92),
}
"""p50 and p99 there in ms, eight members with 100 messages/s each."""
AIM = (0.25, 0.60)


def aim_here(found: Mapping[str, tuple[float, float]]) -> str:
    """From what the rows of a table took here, in ms."""
    shared = [(found[name], there) for name, there in LATENCIES.items() if name in found]
    if not shared:
        return "the aim cannot be carried over: no system that was measured with it is in this run"
    factors = [median(here[place] / there[place] for here, there in shared) for place in (0, 1)]
    aims = [aim * factor for aim, factor in zip(AIM, factors, strict=True)]
    return (
        f"aim: p50 {AIM[0]:.2f} p99 {AIM[1]:.2f} ms where {len(shared)} of these systems were {factors[0]:.2f} and "
        f"{factors[1]:.2f} times as fast, so p50 {aims[0]:.3f} p99 {aims[1]:.3f} ms here"
    )
