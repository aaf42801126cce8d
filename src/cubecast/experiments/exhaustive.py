"""All interleavings of a few tiny worlds, judged by the reference checker."""

from collections.abc import Iterator
from typing import Any

from cubecast.check.checker import check_trace
from cubecast.check.verdict import Verdict
from cubecast.sim.exhaustive import Exploration, TinyWorld, explore
from cubecast.trace.event import Event, RunInfo
from cubecast.trace.reader import Trace

CHAIN = (0, 2, 3)
"""Node 2 forwards what node 0 publishes to node 3."""
PAIR = (0, 1, 2)
"""Node 0 sends to both."""
WORLDS = {
    "two publish": TinyWorld("cubecast", 2, (0, 1), (("publish", 0), ("publish", 1))),
    "three subscribe, two publish": TinyWorld("cubecast", 4, (0, 1, 3), (("publish", 0), ("publish", 1))),
    "one joins": TinyWorld("cubecast", 2, (0,), (("publish", 0), ("subscribe", 1), ("publish", 0))),
    "one leaves": TinyWorld("cubecast", 2, (0, 1), (("publish", 0), ("unsubscribe", 1), ("publish", 0))),
    "one leaves and returns": TinyWorld(
        "cubecast", 2, (0, 1), (("publish", 0), ("unsubscribe", 1), ("subscribe", 1), ("publish", 0)), {"window": "1"}
    ),
    "the publisher dies": TinyWorld("cubecast", 4, CHAIN, (("publish", 0), ("crash", 0)), nodes=CHAIN),
    "the publisher of a pair dies": TinyWorld("cubecast", 4, PAIR, (("publish", 0), ("crash", 0)), nodes=PAIR),
    "the one in between dies": TinyWorld("cubecast", 4, CHAIN, (("publish", 0), ("crash", 2)), nodes=CHAIN),
    "one publishes twice, aggregated": TinyWorld(
        "cubecast", 4, (0, 2, 3), (("publish", 0), ("publish", 0)), {"aggregation": "on", "max_batch": "1"}
    ),
    "the publisher of two dies, aggregated": TinyWorld(
        "cubecast", 4, (0, 2, 3), (("publish", 0), ("publish", 0), ("crash", 0)), {"aggregation": "on"}, nodes=CHAIN
    ),
}


def judge(info: RunInfo, events: list[Event]) -> str | None:
    report = check_trace(Trace(info, events))
    if report.verdict is Verdict.VALID:
        return None
    return f"{', '.join(sorted(report.violated())) or 'UNKNOWN'}: {[one.reason for one in report.witnesses[:1]]}"


def explore_all(most_states: int) -> Iterator[tuple[str, Exploration]]:
    """Every tiny world, up to so many states each."""
    for name, tiny in WORLDS.items():
        yield name, explore(tiny, judge, most_states=most_states)


def to_json(name: str, found: Exploration) -> dict[str, Any]:
    return {
        "world": name,
        "states": found.states,
        "histories": found.histories,
        "histories_with_deliveries_to_others": found.delivered,
        "complete": found.complete,
        "failures": [{"choices": list(path), "reason": reason} for path, reason in found.failures],
    }
