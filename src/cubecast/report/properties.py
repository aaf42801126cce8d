"""What verification decides, in a few words each; docs/verification.md says it exactly."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final = {
    "K0": "The trace does not contradict itself",
    "K1": "Starting points name only what was published",
    "K2": "Starting points leave no cause behind",
    "K3": "Starting points hide nothing that was owed",
    "P1": "Only what was published is delivered",
    "P1b": "It is delivered with the bytes it was published with",
    "P2": "Nothing is delivered twice",
    "P3": "What was acknowledged reaches every correct subscriber",
    "P4": "What one correct subscriber gets, all get",
    "P4u": "What any subscriber got, even one that crashed, all get",
    "P5": "Each publisher's messages come in order",
    "P6": "Each publisher's messages come without holes",
    "P7": "Causes come before effects",
    "P8": "No effect without all its causes",
    "P9a": "Any two see the same order",
    "P9b": "One order suits everybody",
    "P9c": "Everybody sees the same sequence, without holes",
    "P10": "Exactly once, also across restarts",
    "P11": "Only subscribers are delivered to",
    "P12": "Nothing waits for ever, nothing lost turns up",
    "P13": "Headers claim exactly what happened before",
    "P3b": "Who publishes hears itself",
    "P14": "Nothing is silently lost between processes that live",
    "P15": "What was acknowledged is kept for those who were away",
    "P16": "Publishers are told what was lost",
}

_PREMISES: Final = {
    "K0": ("events", "rows"),
    **dict.fromkeys(("K1", "K2", "K3"), ("cuts", "stated starting points")),
    **dict.fromkeys(("P1", "P1b", "P2", "P5", "P6", "P7", "P8", "P11"), ("deliveries", "deliveries")),
    "P3": ("acknowledged", "acknowledgements"),
    **dict.fromkeys(("P4", "P9a", "P9b", "P9c"), ("subscriptions", "subscriptions")),
    "P4u": ("crashes", "crashes"),
    "P10": ("restarts", "restarts"),
    "P12": ("receptions", "packets received"),
    **dict.fromkeys(("P13", "P3b"), ("published", "publications")),
}
"""What each is about, as a name in a story's counts and for people: a promise without occasion was not tested."""


def meaning(name: str) -> str:
    return MEANINGS.get(name, "see docs/verification.md")


def premise(name: str, judged: Mapping[str, object], counts: Mapping[str, int] | None) -> str:
    """How often there was occasion to break it: what the judge says, else what the rows say."""
    told = judged.get("premises")
    if isinstance(told, int):
        return f"{told:,} occasions"
    if counts is None or name not in _PREMISES:
        return "–"
    count, words = _PREMISES[name]
    return f"{counts[count]:,} {words}"
