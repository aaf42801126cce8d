"""Student's t for whole degrees of freedom, exact in closed form: one number per sample size needs no library."""

import math


def student_within(t: float, degrees: int) -> float:
    """Probability that |T| ≤ t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for k in range(3 if odd else 2, degrees, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if odd:
        return 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
    return sine * total


def student_quantile(degrees: int, level: float) -> float:
    """The t with P(|T| ≤ t) = level, by bisection."""
    low, high = 0.0, 1.0
    while student_within(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_within(middle, degrees) < level else (low, middle)
    return high
