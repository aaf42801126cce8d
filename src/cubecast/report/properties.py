"""What verification decides, in a few words each; docs/verification.md says it exactly."""

from collections.abc import Mapping
from typing import Final

from cubecast.trace.schema import MEANINGS

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
