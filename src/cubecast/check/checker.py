"""The reference checker: a trace in, a verdict per promise out. docs/verification.md defines every predicate.

It knows the trace and nothing else: no protocol, no simulator, no header is believed.

Follows decision 0059.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Final

from cubecast.check import continuity, cuts, delivery, order
from cubecast.check.facts import Facts, gather
from cubecast.check.history import Log, logs_of, message_of
from cubecast.check.verdict import Rate, Report, Verdict, Violation
from cubecast.check.well_formed import read_topics, repeated_places
from cubecast.errors import BadInput, TruncatedTraceError
from cubecast.ids import MessageId, Topic
from cubecast.trace.event import RunInfo
from cubecast.trace.reader import Trace, read_info, read_trace
from cubecast.trace.schema import NEEDS_VERSION, PROPERTIES, WELL_FORMED, Kind

# How often a property had occasion to be broken. One that had none is VALID and says nothing: it is vacuous.

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


# Properties that hold with a probability: how often they held, with an interval. Never a verdict.


def agreement(facts: Facts) -> Rate:
    """P4 measured: deliveries of correct subscriptions, of those and the holes that they were told of and that another
    correct subscription does not have."""
    kept = lost = 0
    for views in facts.deliveries.values():
        correct = [view for view in views if view.sigma.correct]
        somewhere = {message for view in correct for message in view.messages}
        for view in correct:
            told: set[MessageId] = {message_of(row) for row in view.sigma.gaps}
            kept += len(view.messages) + len(view.sigma.repeats)
            lost += len((told & somewhere) - view.sigma.deliveries.keys())
    return Rate(kept, kept + lost)


MEASURES: Final[dict[str, Callable[[Facts], Rate]]] = {"P4": agreement}


def measure(facts: Facts, names: Sequence[str]) -> dict[str, Rate]:
    return {name: MEASURES[name](facts) for name in names if name in MEASURES}


PREDICATES: Final[dict[str, Callable[[Facts], Iterable[Violation]]]] = {
    "K1": cuts.cut_names_published,
    "K2": cuts.cut_is_closed,
    "K3": cuts.cut_is_honest,
    "P1": delivery.no_creation,
    "P1b": delivery.right_bytes,
    "P2": delivery.no_duplication,
    "P3": delivery.validity,
    "P4": delivery.agreement,
    "P4u": delivery.uniform_agreement,
    "P5": order.fifo,
    "P6": order.gapless_fifo,
    "P7": order.causal,
    "P8": order.gapless_causal,
    "P9a": order.same_order,
    "P9b": order.orders_fit_together,
    "P9c": order.no_holes,
    "P10": delivery.once_per_identity,
    "P11": delivery.within_subscription,
    "P12": delivery.no_permanent_hold,
    "P13": order.headers_are_sound,
    "P3b": delivery.own_messages,
    "P14": continuity.no_silent_loss,
    "P15": continuity.acknowledged_is_kept,
    "P16": continuity.publisher_knows,
}
INHERITS: Final = {"P8": ("K2",), "P10": ("P1", "P2", "P3", "P4")}
"""Promises that contain others."""


def check_directory(directory: Path, properties: Sequence[str] | None = None) -> Report:
    """Judge the trace in a directory. Damaged data gives UNKNOWN; what is not a trace at all raises TraceError."""
    info = read_info(directory)
    wanted = _wanted(info, properties)
    try:
        return check_trace(read_trace(directory), wanted)
    except TruncatedTraceError as error:
        return Report(info.run, dict.fromkeys(wanted, Verdict.UNKNOWN), (), unknown_because=(str(error),))


def check_trace(trace: Trace, properties: Sequence[str] | None = None) -> Report:
    """Judge a trace in memory, by default on what its header promises; K0 is always judged."""
    info, events = trace
    kinds = Counter(map(attrgetter("kind"), events))
    wanted = _wanted(info, properties)
    logs, repeated = logs_of(events)
    broken = repeated_places(repeated)
    found: dict[str, list[Violation]] = {}
    if not broken:
        topics, broken = read_topics(logs)
    missing = _missing(info, logs)
    if not broken:
        facts, broken = gather(logs, topics)
    occasions: dict[str, int] = {}
    if not broken:
        found = _judge(wanted, facts)
        if not continuity.PREMISED.isdisjoint(wanted):
            occasions = continuity.continuity_of(facts).premises
    measured = {} if broken else measure(facts, info.measured)
    unjudged = "the trace contradicts itself" if broken else None
    undecided = [name for name in wanted if NEEDS_VERSION.get(name, 0) > info.schema_version]
    return Report(
        info.run,
        {"K0": _verdict(broken, bool(missing))}
        | {name: _verdict(found.get(name, ()), bool(missing or broken)) for name in wanted if name != "K0"}
        | dict.fromkeys(undecided, Verdict.UNKNOWN),
        sorted(
            (v for violations in (broken, *found.values()) for v in violations if v.certain or not missing), key=_size
        ),
        deliveries=kinds[Kind.DELIVER],
        messages=kinds[Kind.PUBLISH],
        measured=measured,
        premises={name: count for name, count in (premises(logs) | occasions).items() if name in wanted},
        unknown_because=(
            *missing,
            *([unjudged] if unjudged else []),
            *(f"traces of version {info.schema_version} do not tell what {name} needs" for name in undecided),
        ),
    )


def _wanted(info: RunInfo, properties: Sequence[str] | None) -> list[str]:
    asked = info.promises if properties is None else properties
    known = (*WELL_FORMED, *PROPERTIES)
    strange = [name for name in asked if name not in known]
    if strange:
        raise BadInput(f"there is no property {', '.join(strange)}; choose from {', '.join(known)}")
    return [name for name in known if name == "K0" or name in asked]


def _missing(info: RunInfo, logs: Sequence[Log]) -> list[str]:
    """Why the trace is incomplete, a line each."""
    nodes = {log.node for log in logs}
    reasons = [] if logs else ["the trace has no rows"]
    if info.nodes is not None and len(nodes) < info.nodes:
        reasons.append(f"rows of {len(nodes)} nodes instead of {info.nodes}")
    return reasons + [
        f"the log of node {log.node}, incarnation {log.incarnation}, is incomplete after {len(log.rows)} rows"
        for log in logs
        if not log.whole
    ]


def _judge(wanted: Sequence[str], facts: Facts) -> dict[str, list[Violation]]:
    found: dict[str, list[Violation]] = {}
    for promise in wanted:
        for name in (promise, *INHERITS.get(promise, ())):
            if name in PREDICATES and name not in found:
                found[name] = list(PREDICATES[name](facts))
    own = {name: violations for name, violations in found.items() if name in wanted}
    return {name: violations + _inherited(name, found) for name, violations in own.items()}


def _inherited(name: str, found: dict[str, list[Violation]]) -> list[Violation]:
    return [replace(violation, promise=name) for other in INHERITS.get(name, ()) for violation in found[other]]


def _verdict(violations: Iterable[Violation], incomplete: bool) -> Verdict:
    if any(violation.certain or not incomplete for violation in violations):
        return Verdict.VIOLATED
    return Verdict.UNKNOWN if incomplete else Verdict.VALID


def _size(violation: Violation) -> tuple[int, int, int, int]:
    return violation.size
