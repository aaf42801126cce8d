"""How likely it is that everybody has an event, judged by how many copies of it came by.

Copies reach a process at random, so that c of them speak of a mean λ that is distributed like Gamma(c + 1), and with
a mean of λ a process is missed with probability e^−λ: all n − 1 others have the event with exp(−(n − 1) · e^−λ). No
knowledge of latencies, losses or of the rounds that went by is needed. The age of an event, which the thesis
proposes, says 1.00 where 0.82 to 0.97 is true.
"""

from functools import lru_cache
from math import exp, lgamma, log

MOST_COPIES = 95
_STEPS = 400
_REACH = 8  # standard deviations on either side


@lru_cache(maxsize=64)
def stability_table(processes: int) -> tuple[float, ...]:
    """Entry c: after c copies; the last one also for more."""
    return tuple(_mean(copies + 1, processes - 1) for copies in range(MOST_COPIES + 1))


def stability_of(copies: int, processes: int) -> float:
    return stability_table(processes)[min(copies, MOST_COPIES)]


def _mean(shape: int, others: int) -> float:
    """Of exp(−others · e^−λ) over λ ~ Gamma(shape), by the midpoint rule, normalised over what is summed."""
    deviation = shape**0.5
    low, high = max(0.0, shape - _REACH * deviation), shape + _REACH * deviation + _REACH
    width = (high - low) / _STEPS
    total = weights = 0.0
    for step in range(_STEPS):
        rate = low + (step + 0.5) * width
        weight = exp((shape - 1) * log(rate) - rate - lgamma(shape))
        weights += weight
        total += weight * exp(-others * exp(-rate))
    return total / weights
