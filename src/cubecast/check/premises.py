"""How often a property had occasion to be broken. One that had none is VALID and says nothing: it is vacuous."""

from collections.abc import Iterable
from typing import Final

from cubecast.check.history import Log
from cubecast.ids import Topic
from cubecast.trace.schema import Kind

_OCCASIONS: Final = {
    "deliveries": ("P1", "P1b", "P2", "P10", "P11", "P12"),
    "deliveries elsewhere": ("P4", "P4u", "P9a", "P9b", "P9c"),
    "deliveries of a later message": ("P5", "P6"),
    "publications that depend on others": ("P7", "P8"),
    "publications": ("P13",),
    "acknowledgements": ("P3",),
    "stated cuts": ("K1", "K2", "K3"),
}


def premises(logs: Iterable[Log]) -> dict[str, int]:
    """Per property, as docs/verification.md counts them; those that always have occasion are not listed."""
    count = dict.fromkeys(_OCCASIONS, 0)
    for log in logs:
        _count(log, count)
    return {name: count[occasion] for occasion, names in _OCCASIONS.items() for name in names}


def _count(log: Log, count: dict[str, int]) -> None:
    heard: set[Topic | None] = set()  # topics on which others were heard so far
    for event in log.rows:
        kind = event.kind
        if kind == Kind.DELIVER:
            count["deliveries"] += 1
            count["deliveries of a later message"] += (event.counter or 0) > 1
            if event.source != event.node:
                count["deliveries elsewhere"] += 1
                heard.add(event.topic)
        elif kind == Kind.PUBLISH:
            count["publications"] += 1
            count["publications that depend on others"] += event.topic in heard
        elif kind == Kind.ACKNOWLEDGED:
            count["acknowledgements"] += 1
        elif kind in (Kind.CUT, Kind.SUBSCRIBED):
            count["stated cuts"] += sum(one.counter >= 1 for one in event.cut or ())
