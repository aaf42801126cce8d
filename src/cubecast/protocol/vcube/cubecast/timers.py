"""The timers a machine sets."""

from enum import Enum


class Timer(Enum):
    RETRY = "retry"
    ROUND = "round"
    ALONE = "alone"
    ACKS = "acks"
